import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { killPrograms, startProgram, type RunningProgram } from '../support/program.js';
import { startAcme } from '../support/slack/acme.js';
import type { Said } from '../support/slack/people.js';
import { postTrail } from '../support/slack/post-trail.js';
import { tempFolder } from '../support/temp-folder.js';

const MESSAGES = Number(process.env['SLACK_GATEWAY_MESSAGES'] ?? 30);
const KILLS = Number(process.env['SLACK_GATEWAY_KILLS'] ?? 3);
const SEED = Number(process.env['SLACK_SEED'] ?? Date.now() % 100_000);
const CHANNELS = 10;

afterEach(() => {
  killPrograms();
});

function seeded(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

describe('the gateway with a Slack entry', () => {
  it(
    'S-197 S-216 answers every message exactly once, or with one notice, though it is killed again and again',
    { timeout: 120_000 + MESSAGES * 2_000 + KILLS * 10_000 },
    async () => {
      console.log(`seed ${SEED}`);
      const random = seeded(SEED);
      const demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
      const { slack, team, bot, alice, bob, app, botToken } = await startAcme({ app: { socketMode: true } });
      // Each start asks for the channels anew: begun again every second, it asks more often than Slack's tiers allow.
      if (KILLS > 10) slack.allow(/^violation: rate:/);
      onTestFinished(async () => {
        await slack.stop();
        await demo.stop();
      });
      const cwd = await tempFolder();
      writeFileSync(
        path.join(cwd, 'gateway.yaml'),
        `platform: { rest_url: ${demo.sandbox.restUrl}, ws_url: ${demo.sandbox.wsUrl} }
data_dir: data
http: { port: 0 }
agents:
  helpdesk:
    agent_id: ${DEMO.helpdesk.id}
    api_key: { env: HELPDESK_KEY }
    bridge: slack
    single_instance: false
    slack: { bot_token: { env: SLACK_BOT }, app_token: { env: SLACK_APP }, slack_api_url: "${slack.apiUrl}" }
    relay: { peer: demo/echo }
`,
      );
      const starts: number[] = [];
      const start = async (): Promise<RunningProgram> => {
        starts.push(slack.clock.now());
        const program = startProgram(['start'], {
          cwd,
          env: { HELPDESK_KEY: DEMO.helpdesk.apiKey, SLACK_BOT: botToken, SLACK_APP: app.appToken },
        });
        await program.until(/^Gateway at /m);
        return program;
      };

      const channels = Array.from({ length: CHANNELS }, (_, index) =>
        slack.channel(team, { name: `k-${index}`, members: [alice.id, bob.id, bot.botUserId] }),
      );
      let gateway = await start();
      await slack.until(() => slack.sockets.open(app).some((socket) => socket.saidHello), 'a socket', 20_000);
      const killAt = new Set(
        Array.from({ length: KILLS }, (_, index) => Math.floor(((index + 0.3 + 0.4 * random()) * MESSAGES) / KILLS)),
      );
      const threads: { said: Said; text: string }[] = [];
      for (let index = 0; index < MESSAGES; index += 1) {
        const text = `message ${index}`;
        const said = (index % 2 === 0 ? alice : bob).says(channels[index % CHANNELS]!.id, `@gateway ${text}`);
        threads.push({ said, text });
        await new Promise((resolve) => setTimeout(resolve, random() * 120));
        if (!killAt.has(index)) continue;
        gateway.kill('SIGKILL');
        await gateway.ended;
        gateway = await start();
      }

      // What nobody was there to take comes again, as Slack's schedule would have it.
      await slack.until(() => slack.events.inFlight === 0, 'deliveries', 30_000);
      const missed = () => slack.deliveries().filter(({ state }) => state !== 'acked');
      for (const delivery of missed()) {
        await slack.until(() => slack.sockets.open(app).some((socket) => socket.saidHello), 'a socket', 30_000);
        slack.deliverRaw(app, delivery.body);
      }
      const echoes = (said: Said) =>
        slack.botMessages(said.channel, said.ts).filter((one) => one.shown.includes('echo:'));
      // Who was there at too many ends of the process hears so, with a button to try again.
      const notices = (said: Said) =>
        slack.botMessages(said.channel, said.ts).filter((one) => one.buttons.includes('Retry'));
      const isEnded = (said: Said) => echoes(said).length + notices(said).length > 0;
      await slack
        .until(() => threads.every(({ said }) => isEnded(said)), 'all answers', 90_000 + MESSAGES * 1_500)
        .catch((error: unknown) => {
          const missing = threads.filter(({ said }) => !isEnded(said));
          const trails = missing.slice(0, 3).map(({ said, text }) => `${text}: ${postTrail(slack, said, starts)}`);
          const lines = [`seed ${SEED}: ${missing.length} of ${MESSAGES} without an answer`, ...trails];
          throw new Error(lines.join('\n'), { cause: error });
        });
      await slack.settled();
      for (const { said, text } of threads) {
        const trail = `seed ${SEED}, ${postTrail(slack, said, starts)}`;
        const shown = echoes(said).map((one) => one.shown);
        expect(shown, trail).toEqual(shown.length === 0 ? [] : [expect.stringContaining(text)]);
        expect(notices(said).length, trail).toBe(shown.length === 0 ? 1 : 0);
      }
      const noticed = threads.filter(({ said }) => notices(said).length > 0);
      console.log(`${MESSAGES - noticed.length} answered, ${noticed.length} with a notice`);
      // A kill now and then gives nothing up.
      if (KILLS <= 10) expect(noticed).toEqual([]);
      slack.check();
    },
  );
});
