/**
 * A Slack bridge on the built package with a brain that says nothing, by HTTP: `bench-slack.js FOLDER`. Everything it
 * accepts is in a durable store in the folder first. The environment says where it connects: BAND_REST_URL, BAND_WS_URL,
 * AGENT_ID, API_KEY, SLACK_API_URL, BOT_TOKEN, SIGNING_SECRET. Says its events URL once it serves.
 */
import { createServer } from 'node:http';
import { Agent } from 'band-gateway';
import { GenericAdapter } from 'band-gateway/adapters';
import { SlackAdapter } from 'band-gateway/adapters/slack';

const adapter = new SlackAdapter(
  {
    inner: new GenericAdapter(() => Promise.resolve()),
    botToken: process.env['BOT_TOKEN'],
    signingSecret: process.env['SIGNING_SECRET'],
    slackApiUrl: process.env['SLACK_API_URL'],
    transport: 'http',
    silentTurn: 'none',
  },
  { dataDir: process.argv[2] },
);
const agent = Agent.create({
  adapter,
  agentId: process.env['AGENT_ID'] ?? '',
  apiKey: process.env['API_KEY'] ?? '',
  config: { singleInstance: false },
});
await agent.start();
const server = createServer(adapter.requestListener);
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/slack/main/events\n`);
});
await agent.runForever();
