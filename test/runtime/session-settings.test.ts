import { describe, expect, it } from 'vitest';
import { InputNotAccepted } from '../../src/base/band-errors.js';
import type { SessionConfigFields } from '../../src/config/session-fields.js';
import { agentLab } from '../support/agent-lab.js';
import { FakeBand } from '../support/fake-band.js';

const ROOM = 'room-1';

/** What an adapter sees of a room with three rows of history, and what the agent asked of the platform. */
async function firstTurn(session: Partial<SessionConfigFields>) {
  const lab = agentLab({ session });
  lab.band.addRoom(ROOM);
  for (const row of ['one', 'two', 'three']) lab.band.remember(ROOM, row);
  await lab.agent.start();
  lab.band.post(ROOM, 'hello');
  await lab.settle();
  lab.band.post(ROOM, 'again');
  await lab.settle();
  await lab.agent.stop();
  return {
    history: lab.turns.map(({ history }) => history.raw.map(({ content }) => content)),
    handled: lab.handled,
    calls: lab.band.calls.map(({ method }) => method),
  };
}

describe('session settings', () => {
  it('R-124 enableContextCache and maxContextMessages are accepted and change nothing', async () => {
    const usual = await firstTurn({});
    expect(usual.history[0]).toEqual(['one', 'two', 'three']);
    expect(await firstTurn({ enableContextCache: false, maxContextMessages: 1 })).toEqual(usual);
    expect(await firstTurn({ enableContextCache: true, maxContextMessages: 10_000 })).toEqual(usual);
  });

  it('R-127 without hydration a session starts from an empty context, and participants are still loaded', async () => {
    const { history, handled, calls } = await firstTurn({ enableContextHydration: false });
    expect(handled).toEqual(['hello', 'again']);
    expect(history).toEqual([[], []]);
    expect(calls).not.toContain('getContext');
    expect(calls).toContain('listParticipants');
  });

  /** A session whose first attempts are refused by the adapter, so that each asks for the history again. */
  async function readsOfHistory(contextCacheTtlSeconds: number, waitMs: number): Promise<number> {
    let refusals = 2;
    const lab = agentLab({
      session: { contextCacheTtlSeconds, maxMessageRetries: 5 },
      agent: {
        adapter: {
          onStarted: () => Promise.resolve(),
          onCleanup: () => Promise.resolve(),
          onEvent: async () => {
            refusals -= 1;
            if (refusals < 0) return;
            await lab.clock.sleep(waitMs);
            throw new InputNotAccepted('busy');
          },
        },
      },
      band: new FakeBand({ now: () => lab.clock.now() }),
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'hello');
    for (let i = 0; i < 5; i += 1) await lab.clock.advance(waitMs);
    await lab.agent.stop();
    return lab.band.called('getContext').length;
  }

  it('R-125 a context younger than contextCacheTtlSeconds is used again', async () => {
    expect(await readsOfHistory(300, 1_000)).toBe(1);
  });

  it('R-125 an older one is read again, and with 0 every one is', async () => {
    expect(await readsOfHistory(1, 2_000)).toBe(3);
    expect(await readsOfHistory(0, 1)).toBe(3);
    expect(await readsOfHistory(-5, 1)).toBe(3);
  });

  it('R-126 maxMessageRetries is the number of attempts', async () => {
    for (const maxMessageRetries of [1, 2, 3]) {
      const lab = agentLab({ session: { maxMessageRetries }, onTurn: () => Promise.reject(new Error('no')) });
      lab.band.addRoom(ROOM);
      await lab.agent.start();
      lab.band.post(ROOM, 'hello');
      await lab.settle();
      await lab.clock.advance(600_000);
      expect(lab.handled).toHaveLength(maxMessageRetries);
      await lab.agent.stop();
    }
  });
});
