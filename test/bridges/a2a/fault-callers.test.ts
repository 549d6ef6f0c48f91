import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { GatewayError } from '../../../src/base/errors.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { message } from '../../support/a2a/client.js';
import { FakeRooms, HELPER, refused, WEATHER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, OTHER_KEY, type A2ALab, type LabOptions } from '../../support/a2a/lab.js';
import { CANARY, expectRefused, expectSilent, REFUSALS } from '../../support/a2a/refusals.js';
import * as ways from '../../support/a2a/ways.js';

const SOON = { 'retry-after': expect.stringMatching(/^[1-9]\d*$/) as unknown as string };
const NOW = { returnImmediately: true };

let lab: A2ALab;
afterEach(() => lab.close());
const open = async (options: A2AOptionsInput = {}, more: Partial<LabOptions> = {}) => {
  lab = await a2aLab({ options, ...more });
};
/** A message that says the canary; every one has an id of its own. */
const said = (fields: Record<string, unknown> = {}) => ({
  messageId: crypto.randomUUID(),
  parts: [{ text: CANARY }],
  ...fields,
});
const sends = (fields?: Record<string, unknown>, configuration?: Record<string, unknown>) =>
  ways.sendWays(said(fields), configuration);
/** A task of the first principal whose peer is at work. */
const working = async (fields: Record<string, unknown> = {}) => {
  const before = lab.rooms.posted.length;
  const taskId = await lab.submit('job', fields);
  await lab.posted(before + 1);
  await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING');
  return taskId;
};
const ended = async (fields: Record<string, unknown> = {}) => {
  const taskId = await working(fields);
  await lab.reply('done');
  return taskId;
};

describe('a task that cannot be used so', () => {
  it('A-086 A-088 A-221 one that is unknown, of another principal, of another peer, or expired', async () => {
    await open({ tasks: { retentionSeconds: 60 } });
    const mine = await working({ contextId: 'c' });
    const other = { headers: { 'x-api-key': OTHER_KEY } };
    for (const [taskId, more] of [
      ['no-such-task', {}],
      [mine, other],
      [mine, { peer: 'weather-bot' }],
    ] as const) {
      await expectRefused(lab, sends({ taskId }), REFUSALS.taskUnknown, more);
      for (const of of [ways.getWays, ways.cancelWays, ways.subscribeWays]) {
        await expectRefused(lab, of(taskId), REFUSALS.taskUnknown, more);
      }
    }
    await lab.reply('done');
    await lab.clock.advance(130_000);
    await lab.until(async () => (await lab.client.rpc('helper', 'GetTask', { id: mine })).body.error?.code === -32001);
    await expectRefused(lab, sends({ taskId: mine }), REFUSALS.taskUnknown);
    await expectRefused(lab, ways.getWays(mine), REFUSALS.taskUnknown);
  });

  it('A-221 one of another context', async () => {
    await open();
    const taskId = await working({ contextId: 'c' });
    await expectRefused(lab, sends({ taskId, contextId: 'd' }), { ...REFUSALS.params, fields: ['message.contextId'] });
  });

  it('A-221 A-208 A-242 one that has ended takes no message, no cancel and no subscriber', async () => {
    await open();
    const taskId = await ended();
    const metadata = { state: 'TASK_STATE_COMPLETED' };
    await expectRefused(lab, sends({ taskId }), { ...REFUSALS.taskEnded, metadata });
    const named = { taskId, ...metadata };
    await expectRefused(lab, ways.cancelWays(taskId), { ...REFUSALS.notCancelable, metadata: named });
    await expectRefused(lab, ways.subscribeWays(taskId), { ...REFUSALS.taskOver, metadata: named });
  });

  it('A-223 one that is running, where further messages are refused', async () => {
    await open({ followup: 'reject' });
    const taskId = await working();
    await expectRefused(lab, sends({ taskId }), { ...REFUSALS.taskBusy, metadata: { state: 'TASK_STATE_WORKING' } });
  });

  it('A-225 a messageId that stands for other words', async () => {
    await open();
    await working({ messageId: 'm-1' });
    await expectRefused(lab, sends({ messageId: 'm-1' }), { ...REFUSALS.idReused, metadata: { messageId: 'm-1' } });
  });
});

describe('a caller who may not', () => {
  it('A-080 one without a credential, with an unknown, an expired or a doubled one', async () => {
    const apiKeys = [
      { name: 'alpha', key: KEY },
      { name: 'old', key: 'expired-key', expires: '2025-12-31T00:00:00Z' },
    ];
    await open({ auth: { apiKeys } }, { client: { headers: {} } });
    const challenge = (said: string) => ({
      'www-authenticate': `Bearer realm="a2a"${said}, ApiKey realm="a2a", header="X-API-Key"`,
    });
    await expectRefused(lab, sends(), { ...REFUSALS.unauthenticated, headers: challenge('') });
    for (const headers of [
      { 'x-api-key': 'wrong' },
      { authorization: 'Bearer wrong' },
      { 'x-api-key': 'expired-key' },
      { authorization: `Basic ${CANARY}` },
    ]) {
      const refusal = { ...REFUSALS.unauthenticated, headers: challenge(', error="invalid_token"') };
      for (const each of [sends(), ways.getWays('x'), ways.listWays({}), ways.extendedCardWays()]) {
        await expectRefused(lab, each, refusal, { headers });
      }
      await expectRefused(lab, sends(), refusal, { peer: 'nobody', headers });
    }
  });

  it('A-084 one whose credential lacks the scope of the operation', async () => {
    const apiKeys = [
      { name: 'alpha', key: KEY, scopes: ['a2a.read' as const] },
      { name: 'beta', key: OTHER_KEY, scopes: ['a2a.send' as const] },
    ];
    await open({ auth: { apiKeys } });
    const sender = { headers: { 'x-api-key': OTHER_KEY } };
    const lacks = (scope: string) => ({ ...REFUSALS.scope, metadata: { scope } });
    await expectRefused(lab, sends(), lacks('a2a.send'));
    await expectRefused(lab, ways.cancelWays('x'), lacks('a2a.cancel'));
    await expectRefused(lab, ways.extendedCardWays(), lacks('a2a.card'));
    for (const each of [ways.getWays('x'), ways.listWays({}), ways.subscribeWays('x')]) {
      await expectRefused(lab, each, lacks('a2a.read'), sender);
    }
    await expectRefused(lab, ways.onRpc(ways.pushWays('x', 'https://hook.example.test')), lacks('a2a.push'));
  });

  it('A-031 A-085 one who asks for a peer that is unknown, not theirs, or gone', async () => {
    const apiKeys = [
      { name: 'alpha', key: KEY },
      { name: 'beta', key: OTHER_KEY, peers: ['weather-bot'] },
    ];
    await open({ auth: { apiKeys }, peers: { refreshSeconds: 5 } });
    const unknown = (alias: string) => ({ ...REFUSALS.peerUnknown, metadata: { alias } });
    for (const each of [sends(), ways.getWays('x'), ways.listWays({})]) {
      await expectRefused(lab, each, unknown('nobody'), { peer: 'nobody' });
      await expectRefused(lab, each, unknown('helper'), { headers: { 'x-api-key': OTHER_KEY } });
    }
    lab.rooms.peers = [WEATHER];
    await lab.clock.advance(5_000);
    await lab.clock.advance(5_000);
    await lab.until(() => lab.adapter.gateway.directory.byId(HELPER.id) === null);
    await expectRefused(lab, sends(), unknown('helper'));
    // Under its id its ended tasks are still there, and nothing can be sent.
    for (const each of [sends(), ways.cancelWays('x'), ways.subscribeWays('x'), ways.extendedCardWays()]) {
      await expectRefused(lab, each, { ...unknown(HELPER.id), id: ways.ASKED_ID }, { peer: HELPER.id });
    }
    await expectRefused(lab, ways.getWays('x'), REFUSALS.taskUnknown, { peer: HELPER.id });
  });
});

describe('a limit that is reached', () => {
  it('A-340 rates, per principal and per address', async () => {
    await open({ limits: { ratePerMin: 60, burst: 1 } });
    await lab.client.rpc('helper', 'ListTasks', {});
    await expectRefused(lab, sends(), { ...REFUSALS.rateLimited, headers: SOON });
    await lab.close();
    await open({ limits: { ipRatePerMin: 1 } });
    await lab.client.rpc('helper', 'ListTasks', {});
    await expectRefused(lab, [...sends(), ...ways.getWays('x')], { ...REFUSALS.rateLimited, headers: SOON });
  });

  it('A-251 streams', async () => {
    await open({ limits: { streamsPerPrincipal: 1 } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    const { id } = (await stream.next())!.result.task;
    await lab.until(async () => (await lab.get(id)).status.state === 'TASK_STATE_WORKING');
    const streaming = sends().filter(({ name }) => /stream/i.test(name));
    await expectRefused(lab, [...streaming, ...ways.subscribeWays(id)], { ...REFUSALS.streamLimit, headers: SOON });
    await stream.cancel();
  });

  it('A-204 tasks that wait in one lane', async () => {
    await open({ laneQueue: 1 });
    await working({ contextId: 'c' });
    await lab.submit('next', { contextId: 'c' });
    await expectRefused(lab, sends({ contextId: 'c' }), { ...REFUSALS.contextBusy, headers: SOON });
  });

  it('A-214 open tasks, of one principal and of all', async () => {
    await open({ limits: { openTasks: 2, openTasksPerPrincipal: 1 } });
    await working();
    await expectRefused(lab, sends(), { ...REFUSALS.taskLimit, headers: SOON });
    const beta = { 'x-api-key': OTHER_KEY };
    await lab.client.rpc('helper', 'SendMessage', message('job', {}, NOW), { headers: beta });
    await lab.posted(2);
    await lab.until(() => [...lab.engine.book.openTasks()].every(({ row }) => row.posted === 1));
    await lab.close();
    lab = await lab.restarted({ options: { limits: { openTasks: 2, openTasksPerPrincipal: 9 } } });
    await expectRefused(lab, sends(), { ...REFUSALS.capacity, headers: SOON });
  });
});

describe('a gateway that cannot', () => {
  const SOON_5 = { 'retry-after': '5' };

  it('A-007 has not read its peers yet', async () => {
    const rooms = new FakeRooms();
    rooms.fail('listPeers', refused(500, 'BAND_UNAVAILABLE'), { times: 1_000 });
    await open({}, { rooms, ready: false });
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('directory could not be read')));
    const unread = { ...REFUSALS.notReady, id: null, headers: SOON_5 };
    const card: ways.Way = {
      name: 'card',
      style: 'rest',
      ask: (client, peer) => client.request('GET', `/agents/${peer}/.well-known/agent-card.json`),
    };
    const peers: ways.Way = { name: 'peers', style: 'rest', ask: (client) => client.request('GET', '/peers') };
    await expectRefused(lab, [...sends(), ...ways.getWays('x'), card, peers], unread);
  });

  it('A-324 has not searched its rooms for a context it does not know', async () => {
    const rooms = new FakeRooms();
    rooms.fail('listChats', refused(500, 'BAND_RATE_LIMITED'), { times: 1_000 });
    await open({ dispatchDeadlineMs: 1 }, { rooms });
    const waits = sends({ contextId: 'c' }).map(({ ask, ...way }) => ({
      ...way,
      ask: async (...asked: Parameters<ways.Way['ask']>) => {
        const pending = lab.clock.pending;
        const answer = ask(...asked);
        await lab.until(() => lab.clock.pending > pending);
        await lab.clock.advance(1);
        return answer;
      },
    }));
    await expectRefused(lab, waits, { ...REFUSALS.notReady, headers: SOON_5 });
  });

  it('A-153 has no Band, or whose key Band takes no more: nothing new, also no further message', async () => {
    await open();
    const taskId = await working();
    lab.adapter.onConnection(false);
    await lab.clock.advance(30_000);
    const down = { ...REFUSALS.bandDown, headers: SOON_5 };
    await expectRefused(lab, [...sends(), ...sends({ taskId })], down);
    lab.adapter.onConnection(true);
    for (const method of ['listPeers', 'listChats'] as const) {
      lab.rooms.fail(method, refused(401, 'BAND_UNAUTHORIZED'), { times: 1_000 });
    }
    await lab.clock.advance(30_000);
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('could not be read')));
    await expectRefused(lab, sends(), down);
    expect((await lab.get(taskId)).status.state).toBe('TASK_STATE_WORKING');
  });

  it('A-153 can write nothing', async () => {
    const store = createMemoryStore();
    let isFull = false;
    const guarded: StateStore = {
      ...store,
      batch: (changes) => (isFull ? Promise.reject(new GatewayError('STORE_TRIPPED')) : store.batch(changes)),
    };
    await open({}, { store: guarded });
    const taskId = await working();
    isFull = true;
    const all = [...sends(), ...sends({ taskId }), ...ways.cancelWays(taskId)];
    await expectRefused(lab, all, { ...REFUSALS.storeDown, headers: SOON });
    isFull = false;
  });

  it('A-326 is about to stop', async () => {
    await open();
    lab.rooms.hold('createChat');
    await lab.submit('x');
    await lab.until(() => lab.rooms.countOf(/^POST \/chats$/) === 1);
    const stopped = lab.close();
    const last = { ...REFUSALS.stopping, headers: { ...SOON_5, connection: 'close' } };
    await expectRefused(lab, [...sends(), ...ways.getWays('x'), ...ways.listWays({})], last);
    await lab.clock.advance(30_000);
    await stopped;
  });

  it('A-158 has a bug: the request id and nothing else, and one line in the log for each', async () => {
    const store = createMemoryStore();
    let isBroken = false;
    const guarded: StateStore = {
      ...store,
      get: (key) => (isBroken ? Promise.reject(new Error(`${CANARY} in secret.ts`)) : store.get(key)),
    };
    await open({}, { store: guarded });
    isBroken = true;
    const all = [...sends(), ...ways.getWays('x'), ...ways.cancelWays('x'), ...ways.subscribeWays('x')];
    for (const way of all) {
      const answer = await way.ask(lab.client, 'helper');
      const requestId = answer.headers.get('x-request-id');
      const details = [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'INTERNAL',
          domain: 'band-gateway',
          metadata: { requestId },
        },
      ];
      const message = 'An internal error occurred.';
      expect([way.name, answer.status, answer.body]).toEqual([
        way.name,
        500,
        way.style === 'rest'
          ? { error: { code: 500, status: 'INTERNAL', message, details } }
          : { jsonrpc: '2.0', id: ways.ASKED_ID, error: { code: -32603, message, data: details } },
      ]);
      expectSilent(answer.text);
      expect(lab.lines.filter((line) => line['requestId'] === requestId).map(({ msg }) => msg)).toEqual([
        'a request failed',
      ]);
    }
    isBroken = false;
    expect([lab.engine.held.tasks, lab.rooms.writes.length]).toEqual([0, 0]);
  });
});
