import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput, A2APorts } from '../../../bridges/a2a/index.js';
import type { BandCalls } from '../../../bridges/a2a/band.js';
import { blockersOf } from '../../../bridges/a2a/bridge.js';
import type { ErrorCode } from '../../../src/base/error-codes.js';
import { message, type Stream } from '../../support/a2a/client.js';
import { FakeRooms, HELPER, refused, WEATHER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';
import { CANARY, expectSilent } from '../../support/a2a/refusals.js';
import { getWays } from '../../support/a2a/ways.js';

/** A task's trouble, and what everybody must then be told. */
interface Row {
  readonly what: string;
  readonly reason: string;
  readonly says: string;
  /** Default FAILED. */
  readonly state?: 'REJECTED' | 'CANCELED' | 'INPUT_REQUIRED';
  readonly options?: A2AOptionsInput;
  readonly ports?: Partial<A2APorts>;
  readonly durable?: false;
  /** Before the task is there. */
  readonly given?: (rooms: FakeRooms) => void;
  /** Once its message stands in the room; without it the trouble comes by itself. */
  readonly then?: (taskId: string) => Promise<unknown>;
  /** How far it got in Band: the last call of room, participant, marker and message. */
  readonly writes?: 1 | 2 | 3 | 4;
  /** What else is written into the room. */
  readonly also?: number;
}

const directive = (state: string) => `${SAID}\n\`\`\`a2a\n{"state":"${state}"}\n\`\`\``;
const SAID = 'That is not for me.';
const always = (method: keyof BandCalls, status: number, code: ErrorCode) => (rooms: FakeRooms) => {
  rooms.fail(method, refused(status, code), { times: 1_000 });
};
const untilDeadline = async () => {
  await lab.until(() => lab.rooms.calls.length > 4);
  for (let n = 0; n < 6; n += 1) await lab.clock.advance(5_000);
};

let lab: A2ALab;
afterEach(() => lab.close());

const ROWS: Row[] = [
  {
    what: 'a peer that is silent',
    reason: 'PEER_TIMEOUT',
    says: 'The agent did not answer in time.',
    options: { responseTimeoutMs: 1_000 },
    then: () => lab.clock.advance(1_000),
  },
  {
    what: 'a peer that is silent, where that parks the task',
    reason: 'WAITING_FOR_BAND',
    state: 'INPUT_REQUIRED',
    says: 'Helper has not answered yet. The request stays open and continues when the answer arrives.',
    options: { responseTimeoutMs: 1_000, onTimeout: 'park' },
    then: () => lab.clock.advance(1_000),
  },
  {
    what: 'a peer whose delivery failed',
    reason: 'PEER_FAILED',
    says: 'The agent failed to handle the request.',
    options: { completion: 'auto', responseTimeoutMs: null },
    given: (rooms) => {
      rooms.showDelivery = true;
      rooms.deliveredAs = 'failed';
    },
    then: async () => {
      await lab.clock.advance(15_000);
      await lab.clock.advance(10_000);
    },
  },
  {
    what: 'a peer that says it failed',
    reason: 'PEER_SAID',
    says: SAID,
    then: () => lab.reply(directive('failed')),
  },
  {
    what: 'a peer that refuses',
    reason: 'PEER_SAID',
    state: 'REJECTED',
    says: SAID,
    then: () => lab.reply(directive('rejected')),
  },
  {
    what: 'a peer that ends it without a word',
    reason: 'PEER_SAID',
    says: 'The agent ended the request.',
    then: () => lab.reply('```a2a\n{"state":"failed"}\n```'),
  },
  {
    what: 'a peer that left the room',
    reason: 'PEER_LEFT',
    says: 'The agent left the conversation.',
    then: () => lab.adapter.onParticipants(lab.roomId, { kind: 'removed', id: HELPER.id }),
  },
  {
    what: 'a peer that is gone from the directory',
    reason: 'PEER_REMOVED',
    says: 'The agent is no longer available.',
    options: { peers: { refreshSeconds: 5 } },
    then: async () => {
      lab.rooms.peers = [WEATHER];
      await lab.clock.advance(5_000);
      await lab.clock.advance(5_000);
    },
  },
  {
    what: 'a peer that may not be added',
    reason: 'PEER_UNREACHABLE',
    says: 'The agent cannot be reached.',
    given: always('addParticipant', 403, 'BAND_FORBIDDEN'),
    writes: 2,
  },
  {
    what: 'a peer that Band does not know',
    reason: 'PEER_UNREACHABLE',
    says: 'The agent cannot be reached.',
    given: always('addParticipant', 404, 'BAND_NOT_FOUND'),
    writes: 2,
  },
  ...(
    [
      ['rooms', 'createChat', 1],
      ['participants', 'addParticipant', 2],
      ['events', 'postEvent', 3],
      ['messages', 'postMessage', 4],
    ] as const
  ).map(([quota, method, writes]): Row => ({
    what: `a quota of ${quota} that is used up`,
    reason: 'BAND_QUOTA',
    says: 'A quota of the platform is used up.',
    given: always(method, 403, 'ROOM_LIMIT'),
    writes,
  })),
  ...(['postEvent', 'postMessage'] as const).map((method): Row => ({
    what: `the gateway stopped in the room, seen by ${method}`,
    reason: 'GATEWAY_STOPPED',
    says: 'The gateway was stopped in this conversation.',
    given: always(method, 403, 'BAND_ROOM_STOPPED'),
    writes: method === 'postEvent' ? 3 : 4,
  })),
  {
    what: 'a post that Band refuses',
    reason: 'BAND_REJECTED',
    says: 'The platform refused the request.',
    // The first refusal may mean that the peer is not in the room; it was added a moment ago.
    given: always('postMessage', 422, 'BAND_INVALID'),
    writes: 4,
  },
  ...(
    [
      ['408', 408, 'BAND_TIMEOUT'],
      ['429', 429, 'BAND_RATE_LIMITED'],
      ['503', 503, 'BAND_UNAVAILABLE'],
      ['no network', 500, 'BAND_UNREACHABLE'],
    ] as const
  ).map(([name, status, code]): Row => ({
    what: `Band out of order until the deadline (${name})`,
    reason: 'BAND_UNAVAILABLE',
    says: 'The platform is not available.',
    given: always('addParticipant', status, code),
    then: untilDeadline,
    writes: 2,
  })),
  {
    what: 'a key that Band takes no more',
    reason: 'BAND_UNAUTHORIZED',
    says: 'The gateway is not allowed to use the platform.',
    given: always('createChat', 401, 'BAND_UNAUTHORIZED'),
    writes: 1,
  },
  {
    what: 'a room that is gone',
    reason: 'ROOM_CLOSED',
    says: 'The conversation was closed.',
    then: () => lab.adapter.onCleanup(lab.roomId, { reason: 'room_deleted' }),
  },
  {
    what: 'a task that is open for too long',
    reason: 'EXPIRED',
    says: 'The request was open for too long.',
    options: { tasks: { ttlSeconds: 60 }, responseTimeoutMs: null },
    then: () => lab.clock.advance(60_000),
  },
  {
    what: 'a bug on the way into the room',
    reason: 'INTERNAL',
    says: 'Something went wrong inside the gateway.',
    given: (rooms) => {
      rooms.fail('addParticipant', new TypeError(`${CANARY} in secret.ts`));
    },
    writes: 2,
  },
  {
    what: 'an answer that cannot be read',
    reason: 'INTERNAL',
    says: 'Something went wrong inside the gateway.',
    ports: {
      readReply: () => {
        throw new Error(`${CANARY} in secret.ts`);
      },
    },
    then: () => lab.reply('done'),
  },
];

const CALLS = [/^POST \/chats$/, /participants$/, /events$/, /messages$/];
const ended = () => lab.lines.filter(({ msg }) => msg === 'a2a task ended');

const start = async (row: Row): Promise<{ stream: Stream; id: string }> => {
  const rooms = new FakeRooms();
  row.given?.(rooms);
  lab = await a2aLab({
    rooms,
    durable: row.durable ?? true,
    ...(row.options && { options: row.options }),
    ...(row.ports && { ports: row.ports }),
  });
  const stream = await lab.client.stream('helper', 'SendStreamingMessage', message(CANARY));
  const { id } = (await stream.next())!.result.task;
  if ((row.writes ?? 4) === 4 && !row.given) await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
  else if (row.then && row.writes === undefined) await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
  return { stream, id };
};

describe('the trouble of a task becomes its state', () => {
  it.each(ROWS.map((row) => [row.what, row.reason, row] as const))(
    'A-158 %s: %s, to all who look, in fixed words',
    async (_what, _reason, row) => {
      const { stream, id } = await start(row);
      await row.then?.(id);
      const state = `TASK_STATE_${row.state ?? 'FAILED'}`;
      // Ended tasks of a peer that is gone are read under its id.
      const read = () => lab.client.rpc(HELPER.id, 'GetTask', { id });
      await lab.until(async () => (await read()).body.result.status.state === state, state);
      const last = (await stream.rest()).at(-1)!.result.statusUpdate;
      expect(last.status).toMatchObject({
        state,
        message: { role: 'ROLE_AGENT', taskId: id, parts: [{ text: row.says }], metadata: { band_reason: row.reason } },
      });
      expect(last.status.message?.parts).toHaveLength(1);

      const [current, older, rest] = await Promise.all(getWays(id).map((way) => way.ask(lab.client, HELPER.id)));
      expect(current!.body.result.status).toEqual(last.status);
      expect(rest!.body.status).toEqual(last.status);
      expect(older!.body.result).toMatchObject({
        kind: 'task',
        status: {
          state: (row.state ?? 'FAILED').toLowerCase().replace('_', '-'),
          message: {
            kind: 'message',
            role: 'agent',
            parts: [{ kind: 'text', text: row.says }],
            metadata: { band_reason: row.reason },
          },
        },
      });
      expect(current!.body.result.artifacts).toBeUndefined();
      const listed = await lab.client.rpc(HELPER.id, 'ListTasks', { status: state });
      expect(listed.body.result.tasks.map((task) => task.status)).toEqual([last.status]);

      // Nothing beyond the call that met the trouble, and a room that was told nothing of it.
      const { writes = 4, also = 0 } = row;
      const seen = CALLS.map((call) => lab.rooms.countOf(call) > 0);
      expect(seen).toEqual(CALLS.map((_, at) => at < writes));
      const posted = lab.rooms.posted.length;
      expect([posted, lab.rooms.rooms.get(lab.roomId)?.rows.length ?? 0]).toEqual([
        row.then && writes === 4 ? 1 : 0,
        (writes > 3 ? 1 : 0) + posted + also,
      ]);
      await lab.until(() => ended().length === (row.state === 'INPUT_REQUIRED' ? 0 : 1));
      const parked = lab.lines.filter(({ msg }) => msg === 'a2a task parked');
      expect(parked).toHaveLength(row.state === 'INPUT_REQUIRED' ? 1 : 0);
      for (const line of parked) expect(line).toMatchObject({ taskId: id, reason: row.reason });
      for (const line of ended()) {
        expect(line).toMatchObject({ taskId: id, state: (row.state ?? 'FAILED').toLowerCase(), reason: row.reason });
      }
      saysNoMore([current!.text, older!.text, rest!.text, listed.text, JSON.stringify(last)]);
    },
  );

  it('A-158 a cancel: CLIENT_CANCELLED, in the event and in the log, without a sentence', async () => {
    const { stream, id } = await start({ what: '', reason: '', says: '' });
    await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
    const cancelled = await lab.client.rpc('helper', 'CancelTask', { id });
    const last = (await stream.rest()).at(-1)!.result.statusUpdate;
    expect([last.status.state, last.status.message, last.metadata]).toEqual([
      'TASK_STATE_CANCELED',
      undefined,
      { band_reason: 'CLIENT_CANCELLED' },
    ]);
    expect(cancelled.body.result.status).toEqual(last.status);
    for (const way of getWays(id)) {
      const { text } = await way.ask(lab.client, 'helper');
      expect(text).toMatch(/"state":"(?:TASK_STATE_CANCELED|canceled)"/);
      saysNoMore([text]);
    }
    expect(ended()).toMatchObject([{ taskId: id, state: 'canceled', reason: 'CLIENT_CANCELLED' }]);
    await lab.until(() => lab.rooms.rooms.get(lab.roomId)?.rows.length === 3);
    saysNoMore([cancelled.text, JSON.stringify(last)]);
  });

  it('A-158 A-326 a stop that loses the tasks: GATEWAY_SHUTDOWN', async () => {
    const { stream, id } = await start({ what: '', reason: '', says: '', durable: false });
    await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
    await lab.close();
    const last = (await stream.rest()).at(-1)!.result.statusUpdate;
    expect(last.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'The gateway was shut down.' }], metadata: { band_reason: 'GATEWAY_SHUTDOWN' } },
    });
    expect(ended()).toMatchObject([{ taskId: id, state: 'failed', reason: 'GATEWAY_SHUTDOWN' }]);
    saysNoMore([JSON.stringify(last)]);
  });

  it('A-158 a key that Band takes no more is said to whoever asks whether the gateway is ready', async () => {
    const row = ROWS.find(({ reason }) => reason === 'BAND_UNAUTHORIZED')!;
    const { id } = await start(row);
    await lab.until(async () => (await lab.get(id)).status.state === 'TASK_STATE_FAILED');
    expect(blockersOf(lab.adapter, lab.clock, 0)).toMatchObject([{ name: 'a2a.credentials' }]);
    expect((await lab.client.rpc('helper', 'SendMessage', message('x'))).status).toBe(503);
    lab.rooms.clearFaults();
    await lab.clock.advance(60_000);
    await lab.until(() => blockersOf(lab.adapter, lab.clock, 0).length === 0);
  });
});

/** The client's own words come back in the history and nowhere else; no line of the log holds them or a credential. */
function saysNoMore(answers: readonly string[]): void {
  for (const text of answers) expectSilent(text.replaceAll(`"text":"${CANARY}"`, ''));
  for (const line of lab.lines) {
    const text = JSON.stringify(line);
    for (const secret of [KEY, OTHER_KEY, 'band_a_canary']) expect(text).not.toContain(secret);
    // What a bug says of itself is for the operator.
    if (Number(line['level']) < 50) expect(text).not.toContain(CANARY);
  }
}
