import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../../src/sandbox/index.js';
import { callRest } from '../../support/rest-call.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { startAcme } from '../../support/slack/acme.js';
import { tempFolder } from '../../support/temp-folder.js';
import type { SlackBridgeSettings } from '../../support/programs/slack-bridge.js';
import type { Said } from '../../support/slack/people.js';

const PROGRAM = fileURLToPath(new URL('../../support/programs/slack-bridge.ts', import.meta.url));
const LIMIT_MS = 60_000;

interface Running {
  readonly said: string[];
  /** Resolves once a line of the program holds these words. */
  until(words: string): Promise<void>;
  kill(): Promise<void>;
  /** Resolves when the program has ended, with the signal that ended it. */
  readonly ended: Promise<string | null>;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** The double and the sandbox here, the bridge in a process of its own that may be killed at any moment. */
async function setUp() {
  const acme = await startAcme({ rates: false });
  const sandbox = await startSandbox({ port: 0 });
  const folder = await tempFolder();
  const port = await freePort();
  onTestFinished(async () => {
    await acme.slack.stop();
    await sandbox.close();
  });
  const url = `http://127.0.0.1:${port}/slack/events`;
  acme.app.urls = { events: url, interactions: url, commands: url };
  const settings: SlackBridgeSettings = {
    restUrl: sandbox.restUrl,
    wsUrl: sandbox.wsUrl,
    slackApiUrl: acme.slack.apiUrl,
    botToken: acme.botToken,
    signingSecret: acme.app.signingSecret,
    port,
    folder,
  };
  const start = async (more: Partial<SlackBridgeSettings> = {}): Promise<Running> => {
    const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, JSON.stringify({ ...settings, ...more })], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const running = watch(child);
    onTestFinished(() => running.kill());
    await running.until('up');
    return running;
  };
  const rooms = async () =>
    ((await callRest(sandbox.restUrl, 'GET', '/api/v1/agent/chats', DEMO.helpdesk.apiKey)).body as { data: unknown[] })
      .data;
  const answers = (said: Said) => acme.slack.botMessages(said.channel, said.threadTs).map((one) => one.shown);
  /** What stands in threads once all is dealt with that came before this moment: a thread is taken in order. */
  const atLast = async (...threads: Said[]): Promise<string[][]> => {
    for (const said of threads) acme.alice.replies(said, '@gateway the last');
    const last = 'echo: the last';
    await acme.slack.until(() => threads.every((said) => answers(said).includes(last)), 'the last', LIMIT_MS);
    await acme.slack.settled();
    return threads.map((said) => answers(said).filter((text) => text !== last));
  };
  return { ...acme, sandbox, start, rooms, answers, atLast };
}

function watch(child: ChildProcess): Running {
  const said: string[] = [];
  const hearers = new Set<() => void>();
  child.stdout?.setEncoding('utf8');
  child.stdout?.on('data', (chunk: string) => {
    said.push(...chunk.split('\n').filter(Boolean));
    for (const hearer of hearers) hearer();
  });
  const ended = new Promise<string | null>((resolve) => {
    child.once('close', (_code, signal) => {
      resolve(signal);
    });
  });
  return {
    said,
    until: (words) =>
      new Promise((resolve) => {
        const look = () => {
          if (!said.some((line) => line.includes(words))) return;
          hearers.delete(look);
          resolve();
        };
        hearers.add(look);
        look();
      }),
    ended,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

describe('a bridge that is killed', () => {
  it(
    'S-030 S-040 right after the acknowledgement still answers after the next start',
    { timeout: LIMIT_MS },
    async () => {
      const { slack, sandbox, alice, start, answers, atLast, rooms } = await setUp();
      const first = await start();
      // Band gives no room, so nothing but the acknowledgement can have happened.
      sandbox.dev.faultRest({ method: 'POST', path: '/api/v1/agent/chats', times: 1_000, drop: 'before' });
      const said = alice.says('#general', '@gateway after the ack');
      await slack.until(() =>
        slack.deliveries().some((delivery) => delivery.type === 'app_mention' && delivery.state === 'acked'),
      );
      await first.kill();
      expect([first.said, await rooms(), answers(said)]).toEqual([['up'], [], []]);
      sandbox.dev.clearFaults();
      await start();
      await slack.until(() => answers(said).length >= 1, 'the answer', 20_000);
      expect(await atLast(said)).toEqual([['echo: after the ack']]);
    },
  );

  it.each([
    ['before the disk has a delivery answers its repeat', 'before'],
    ['between the disk and the acknowledgement answers by itself, and knows the repeat', 'after'],
  ] as const)('S-030 S-031 %s, once', { timeout: LIMIT_MS }, async (_when, killAtCommit) => {
    const { slack, app, alice, start, answers, atLast } = await setUp();
    const first = await start({ killAtCommit });
    slack.events.hold = [];
    const said = alice.says('#general', '@gateway once');
    const [mention, message] = ['app_mention', 'message'].map(
      (type) => slack.events.hold!.find((one) => one.type === type)!.body,
    );
    slack.events.hold = null;
    const unanswered = slack.deliverRaw(app, mention!)!;
    expect(await first.ended).toBe('SIGKILL');
    await slack.until(() => slack.events.inFlight === 0);
    expect(unanswered.state).toBe('under way');
    await start();
    if (killAtCommit === 'after') {
      await slack.until(() => answers(said).length === 1, 'the answer', 20_000);
      expect(unanswered.state).toBe('under way');
    } else {
      await slack.settled();
      expect(answers(said)).toEqual([]);
    }
    const repeats = [mention!, message!, mention!].map((body) => slack.deliverRaw(app, body)!);
    await slack.until(() => repeats.every(({ state }) => state === 'acked'));
    expect(await atLast(said)).toEqual([['echo: once']]);
  });

  it(
    'S-040 S-089 in a turn runs it again when nothing was shown, and offers Retry when something was',
    { timeout: LIMIT_MS },
    async () => {
      const { slack, alice, start, answers, general } = await setUp();
      const first = await start();
      const silent = alice.says('#general', '@gateway hang on');
      const shown = alice.says('#rooms', '@gateway post then hang');
      await first.until('turn hang on');
      await first.until('posted');
      await slack.until(() => answers(shown).length === 1);
      await first.kill();
      const second = await start();
      await second.until('turn hang on');
      await slack.until(
        () => slack.botMessages(shown.channel, shown.ts).some((one) => one.buttons.includes('Retry')),
        'a notice with Retry',
        20_000,
      );
      expect(second.said.filter((line) => line.startsWith('turn post'))).toEqual([]);
      expect(answers(shown)[0]).toBe('half of post then hang');
      expect(slack.botMessages(general, silent.ts).flatMap((one) => one.buttons)).not.toContain('Retry');
    },
  );

  it(
    'S-101 while Slack has taken a reply but not answered leaves exactly one message',
    { timeout: LIMIT_MS },
    async () => {
      const { slack, alice, start, answers, atLast } = await setUp();
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => (release = resolve));
      slack.fault({ method: 'chat.postMessage', effect: { kind: 'hold', until: held, apply: 'before' } });
      const first = await start();
      const said = alice.says('#general', '@gateway once only');
      await slack.until(() => answers(said).length === 1, 'the post', 20_000);
      await first.kill();
      release();
      await start();
      await slack.until(
        () =>
          slack
            .calls('conversations.replies')
            .some((call) => String(call.args['include_all_metadata']) === 'true' && call.outcome === 'ok'),
        'a look-up',
        20_000,
      );
      // The turn was cut in the middle, so a notice with Retry may stand under it.
      const [shown] = await atLast(said);
      expect(shown!.filter((text) => text.startsWith('echo'))).toEqual(['echo: once only']);
    },
  );

  it(
    'S-197 S-075 at random points of a run loses nothing and answers nothing twice',
    { timeout: 300_000 },
    async () => {
      const { slack, team, bot, alice, bob, app, start, answers, rooms, atLast } = await setUp();
      const count = Number(process.env['SLACK_KILL_EVENTS'] ?? 24);
      const kills = Number(process.env['SLACK_KILLS'] ?? 3);
      const seed = Number(process.env['SLACK_SEED'] ?? Date.now() % 100_000);
      console.log(`seed ${seed}`);
      let state = seed;
      const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
      let running = await start();
      // Several channels, since one takes a post a second.
      const places = [
        '#general',
        '#rooms',
        'dm',
        ...[1, 2, 3].map(
          (number) => slack.channel(team, { name: `more-${number}`, members: [alice.id, bob.id, bot.botUserId] }).id,
        ),
      ];
      const threads: Said[] = [];
      for (let index = 0; index < count; index += 1) {
        const who = random() < 0.5 ? alice : bob;
        const place = places[index % places.length]!;
        threads.push(who.says(place, `${place === 'dm' ? '' : '@gateway '}event ${index}`));
        if (index % Math.ceil(count / (kills + 1)) === Math.ceil(count / (kills + 1)) - 1 && index < count - 1) {
          await new Promise((resolve) => setTimeout(resolve, random() * 400));
          await running.kill();
          running = await start();
          app.subscriptionOff = false;
        }
      }
      // What Slack could not deliver while nobody was there comes again, as its schedule would have it.
      const missed = () =>
        slack
          .deliveries()
          .filter(
            (delivery) =>
              delivery.state !== 'acked' && (delivery.type === 'app_mention' || delivery.type === 'message'),
          );
      await slack.until(() => slack.events.inFlight === 0);
      // Slack stops sending to an app that takes next to nothing; its admin switches that on again, here and above.
      app.subscriptionOff = false;
      for (const delivery of missed()) slack.deliverRaw(slack.world.apps.get(delivery.app)!, delivery.body);
      await slack.until(
        () => threads.every((said) => answers(said).length >= 1),
        'an answer to every message',
        120_000,
      );
      const all = await atLast(...threads);
      for (const [index, said] of threads.entries()) {
        const shown = all[index]!.filter((text) => text.startsWith('echo: '));
        const offered = slack.botMessages(said.channel, said.ts).some((one) => one.buttons.includes('Retry'));
        expect(
          shown.length === 1 || (shown.length === 0 && offered),
          `event ${index}: ${JSON.stringify(answers(said))}`,
        ).toBe(true);
      }
      expect((await rooms()).length).toBeGreaterThan(0);
      slack.check();
    },
  );
});
