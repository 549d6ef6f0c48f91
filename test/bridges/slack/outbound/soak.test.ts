import { describe, expect, it } from 'vitest';
import type { SlackOut, ThreadRef } from '../../../../bridges/slack/outbound/port.js';
import type { FaultEffect } from '../../../support/slack/faults.js';
import { openOut } from './lab.js';

/** Messages written; more with e.g. `SLACK_SOAK_MESSAGES=5000`. */
const MESSAGES = Number(process.env['SLACK_SOAK_MESSAGES'] ?? 60);
const SEED = Number(process.env['SLACK_SOAK_SEED'] ?? Date.now() % 1_000_000);

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe('many replies through a bad day', () => {
  it(
    `S-090 S-100 S-101 every message of every thread is there once and in order, over faults and restarts (seed ${SEED})`,
    async () => {
      const random = seeded(SEED);
      const lab = await openOut({ random });
      const effects: readonly FaultEffect[] = [
        { kind: 'status', status: 429, headers: { 'retry-after': '1' } },
        { kind: 'status', status: 503 },
        { kind: 'drop', applied: true },
        { kind: 'drop', applied: false },
        { kind: 'truncate' },
        { kind: 'error', error: 'internal_error' },
      ];
      for (const effect of effects) {
        lab.slack.fault({ method: 'chat.postMessage', probability: 0.06, times: MESSAGES, effect });
      }
      const threads: ThreadRef[] = Array.from({ length: 4 }, (_, index) => ({
        ...lab.thread,
        threadTs: lab.alice.says('#general', `thread ${index}`).ts,
      }));
      const expected = threads.map((): string[] => []);
      let out: SlackOut = lab.out;
      for (let index = 0; index < MESSAGES; index += 1) {
        const which = Math.floor(random() * threads.length);
        const text = `message ${index}`;
        expected[which]!.push(text);
        await out.reply(threads[which]!, { id: `soak-${index}`, markdown: text, kind: 'reply' });
        if (random() < 0.3) await lab.pass(500 * Math.ceil(random() * 5), 500);
        if (random() < 0.05) {
          await out.stop(0);
          out = await lab.reopen();
          await out.start();
        }
      }
      for (let minute = 0; minute < 10 + MESSAGES / 20 && out.queues()[0]!.depth > 0; minute += 1) {
        await lab.pass(60_000, 1_000);
      }
      expect(
        threads.map(({ threadTs }) => lab.slack.botMessages(lab.general, threadTs).map(({ text }) => text)),
      ).toEqual(expected);
      expect(out.queues()).toEqual([{ name: 'outbox', depth: 0, dead: 0 }]);
    },
    30_000 + MESSAGES * 100,
  );
});
