import { describe, expect, it } from 'vitest';
import { pino } from 'pino';
import {
  ApiError,
  BandToolError,
  DeliveryFailedError,
  InputNotAccepted,
  RoomExecutionStoppedError,
  TurnEndedError,
  TurnResultAlreadyReported,
} from '../../src/base/band-errors.js';
import { GatewayError } from '../../src/base/errors.js';
import { deliverReply, judgeDetachedTurn, relayReply, runJudgedTurn, UNFINISHED_TEXT } from '../../src/core/judge.js';
import { CONTACT_EVENTS_SENDER } from '../../src/core/synthetic.js';
import { Turn, type TurnOptions } from '../../src/core/turn.js';
import { FakeAgentTools, refusal } from '../../src/testing/index.js';

const MISSING = 'The agent ended its turn without replying or calling band_no_reply, so nothing reached the room.';
const PERSON = { senderType: 'User', senderId: 'user-1' };
const TO_USER = [{ id: 'user-1', handle: 'user' }];

function toolsOf(options: TurnOptions = {}) {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const turn = new Turn({ log, ...options });
  return { tools: new FakeAgentTools({ turn }), turn, lines };
}

/** What becomes of a turn in which the adapter does `work`. */
async function verdictOn(
  tools: FakeAgentTools,
  work: () => unknown = () => undefined,
  { message = PERSON, judges = true }: { message?: typeof PERSON; judges?: boolean } = {},
): Promise<unknown> {
  return runJudgedTurn({ tools, message, judges }, async () => {
    await work();
  }).then(
    () => 'passed',
    (error: unknown) => error,
  );
}

describe('runJudgedTurn', () => {
  it('R-274 R-275 R-276 a turn without an answer is told to the room once, as an error event of the runtime', async () => {
    const { tools, turn, lines } = toolsOf();
    const verdict = await verdictOn(tools);
    expect(verdict).toBeInstanceOf(TurnResultAlreadyReported);
    expect(verdict).toMatchObject({ final: true, message: MISSING });
    expect(tools.events).toEqual([
      {
        roomId: 'room-1',
        content: MISSING,
        messageType: 'error',
        metadata: { failure: { provider: 'band-runtime', code: null, message: MISSING, detail: null } },
      },
    ]);
    expect(turn).toMatchObject({ judged: true, reported: true });
    expect(lines).toHaveLength(1);
    expect(await verdictOn(tools)).toBe('passed');
    expect(tools.events).toHaveLength(1);
  });

  it('R-283 the verdict is final, so no retry budget applies', async () => {
    expect(await verdictOn(toolsOf().tools)).toMatchObject({ final: true });
    expect(new TurnResultAlreadyReported('an adapter said so itself').final).toBe(false);
  });

  it('R-276 where the room is not to be told, the delivery still fails', async () => {
    const { tools, turn } = toolsOf({ reportFailures: false });
    expect(await verdictOn(tools)).toBeInstanceOf(TurnResultAlreadyReported);
    expect([tools.events, turn.reported]).toEqual([[], false]);
  });

  it('R-276 a report that does not reach the room leaves the verdict and no claim that it was reported', async () => {
    const { tools, turn, lines } = toolsOf();
    tools.failNext('postEvent', new GatewayError('BAND_UNAVAILABLE'));
    expect(await verdictOn(tools)).toMatchObject({ final: true });
    expect(turn.reported).toBe(false);
    expect(lines).toHaveLength(2);
    // A wrapping adapter comes to the same end of the same turn: the verdict is not given again.
    expect(await verdictOn(tools)).toBe('passed');
    expect(tools.calls).toHaveLength(1);
  });

  it.each<[string, (tools: FakeAgentTools) => unknown]>([
    ['a reply', (tools) => tools.sendMessage('hi', ['@user'])],
    ['declining', (tools) => tools.noReply()],
    ['an act', (tools) => tools.createChatroom()],
    [
      'settling',
      (tools) => {
        tools.turn.settle();
      },
    ],
    ['a failure that the adapter reported', (tools) => tools.sendFailure({ provider: 'model', message: 'overloaded' })],
  ])('R-277 %s completes the turn', async (_what, work) => {
    const { tools } = toolsOf();
    expect(await verdictOn(tools, () => work(tools))).toBe('passed');
  });

  it.each<[string, (tools: FakeAgentTools) => Promise<unknown>]>([
    ['reading', (tools) => tools.getParticipants()],
    ['an event', (tools) => tools.sendEvent('hm', 'thought')],
    ['a notice', (tools) => tools.sendNotice('one moment', ['@user'])],
    ['a blank answer', (tools) => tools.sendMessage('\u200b ', ['@user'])],
  ])('R-277 R-279 %s does not complete the turn', async (_what, work) => {
    const { tools } = toolsOf();
    expect(await verdictOn(tools, () => work(tools))).toBeInstanceOf(TurnResultAlreadyReported);
  });

  it('R-278 a call that failed does not complete the turn', async () => {
    const { tools } = toolsOf();
    tools.failNext('postMessage', refusal(403, 'BAND_FORBIDDEN'));
    expect(
      (await tools.executeToolCallStructured('band_send_message', { content: 'hi', mentions: ['@user'] })).ok,
    ).toBe(false);
    tools.failNext('postEvent', refusal(500, 'BAND_UNAVAILABLE'));
    await expect(tools.sendFailure({ provider: 'model', message: 'x' })).rejects.toThrow(ApiError);
    expect(await verdictOn(tools)).toBeInstanceOf(TurnResultAlreadyReported);
  });

  it('R-279 settle() completes a turn whose only words were a notice', async () => {
    const { tools, turn } = toolsOf();
    await tools.sendNotice('handed on', ['@user']);
    expect(turn.replied).toBe(false);
    turn.settle();
    expect(await verdictOn(tools)).toBe('passed');
  });

  it('R-282 turns of contact events are never judged', async () => {
    const { tools, turn } = toolsOf();
    expect(await verdictOn(tools, undefined, { message: CONTACT_EVENTS_SENDER })).toBe('passed');
    expect([turn.judged, tools.events]).toEqual([false, []]);
  });

  it('R-282 turns of an adapter that does not judge are not judged', async () => {
    const { tools, turn } = toolsOf();
    expect(await verdictOn(tools, undefined, { judges: false })).toBe('passed');
    expect([turn.judged, tools.events]).toEqual([false, []]);
  });

  it('a throw of the adapter is no missing reply', async () => {
    const { tools } = toolsOf();
    const work = () => Promise.reject(new Error('model is down'));
    expect(await verdictOn(tools, work)).toEqual(new Error('model is down'));
    expect(tools.events).toEqual([]);
  });

  it('a cancelled turn is not judged', async () => {
    const { tools, turn } = toolsOf({ signal: AbortSignal.abort() });
    expect(await verdictOn(tools)).toBe('passed');
    expect([tools.events, turn.reported]).toEqual([[], false]);
  });
});

describe('judgeDetachedTurn', () => {
  /** A turn that its adapter detached before it returned. */
  async function detached(options: TurnOptions = {}, how: Parameters<typeof verdictOn>[2] = {}) {
    const lab = toolsOf(options);
    const verdict = await verdictOn(
      lab.tools,
      () => {
        lab.turn.detach();
      },
      how,
    );
    expect(verdict).toBe('passed');
    return lab;
  }

  it('R-281 a detached turn passes at first and is judged when the adapter says that it ended', async () => {
    const { tools } = await detached();
    await tools.sendMessage('late but here', ['@user']);
    expect(await judgeDetachedTurn(tools)).toBe(true);
    expect(tools.events).toEqual([]);
    await expect(tools.sendMessage('too late', ['@user'])).rejects.toThrow(TurnEndedError);
  });

  it('R-281 a detached turn that never answered is told to the room once, without a throw', async () => {
    const { tools } = await detached();
    expect(await judgeDetachedTurn(tools)).toBe(false);
    expect(await judgeDetachedTurn(tools)).toBe(true);
    expect(tools.events.map(({ content }) => content)).toEqual([MISSING]);
  });

  it('R-281 a report that fails is followed by the generic one, once', async () => {
    const { tools } = await detached();
    tools.failNext('postEvent', new GatewayError('BAND_UNAVAILABLE'));
    expect(await judgeDetachedTurn(tools)).toBe(false);
    expect(tools.events.map(({ content }) => content)).toEqual([UNFINISHED_TEXT]);
  });

  it('R-281 a cancelled detached turn reports nothing', async () => {
    const controller = new AbortController();
    const { tools } = await detached({ signal: controller.signal });
    controller.abort();
    expect(await judgeDetachedTurn(tools)).toBe(true);
    expect(tools.calls).toEqual([]);
  });

  it('R-282 a detached turn that is not judged reports nothing', async () => {
    for (const how of [{ judges: false }, { message: CONTACT_EVENTS_SENDER }]) {
      const { tools } = await detached({}, how);
      expect(await judgeDetachedTurn(tools)).toBe(true);
      expect(tools.events).toEqual([]);
    }
  });

  it('R-281 a turn that was not taken after all owes nothing', async () => {
    const { tools, turn } = toolsOf();
    await verdictOn(tools, () => {
      turn.detach();
      throw new InputNotAccepted('busy');
    });
    expect(await judgeDetachedTurn(tools)).toBe(true);
    expect(tools.events).toEqual([]);
  });

  it('a turn that was never detached is not judged here', async () => {
    const { tools } = toolsOf();
    expect(await judgeDetachedTurn(tools)).toBe(true);
    await expect(tools.sendMessage('still on', ['@user'])).resolves.toMatchObject({ success: true });
  });
});

describe('relayReply', () => {
  it('R-280 posts the closing text when no tool replied or declined', async () => {
    const { tools } = toolsOf();
    await tools.createChatroom();
    expect(await relayReply(tools, 'closing words', TO_USER)).toBe(true);
    expect(tools.messages).toEqual([{ roomId: 'room-1', content: 'closing words', mentions: TO_USER }]);
    expect(tools.turn.replied).toBe(true);
  });

  it.each<[string, (tools: FakeAgentTools) => Promise<unknown>]>([
    ['replied', (tools) => tools.sendMessage('by tool', TO_USER)],
    ['declined', (tools) => tools.noReply('nothing to say')],
  ])('R-280 posts nothing when a tool %s', async (_what, work) => {
    const { tools } = toolsOf();
    await work(tools);
    const before = tools.messages.length;
    expect(await relayReply(tools, 'closing words', TO_USER)).toBe(false);
    expect(tools.messages).toHaveLength(before);
  });

  it('R-280 posts nothing when there is nothing to see', async () => {
    const { tools } = toolsOf();
    expect(await relayReply(tools, '\u200b', TO_USER)).toBe(false);
    expect(await relayReply(tools, null, TO_USER)).toBe(false);
    expect(tools.calls).toEqual([]);
  });
});

describe('deliverReply', () => {
  it('a post that fails is a failure of delivery, with its cause', async () => {
    const { tools } = toolsOf();
    tools.failNext('postMessage', refusal(500, 'BAND_UNAVAILABLE'));
    const failure = await deliverReply(tools, 'hi', TO_USER).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DeliveryFailedError);
    expect((failure as Error).cause).toBeInstanceOf(ApiError);
  });

  it('a reply without a mention is a failure of delivery too', async () => {
    const failure = await deliverReply(toolsOf().tools, 'hi', []).catch((error: unknown) => error);
    expect((failure as Error).cause).toBeInstanceOf(BandToolError);
  });

  it('a stopped room and an ended turn keep their own errors', async () => {
    const { tools, turn } = toolsOf();
    tools.failNext('postMessage', new GatewayError('BAND_ROOM_STOPPED'));
    await expect(deliverReply(tools, 'hi', TO_USER)).rejects.toThrow(RoomExecutionStoppedError);
    turn.end();
    await expect(deliverReply(tools, 'hi', TO_USER)).rejects.toThrow(TurnEndedError);
  });
});
