// A Slack bridge that is killed and started again: `slack-bridge.ts <settings as JSON>`; says `up` when it works.
import { GenericAdapter } from '../../../src/adapters/generic.js';
import { Agent } from '../../../src/agent.js';
import { SessionConfig } from '../../../src/config/session-config.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { openLevelStore } from '../../../src/store/leveldb.js';
import type { StateStore } from '../../../src/store/port.js';
import { SlackAdapter } from '../../../bridges/slack/adapter.js';

export interface SlackBridgeSettings {
  readonly restUrl: string;
  readonly wsUrl: string;
  readonly slackApiUrl: string;
  readonly botToken: string;
  readonly signingSecret: string;
  readonly port: number;
  readonly folder: string;
  /** Ends the process at the first delivery it takes in: before the disk has it, or after, with Slack still unanswered. */
  readonly killAtCommit?: 'before' | 'after';
}

const settings = JSON.parse(process.argv[2] ?? '{}') as SlackBridgeSettings;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** `hang` never ends; `post then hang` shows something first; anything else is echoed. */
const inner = new GenericAdapter(async ({ message, tools }) => {
  say(`turn ${message.content}`);
  if (message.content.startsWith('post then hang')) {
    await tools.executeToolCall('slack_send_message', { content: `half of ${message.content}` });
    say('posted');
  }
  if (message.content.includes('hang')) await new Promise(() => undefined);
  await tools.executeToolCall('slack_send_message', { content: `echo: ${message.content}` });
});

const level = await openLevelStore({ folder: `${settings.folder}/store` });
const store: StateStore = {
  ...level,
  async batch(changes) {
    const takesIn = changes.some(({ kind, key }) => kind === 'put' && key.includes('/inbox/waiting/'));
    if (takesIn && settings.killAtCommit === 'before') process.kill(process.pid, 'SIGKILL');
    const revision = await level.batch(changes);
    if (takesIn && settings.killAtCommit === 'after') process.kill(process.pid, 'SIGKILL');
    return revision;
  },
};
const adapter = new SlackAdapter(
  {
    inner,
    botToken: settings.botToken,
    signingSecret: settings.signingSecret,
    slackApiUrl: settings.slackApiUrl,
    port: settings.port,
    turnTimeoutSeconds: 60,
  },
  { store, dataDir: settings.folder, prefix: 'slack/killed' },
);
const agent = Agent.create({
  adapter,
  agentId: DEMO.helpdesk.id,
  apiKey: DEMO.helpdesk.apiKey,
  restUrl: settings.restUrl,
  wsUrl: settings.wsUrl,
  config: { singleInstance: false },
  sessionConfig: new SessionConfig({ enableWorkingState: false }),
});
await agent.start();
say('up');
await new Promise(() => undefined);
