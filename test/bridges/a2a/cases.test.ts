import { afterEach, describe, expect, it } from 'vitest';
import { kindOf, message } from '../../support/a2a/client.js';
import { FakeRooms, peer } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';
import { pushWays, sendWays } from '../../support/a2a/ways.js';

const PLANNER = peer('6f0a1c52-3b7e-4c11-9a40-00000000a002', 'Planner', 'acme/planner');
const NOW = { returnImmediately: true };

/** Situations that broke systems like this one, as a client meets them. */
describe('recorded failures', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const open = async (options: Parameters<typeof a2aLab>[0] = {}) => {
    lab = await a2aLab({
      rooms: new FakeRooms([PLANNER]),
      client: { headers: { authorization: `Bearer ${KEY}` } },
      ...options,
    });
  };
  const answerAll = (text: string) => {
    lab.rooms.onPost = async (roomId) => {
      await lab.reply(text, { roomId, from: PLANNER.id });
    };
  };

  it('A2A-01 each dialect is answered in its own spelling, and a version nobody has is refused', async () => {
    await open({ options: { trustProxy: ['127.0.0.1'], publicUrl: 'https://gw.example.test' } });
    answerAll('pong');
    const older = await lab.client.request(
      'POST',
      '/agents/planner',
      {
        jsonrpc: '2.0',
        id: 0,
        method: 'message/send',
        params: {
          message: { kind: 'message', messageId: 'm-old-1', role: 'user', parts: [{ kind: 'text', text: 'ping' }] },
          configuration: { blocking: true, acceptedOutputModes: ['text/plain'] },
        },
      },
      { version: null },
    );
    expect(older.body).toMatchObject({
      id: 0,
      result: {
        kind: 'task',
        status: { state: 'completed' },
        artifacts: [{ parts: [{ kind: 'text', text: 'pong' }] }],
        history: [{ kind: 'message', role: 'user' }],
      },
    });
    const newer = await lab.client.rpc('planner', 'SendMessage', message('ping'), { id: 'req-a' });
    expect(newer.body).toMatchObject({
      id: 'req-a',
      result: { task: { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'pong' }] }] } },
    });
    expect(Object.keys(newer.body.result)).toEqual(['task']);
    for (const spelling of ['"kind"', '"completed"', '"user"']) expect(newer.text).not.toContain(spelling);
    for (const spelling of ['TASK_STATE', 'ROLE_']) expect(older.text).not.toContain(spelling);

    const streamed = await lab.client.stream(
      'planner',
      'message/stream',
      { message: { kind: 'message', messageId: 'm-old-2', role: 'user', parts: [{ kind: 'text', text: 'ping' }] } },
      { version: null },
    );
    expect((await streamed.rest()).at(-1)?.result).toMatchObject({ kind: 'status-update', final: true });
    const events = await (await lab.client.stream('planner', 'SendStreamingMessage', message('ping'))).rest();
    expect(kindOf(events[0]!)).toBe('task');
    expect(kindOf(events.at(-1)!)).toBe('statusUpdate');

    const nobodys = await lab.client.rpc('planner', 'SendMessage', message('ping'), { version: '0.9' });
    expect(nobodys.body.error.code).toBe(-32009);
    const mixed = await lab.client.rpc('planner', 'message/send', message('ping'));
    expect(mixed.body.error.code).toBe(-32601);
    const card = await lab.client.request('GET', '/agents/planner/.well-known/agent-card.json', undefined, {
      headers: { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'other.example.test' },
    });
    const { supportedInterfaces } = card.body as unknown as { supportedInterfaces: { url: string }[] };
    expect(supportedInterfaces.every(({ url }) => url.startsWith('https://gw.example.test/'))).toBe(true);
  });

  it('A2A-04 a client that gave up and asks again gets the first task, and the job runs once', async () => {
    await open();
    const job = message('create the invoice', { messageId: 'm-idem-1' });
    const impatient = new AbortController();
    const first = lab.client.rpc('planner', 'SendMessage', job, { signal: impatient.signal }).catch(() => null);
    await lab.posted(1);
    await lab.clock.advance(5_000);
    impatient.abort();
    await first;
    const second = lab.client.rpc('planner', 'SendMessage', job, { id: 2 });
    await lab.clock.advance(2_800);
    await lab.until(() => [...lab.engine.book.openTasks()][0]?.watchers.size !== 0);
    await lab.reply('invoice 7 created', { from: PLANNER.id });
    const [again, later] = [await second, await lab.client.rpc('planner', 'SendMessage', job, { id: 3 })];
    for (const { body } of [again, later])
      expect(body.result.task.artifacts?.[0]?.parts).toEqual([{ text: 'invoice 7 created' }]);
    expect(later.body.result.task.id).toBe(again.body.result.task.id);
    const other = await lab.client.rpc(
      'planner',
      'SendMessage',
      message('create ANOTHER invoice', { messageId: 'm-idem-1' }),
    );
    expect(other.body.error.data[0]?.reason).toBe('MESSAGE_ID_REUSED');
    expect(lab.rooms.posted).toHaveLength(1);
    const beta = lab.client.as({ headers: { authorization: `Bearer ${OTHER_KEY}` } });
    const own = await beta.rpc('planner', 'SendMessage', { ...job, configuration: NOW });
    expect(own.body.result.task.id).not.toBe(again.body.result.task.id);
    expect(own.text).not.toContain('invoice 7');
    await lab.posted(2);
    expect(lab.rooms.rooms.size).toBe(2);
  });

  it('A2A-05 a cancelled task stays cancelled, is told to the room, and ends once', async () => {
    await open();
    const stream = await lab.client.stream('planner', 'SendStreamingMessage', message('slow job'));
    const { id } = (await stream.next())!.result.task;
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    const cancelled = await lab.client.rpc('planner', 'CancelTask', { id });
    expect(cancelled.body.result.status.state).toBe('TASK_STATE_CANCELED');
    expect((await stream.rest()).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    await lab.until(() => JSON.stringify(lab.rooms.writes.at(-1)?.body).includes('A2A request cancelled'));
    await lab.reply('too late', { from: PLANNER.id });
    const { text } = await lab.client.rpc('planner', 'GetTask', { id });
    expect(text).toContain('TASK_STATE_CANCELED');
    expect(text).not.toContain('too late');
    const quick = await lab.client.rpc('planner', 'SendMessage', message('job', {}, NOW));
    await lab.client.rpc('planner', 'CancelTask', { id: quick.body.result.task.id });
    const second = await lab.client.rpc('planner', 'CancelTask', { id: quick.body.result.task.id });
    expect(second.body.error.code).toBe(-32002);
    expect((await lab.client.rpc('planner', 'CancelTask', { id: 'task-unknown' })).body.error.code).toBe(-32001);
  });

  it.each([
    ['the answer first', ['reply', 'cancel']],
    ['the cancel first', ['cancel', 'reply']],
  ])(
    'A2A-05 an answer and a cancel in the same tick, %s, end the task once, everywhere alike',
    async (_name, order) => {
      await open();
      const stream = await lab.client.stream('planner', 'SendStreamingMessage', message('quick job'));
      const { id } = (await stream.next())!.result.task;
      await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
      const acts: Readonly<Record<string, () => Promise<unknown>>> = {
        reply: () => lab.reply('just in time', { from: PLANNER.id }),
        cancel: () => lab.engine.cancel('key:alpha', PLANNER.id, id),
      };
      const ends = await Promise.allSettled(order.map((act) => acts[act]!()));
      const cancelled = ends[order.indexOf('cancel')];
      const { status, artifacts } = (await lab.client.rpc('planner', 'GetTask', { id })).body.result;
      const events = await stream.rest();
      expect(events.at(-1)?.result.statusUpdate.status.state).toBe(status.state);
      const listed = await lab.client.rpc('planner', 'ListTasks', { status: status.state });
      expect(listed.body.result.totalSize).toBe(1);
      if (status.state === 'TASK_STATE_COMPLETED') {
        expect(cancelled).toMatchObject({ status: 'rejected', reason: { code: 'A2A_NOT_CANCELABLE' } });
        expect(artifacts?.[0]?.parts[0]?.text).toBe('just in time');
      } else {
        expect([status.state, cancelled?.status, artifacts]).toEqual(['TASK_STATE_CANCELED', 'fulfilled', undefined]);
      }
    },
  );

  it('A2A-06 A-286 push is not offered: no address is set in any way, the cards say so, and no task comes of it', async () => {
    await open();
    const capabilities = async (version: string) =>
      (
        (await lab.client.request('GET', '/agents/planner', undefined, { version })).body as unknown as {
          capabilities: object;
        }
      ).capabilities;
    for (const version of ['1.0', '0.3']) {
      expect(await capabilities(version)).toMatchObject({ pushNotifications: false });
    }
    const working = await lab.submit('job', {}, 'planner');
    await lab.posted(1);
    const writes = lab.rooms.writes.length;
    for (const url of [
      'http://127.0.0.1:8080/hook',
      'http://localhost/hook',
      'http://169.254.169.254/latest/meta-data/',
      'http://[::1]/hook',
      'http://[::ffff:10.0.0.5]/hook',
      'http://0x7f000001/hook',
      'http://10.1.2.3/hook',
      'file:///etc/hostname',
      'ftp://hook.example.test/x',
      'http://rebind.example.test/hook',
      'https://redirect.example.test/hook',
      'https://hook.example.test/ok',
    ]) {
      const inside = { ...NOW, taskPushNotificationConfig: { url, token: 'tok-1' } };
      for (const way of [
        ...pushWays(working, url),
        ...sendWays({ messageId: `m-ssrf ${url}`, parts: [{ text: 'job' }] }, inside),
      ]) {
        const { status, body } = await way.ask(lab.client, 'planner');
        const [code, reason] =
          way.style === 'rpc'
            ? [body.error.code, body.error.data[0]?.reason]
            : [body.error.code, body.error.details[0]?.reason];
        expect([url, way.name, status, code, reason]).toEqual([
          url,
          way.name,
          ...(way.style === 'rpc' ? [200, -32003] : [400, 400]),
          'PUSH_NOTIFICATION_NOT_SUPPORTED',
        ]);
      }
    }
    expect([lab.engine.held.tasks, lab.rooms.writes.length]).toEqual([1, writes]);
    await lab.reply('finished', { from: PLANNER.id });
    expect((await lab.get(working, 'planner')).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('A2A-08 another caller who knows the ids reads, stops, continues and joins nothing', async () => {
    await open();
    const mine = await lab.client.rpc('planner', 'SendMessage', message('alpha job', { contextId: 'ctx-a1' }, NOW));
    await lab.posted(1);
    await lab.reply('Which?\n```a2a\n{"state":"input-required"}\n```', { from: PLANNER.id });
    const { id } = mine.body.result.task;
    const beta = lab.client.as({ headers: { authorization: `Bearer ${OTHER_KEY}` } });
    for (const [method, params] of [
      ['GetTask', { id }],
      ['CancelTask', { id }],
      ['SubscribeToTask', { id }],
      ['SendMessage', message('continue please', { taskId: id, contextId: 'ctx-a1' })],
    ] as const) {
      expect([method, (await beta.rpc('planner', method, params)).body.error.code]).toEqual([method, -32001]);
    }
    await beta.rpc('planner', 'SendMessage', message('new job in your context', { contextId: 'ctx-a1' }, NOW));
    await lab.posted(2);
    expect((await beta.rpc('planner', 'ListTasks', { contextId: 'ctx-a1' })).body.result.totalSize).toBe(1);
    expect(new Set(lab.rooms.posted.map(({ roomId }) => roomId)).size).toBe(2);
    const nobody = lab.client.as({ headers: {} });
    const refused = await nobody.request('POST', '/agents/planner', 'not even JSON', { headers: {} });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('Bearer')]);
    expect((await lab.client.rpc('planner', 'GetTask', { id })).body.result.status.state).toBe(
      'TASK_STATE_INPUT_REQUIRED',
    );
  });

  it('A2A-09 A-215 tasks that nobody answers and streams whose client is gone leave nothing behind', async () => {
    const rounds = Number(process.env['A2A_LEAK_TASKS'] ?? 200);
    const cap = Math.min(500, rounds * 1.5);
    await open({
      options: {
        responseTimeoutMs: null,
        tasks: { ttlSeconds: 60, retentionSeconds: 3_600 },
        limits: { openTasks: cap, openTasksPerPrincipal: cap, streams: 5_000, streamsPerPrincipal: 5_000 },
        cancelNotice: 'none',
      },
    });
    const warnings: string[] = [];
    const onWarning = (warning: Error) => warnings.push(warning.name);
    process.on('warning', onWarning);
    const idle = { held: lab.engine.held, timers: lab.clock.pending };
    let refusals = 0;
    let firstTask = '';
    for (let n = 0; n < rounds; n += 1) {
      const answer = await lab.client.rpc('planner', 'SendMessage', message(`question ${n}`, {}, NOW));
      if (answer.body.error) refusals += 1;
      else firstTask ||= answer.body.result.task.id;
    }
    await lab.until(() => [...lab.engine.book.openTasks()].every(({ row }) => row.posted > 0));
    for (const { roomId } of lab.rooms.posted.slice(0, rounds / 2)) {
      await lab.reply('Which?\n```a2a\n{"state":"input-required"}\n```', { roomId, from: PLANNER.id });
    }
    const waiting = await lab.client.stream('planner', 'SubscribeToTask', { id: firstTask });
    await waiting.next();
    for (let n = 0; n < rounds; n += 1) {
      const stream = await lab.client.stream('planner', 'SendStreamingMessage', message(`stream ${n}`));
      if ((await stream.next())?.error) refusals += 1;
      await stream.cancel();
    }
    expect(refusals).toBe(2 * rounds - cap);
    expect(lab.engine.held.tasks).toBe(cap);
    await lab.clock.advance(120_000);
    expect((await waiting.rest()).at(-1)?.result.statusUpdate.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { metadata: { band_reason: 'EXPIRED' } },
    });
    await lab.until(() => lab.engine.held.tasks === 0 && lab.engine.held.lanes === 0);
    await lab.until(() => lab.counters.get('band_a2a_streams') === 0);
    await lab.until(() => lab.clock.pending <= idle.timers, 'the timers of the start');
    expect(lab.engine.held).toEqual(idle.held);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect((await lab.client.rpc('planner', 'GetTask', { id: firstTask })).body.result.status.state).toBe(
      'TASK_STATE_FAILED',
    );
  });
});
