import { connect } from 'node:net';
import { EventSource } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { kindOf, legacyMessage, message, type Body, type Stream } from '../../support/a2a/client.js';
import { a2aLab, KEY, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';

describe('a stream', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const watchers = (taskId: string) => lab.engine.book.find(taskId)?.watchers.size ?? 0;
  const working = async (taskId: string) => {
    await lab.until(async () => (await lab.get(taskId)).status.state === 'TASK_STATE_WORKING', 'working');
  };

  it('A-240 begins with the task, keeps the order of the log and closes after a terminal or interrupted status', async () => {
    lab = await a2aLab({ options: { completion: 'settle' } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('plan'));
    expect(stream.status).toBe(200);
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    expect(stream.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(stream.headers.get('x-accel-buffering')).toBe('no');
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    await lab.reply('On it.');
    await lab.reply('Morning: …');
    await lab.clock.advance(300);
    const events = await stream.rest();
    expect(events.map(kindOf)).toEqual(['artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    expect(events[0]?.result.artifactUpdate).toMatchObject({ lastChunk: true, artifact: { name: 'reply' } });

    const asked = await lab.client.stream('helper', 'SendStreamingMessage', message('pay'));
    await asked.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    await lab.reply(`Which?${ASK}`);
    expect((await asked.rest()).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  it('A-241 A-244 subscribers of every moment see the task and then only what came later, the same for all', async () => {
    lab = await a2aLab({ options: { completion: 'settle' } });
    const taskId = await lab.submit('twenty parts');
    await working(taskId);
    const streams: Stream[] = [];
    for (let cut = 0; cut < 20; cut += 1) {
      streams.push(await lab.client.stream('helper', 'SubscribeToTask', { id: taskId }));
      await lab.until(() => watchers(taskId) === cut + 1);
      await lab.reply(`part ${cut}`);
    }
    const twins = await Promise.all(
      [0, 1, 2].map(() => lab.client.stream('helper', 'SubscribeToTask', { id: taskId })),
    );
    await lab.until(() => watchers(taskId) === 23);
    await lab.clock.advance(300);
    const whole = (await lab.get(taskId)).artifacts?.map(({ artifactId }) => artifactId);
    for (const [cut, stream] of streams.entries()) {
      const [first, ...later] = await stream.rest();
      const had = first!.result.task.artifacts ?? [];
      expect(had).toHaveLength(cut);
      const came = later.flatMap(({ result }) =>
        result.artifactUpdate ? [result.artifactUpdate.artifact.artifactId] : [],
      );
      expect([...had.map(({ artifactId }) => artifactId), ...came]).toEqual(whole);
      expect(later.at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    }
    const [a, b, c] = await Promise.all(twins.map((twin) => twin.rest()));
    expect(b).toEqual(a);
    expect(c).toEqual(a);
  });

  it('A-242 a subscription to an interrupted task lasts to its end; ended and unknown tasks are refused', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('pay');
    await working(taskId);
    await lab.reply(`Which?${ASK}`);
    const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    expect((await stream.next())?.result.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.submit('the main one', { taskId });
    await lab.posted(2);
    await lab.until(() => lab.engine.book.find(taskId)?.row.posted === 2);
    await lab.reply('done');
    expect((await stream.rest()).map(kindOf)).toEqual(['statusUpdate', 'artifactUpdate', 'statusUpdate']);
    const ended = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    expect((await ended.next())?.error).toMatchObject({ code: -32004, data: [{ reason: 'UNSUPPORTED_OPERATION' }] });
    const unknown = await lab.client.stream('helper', 'SubscribeToTask', { id: 'nope' });
    expect((await unknown.next())?.error.code).toBe(-32001);
  });

  it('A-243 a subscription opens by GET, by POST and in the older dialect', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('x');
    await working(taskId);
    const path = `/agents/helper/tasks/${taskId}:subscribe`;
    const streams = [
      await lab.client.restStream(path, undefined, { method: 'GET' }),
      await lab.client.restStream(path, undefined, { method: 'POST' }),
      await lab.client.stream('helper', 'tasks/resubscribe', { id: taskId }, { version: null }),
    ];
    await lab.until(() => watchers(taskId) === 3);
    await lab.reply('done');
    const [get, post, legacy] = await Promise.all(streams.map((stream) => stream.rest()));
    expect(get!.map(kindOf)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    expect(post).toEqual(get);
    expect(legacy!.map(kindOf)).toEqual(['task', 'artifact-update', 'status-update']);
  });

  it('A-245 a quiet stream carries a comment line in its time', async () => {
    lab = await a2aLab({ options: { responseTimeoutMs: null } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('slow'));
    const { id } = (await stream.next())!.result.task;
    await working(id);
    await lab.clock.advance(15_000);
    await lab.clock.advance(15_000);
    await lab.reply('done');
    await stream.rest();
    expect(stream.comments).toEqual([': keep-alive', ': keep-alive']);
  });

  it('A-245 A-253 the parser of browsers sees the events and no comment', async () => {
    lab = await a2aLab({ options: { auth: { anonymous: 'loopback' } }, client: { headers: {} } });
    const taskId = await lab.submit('x');
    await working(taskId);
    const source = new EventSource(`${lab.client.base}/agents/helper/tasks/${taskId}:subscribe?A2A-Version=1.0`);
    const seen: Body[] = [];
    source.onmessage = ({ data }) => seen.push(JSON.parse(data as string) as Body);
    await lab.until(() => seen.length === 1);
    await lab.clock.advance(15_000);
    await lab.reply('one\n\ndata: two\r\n: three');
    await lab.until(() => seen.length === 3);
    source.close();
    expect(seen.map(kindOf)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
    expect(seen[1]?.artifactUpdate.artifact.parts).toEqual([{ text: 'one\n\ndata: two\r\n: three' }]);
  });

  it('A-246 a reader that stops reading is cut off, and the others are not held up', async () => {
    lab = await a2aLab({ options: { completion: 'settle', stream: { bufferBytes: 200_000 } } });
    const taskId = await lab.submit('much');
    await working(taskId);
    const { port } = new URL(lab.client.base);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } });
    const lazy = connect(Number(port), '127.0.0.1');
    const gone = new Promise<void>((resolve) =>
      lazy.once('close', () => {
        resolve();
      }),
    );
    lazy.on('error', () => undefined);
    lazy.write(
      `POST /agents/helper HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await lab.until(() => watchers(taskId) === 1);
    lazy.pause();
    const eager = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    await lab.until(() => watchers(taskId) === 2);
    const reading = eager.rest();
    for (let n = 0; n < 400 && (lab.counters.get('band_a2a_streams_cut_total') ?? 0) === 0; n += 1) {
      await lab.reply('x'.repeat(100_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(lab.counters.get('band_a2a_streams_cut_total')).toBe(1);
    lazy.resume();
    await gone;
    await lab.clock.advance(300);
    expect((await reading).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    expect(watchers(taskId)).toBe(0);
  });

  it('A-247 a client that leaves frees its stream, and the task goes on', async () => {
    lab = await a2aLab();
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    const { id } = (await stream.next())!.result.task;
    await lab.posted(1);
    await stream.cancel();
    const probed = () => lab.clock.nextInMs !== null && lab.clock.nextInMs <= 1_000;
    await lab.until(() => watchers(id) === 0 || probed(), 'the closed half to be noticed');
    await lab.clock.advance(1_000);
    await lab.until(() => watchers(id) === 0, 'the stream to be freed');
    await lab.until(() => lab.counters.get('band_a2a_streams') === 0);
    await lab.reply('done');
    expect((await lab.get(id)).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('A-248 a client that closes only its own half gets its events', async () => {
    lab = await a2aLab();
    const { port } = new URL(lab.client.base);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: message('x') });
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    let seen = '';
    socket.on('data', (chunk: Buffer) => (seen += chunk.toString('utf8')));
    const over = new Promise<void>((resolve) =>
      socket.once('end', () => {
        resolve();
      }),
    );
    socket.end(
      `POST /agents/helper HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await lab.until(() => seen.includes('TASK_STATE_WORKING'), 'the first events');
    await lab.reply('done');
    await over;
    expect(seen).toContain('TASK_STATE_COMPLETED');
    socket.destroy();
  });

  const halfClosed = (method: string, params: object) => {
    const { port } = new URL(lab.client.base);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    let seen = '';
    socket.on('data', (chunk: Buffer) => (seen += chunk.toString('utf8')));
    const over = new Promise<string>((resolve) =>
      socket.once('end', () => {
        socket.destroy();
        resolve(seen);
      }),
    );
    socket.end(
      `POST /agents/helper HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    return over;
  };

  it('A-248 a client that closes its half and waits for the end of a task gets it', async () => {
    lab = await a2aLab();
    const over = halfClosed('SendMessage', message('x'));
    await lab.posted(1);
    await lab.clock.advance(59_000);
    await lab.reply('done');
    expect(await over).toContain('TASK_STATE_COMPLETED');
  });

  it('A-248 one that may be gone for good is answered after a minute with the task as it stands', async () => {
    lab = await a2aLab();
    const over = halfClosed('SendMessage', message('x'));
    await lab.posted(1);
    const [task] = [...lab.engine.book.openTasks()];
    await lab.until(() => task?.watchers.size === 1 && task.row.posted === 1);
    await lab.until(() => lab.clock.pending > 0);
    for (let n = 0; n < 61; n += 1) await lab.clock.advance(1_000);
    expect(await over).toContain('TASK_STATE_WORKING');
    expect(task?.watchers.size).toBe(0);
    await lab.reply('done');
    expect(lab.engine.held.tasks).toBe(0);
  });

  it('A-249 in 0.3 every event has its kind, and the last one alone is final', async () => {
    lab = await a2aLab();
    const older = { version: null };
    const done = await lab.client.stream('helper', 'message/stream', legacyMessage('x'), older);
    await done.until(({ result }) => result.status?.state === ('working' as string));
    await lab.reply('ok');
    const asked = await lab.client.stream('helper', 'message/stream', legacyMessage('x'), older);
    await asked.until(({ result }) => result.status?.state === ('working' as string));
    await lab.reply(`Which?${ASK}`);
    for (const stream of [done, asked]) {
      const events = await stream.rest();
      expect(events.every(({ result }) => typeof result.kind === 'string')).toBe(true);
      expect(events.map(({ result }) => result.final === true)).toEqual(
        events.map((_, at) => at === events.length - 1),
      );
    }
  });

  it('A-249 in 0.3 a subscription ends with an interrupted status too, which is final', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('pay');
    await working(taskId);
    const older = { version: null };
    const stream = await lab.client.stream('helper', 'tasks/resubscribe', { id: taskId }, older);
    const current = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
    await lab.until(() => watchers(taskId) === 2);
    await lab.reply(`Which?${ASK}`);
    expect((await stream.rest()).map(({ result }) => [result.kind, result.status?.state, result.final])).toEqual([
      ['task', 'working', undefined],
      ['status-update', 'input-required', true],
    ]);
    const again = await lab.client.stream('helper', 'tasks/resubscribe', { id: taskId }, older);
    expect((await again.rest()).map(({ result }) => [result.kind, result.status?.state])).toEqual([
      ['task', 'input-required'],
    ]);
    // The newer dialect goes on.
    expect(watchers(taskId)).toBe(1);
    await lab.client.rpc('helper', 'CancelTask', { id: taskId });
    expect((await current.rest()).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
  });

  it('A-250 what fails before the first event is an ordinary JSON answer', async () => {
    lab = await a2aLab();
    const rpc = await lab.client.stream('helper', 'SendStreamingMessage', message(' '));
    expect([rpc.status, rpc.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect((await rpc.next())?.error.code).toBe(-32602);
    const rest = await lab.client.restStream('/agents/helper/message:stream', message(' '));
    expect([rest.status, rest.headers.get('content-type')]).toEqual([400, 'application/a2a+json']);
  });

  it('A-251 over the cap a stream is refused, and one that ends gives its place back', async () => {
    lab = await a2aLab({ options: { limits: { streamsPerPrincipal: 1 } } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    await stream.next();
    const second = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    expect(second.status).toBe(429);
    expect(second.headers.get('retry-after')).not.toBeNull();
    expect((await second.next())?.error.data[0]?.reason).toBe('STREAM_LIMIT');
    await lab.posted(1);
    await lab.reply('done');
    await stream.rest();
    await lab.until(() => lab.counters.get('band_a2a_streams') === 0);
    expect((await lab.client.stream('helper', 'SendStreamingMessage', message('x'))).status).toBe(200);
  });

  it('A-252 an old stream ends without an end state, and a subscription continues it', async () => {
    lab = await a2aLab({ options: { stream: { maxAgeSeconds: 60 }, responseTimeoutMs: null } });
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    const { id } = (await stream.next())!.result.task;
    await working(id);
    await lab.clock.advance(60_000);
    const rest = await stream.rest();
    expect(rest.at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_WORKING');
    const again = await lab.client.stream('helper', 'SubscribeToTask', { id });
    await lab.until(() => watchers(id) === 1);
    await lab.reply('done');
    expect((await again.rest()).map(kindOf)).toEqual(['task', 'artifactUpdate', 'statusUpdate']);
  });

  it('A-253 lines, separators and emoji stay inside one data line', async () => {
    lab = await a2aLab();
    const text = 'one\ntwo\r\nthree\u2028four\n\ndata: five 👋';
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('x'));
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    await lab.reply(text);
    const [artifact] = await stream.rest();
    expect(artifact?.result.artifactUpdate.artifact.parts).toEqual([{ text }]);
  });
});
