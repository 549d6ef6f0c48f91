import { describe, expect, it, onTestFinished } from 'vitest';
import { startAcme } from '../support/slack/acme.js';
import { say, startBridge } from '../support/slack/bridge-lab.js';
import type { FaultEffect } from '../support/slack/faults.js';
import type { Said } from '../support/slack/people.js';

const EVENTS = Number(process.env['BAD_LUCK_EVENTS'] ?? 16);
const SEED = Number(process.env['BAD_LUCK_SEED'] ?? Date.now() % 1_000_000);
const LIMIT_MS = Number(process.env['BAD_LUCK_LIMIT_MS'] ?? 300_000);

/** Numbers that a seed repeats. */
function seeded(seed: number): () => number {
  let state = (seed % 2_147_483_646) + 1;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

const POST_FAULTS: readonly FaultEffect[] = [
  { kind: 'status', status: 429, headers: { 'retry-after': '1' } },
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503 },
  { kind: 'drop', applied: true },
  { kind: 'drop', applied: false },
  { kind: 'error', error: 'internal_error' },
  { kind: 'error', error: 'fatal_error' },
  { kind: 'delay', ms: 300 },
  { kind: 'truncate' },
  { kind: 'garbage' },
];

describe('a day of bad luck', () => {
  it(
    'S-090 S-100 S-102 every message is answered exactly once, whatever Slack and Band do meanwhile',
    { timeout: LIMIT_MS + 60_000 },
    async () => {
      console.log(`seed ${SEED}`);
      const random = seeded(SEED);
      const world = await startAcme({ rates: true, random, app: { socketMode: true } });
      onTestFinished(() => world.slack.stop());
      const { slack, team, bot, alice, bob, carol } = world;
      const lab = await startBridge({
        transport: 'socket',
        world,
        settings: { socket: { connections: 2 }, mirrorSlackContext: false },
        onTurn: async (turn) => {
          if (random() < 0.3) await turn.tools.executeToolCall('band_get_participants', {});
          await say(turn, `echo: ${turn.message.content}`);
        },
      });
      for (const effect of POST_FAULTS)
        slack.fault({ method: 'chat.postMessage', times: EVENTS, probability: 0.025, effect });
      for (const method of [
        'users.info',
        'conversations.info',
        'conversations.replies',
        'assistant.threads.setStatus',
        'chat.update',
      ]) {
        slack.fault({ method, times: EVENTS, probability: 0.05, effect: { kind: 'status', status: 503 } });
        slack.fault({ method, times: EVENTS, probability: 0.05, effect: { kind: 'drop', applied: true } });
      }
      slack.fault({
        method: 'apps.connections.open',
        times: 3,
        probability: 0.3,
        effect: { kind: 'status', status: 500 },
      });

      const channels = Array.from({ length: 8 }, (_, index) =>
        slack.channel(team, { name: `luck-${index}`, members: [alice.id, bob.id, carol.id, bot.botUserId] }),
      );
      const written: { said: Said; text: string }[] = [];
      const threads: Said[] = [];
      for (let index = 0; index < EVENTS; index += 1) {
        const who = [alice, bob, carol][index % 3]!;
        const text = `message ${index}`;
        const into = random() < 0.4 ? threads[Math.floor(random() * threads.length)] : undefined;
        const said = into
          ? who.replies(into, `@gateway ${text}`)
          : who.says(channels[index % channels.length]!.id, `@gateway ${text}`);
        if (!into) threads.push(said);
        written.push({ said, text });
        const luck = random();
        if (luck < 0.06) for (const socket of slack.sockets.open(lab.app).slice(0, 1)) slack.sockets.sever(socket);
        else if (luck < 0.12)
          for (const socket of slack.sockets.open(lab.app).slice(0, 1))
            slack.sockets.disconnect(socket, 'refresh_requested');
        else if (luck < 0.18) lab.sandbox.dev.faultRest({ times: 1 + Math.floor(random() * 2), status: 503 });
        else if (luck < 0.22) lab.sandbox.dev.faultRest({ drop: 'after', method: 'POST' });
        await new Promise((resolve) => setTimeout(resolve, random() * 40));
      }

      // What no socket was there to take comes again, as Slack's schedule would have it.
      await slack.until(() => slack.events.inFlight === 0, 'deliveries', 30_000);
      for (const delivery of slack.deliveries().filter(({ state }) => state !== 'acked')) {
        await slack.until(() => slack.sockets.open(lab.app).some((socket) => socket.saidHello), 'a socket', 30_000);
        slack.deliverRaw(lab.app, delivery.body);
      }
      const echoes = (said: Said) => lab.answers(said).filter((text) => text.startsWith('echo: '));
      const expected = (thread: Said) =>
        written.filter(({ said }) => said.threadTs === thread.threadTs && said.channel === thread.channel);
      await slack.until(
        () => threads.every((thread) => echoes(thread).length >= expected(thread).length),
        `all answers (seed ${SEED})`,
        LIMIT_MS,
      );
      await slack.settled();

      for (const thread of threads) {
        const shown = echoes(thread);
        expect(shown.toSorted(), `seed ${SEED}`).toEqual(
          expected(thread)
            .map(({ text }) => `echo: ${text}`)
            .toSorted(),
        );
      }
      const report = lab.adapter.report();
      await expect
        .poll(() => lab.adapter.report().queues.map(({ depth, dead }) => depth + dead), { timeout: LIMIT_MS })
        .toEqual(report.queues.map(() => 0));
      slack.check();
    },
  );
});
