import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../src/base/error-codes.js';
import { agentLab } from '../support/agent-lab.js';

const ROOM = 'room-1';

const ANSWERS: readonly (readonly [number, ErrorCode])[] = [
  [401, 'BAND_UNAUTHORIZED'],
  [403, 'BAND_FORBIDDEN'],
  [404, 'BAND_NOT_FOUND'],
  [409, 'BAND_CONFLICT'],
  [422, 'BAND_INVALID'],
  [429, 'BAND_RATE_LIMITED'],
  [500, 'BAND_UNAVAILABLE'],
  [200, 'BAND_BAD_ANSWER'],
  [0, 'BAND_TIMEOUT'],
  [0, 'BAND_UNREACHABLE'],
];

const CALLS = [
  'nextMessage',
  'listMessages',
  'markProcessing',
  'markProcessed',
  'listParticipants',
  'getContext',
] as const;

describe.each(ANSWERS)('a platform that answers %d (%s)', (statusCode, code) => {
  it.each(CALLS)('R-182 R-185 R-187 to %s loses no message, and answers none twice', async (method) => {
    const lab = agentLab({ session: { maxMessageRetries: 2 } });
    lab.band.addRoom(ROOM);
    lab.band.fail(method, { code, statusCode, times: 2 });
    const waiting = lab.band.post(ROOM, 'before the start', { push: false });
    await lab.agent.start();
    await lab.settle();
    const pushed = lab.band.post(ROOM, 'pushed');
    await lab.settle();
    lab.band.fail(method, { code, statusCode, times: 1 });
    const unpushed = lab.band.post(ROOM, 'never pushed', { push: false });
    await lab.clock.advance(400_000);
    await lab.settle();
    expect(lab.handled).toEqual(['before the start', 'pushed', 'never pushed']);
    expect([waiting, pushed, unpushed].map((id) => lab.band.state(ROOM, id))).toEqual(Array(3).fill('processed'));
    expect(await lab.agent.stop()).toBe(true);
  });

  it.each(['markFailed', 'postEvent'] as const)(
    'to %s keeps the room going after a message that failed',
    async (method) => {
      const lab = agentLab({
        session: { maxMessageRetries: 1 },
        onTurn: async ({ message, tools }) => {
          if (message.content === 'bad') throw new Error('cannot');
          await tools.noReply();
        },
      });
      lab.band.addRoom(ROOM);
      await lab.agent.start();
      lab.band.fail(method, { code, statusCode, times: 1 });
      const bad = lab.band.post(ROOM, 'bad');
      const good = lab.band.post(ROOM, 'good');
      await lab.clock.advance(400_000);
      await lab.settle();
      expect(lab.handled).toEqual(['bad', 'good']);
      expect(lab.band.state(ROOM, good)).toBe('processed');
      // A mark that could not be made is made at the next look; 404 and 422 say that there is nothing to mark.
      const isMarked = method === 'postEvent' || (statusCode !== 404 && statusCode !== 422);
      expect(lab.band.state(ROOM, bad)).toBe(isMarked ? 'failed' : 'processing');
      await lab.agent.stop();
    },
  );
});
