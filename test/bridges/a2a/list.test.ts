import { afterEach, describe, expect, it } from 'vitest';
import { message } from '../../support/a2a/client.js';
import { a2aLab, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

describe('getting and listing tasks', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const list = async (params: object) => (await lab.client.rpc('helper', 'ListTasks', params)).body;
  const finished = async (text: string, contextId = text) => {
    const before = lab.rooms.posted.length;
    const taskId = await lab.submit(text, { contextId });
    await lab.posted(before + 1);
    await lab.reply('done', { roomId: lab.rooms.posted.at(-1)!.roomId });
    return taskId;
  };

  it('A-260 historyLength gives all, none, the last n, and no more than there is', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('one');
    await lab.posted(1);
    await lab.reply('Which?\n```a2a\n{"state":"input-required"}\n```');
    await lab.submit('two', { taskId });
    await lab.posted(2);
    const texts = (history: readonly { parts: readonly { text?: string }[] }[] | undefined) =>
      history?.map(({ parts }) => parts[0]?.text);
    const get = async (historyLength?: number) => {
      const rpc = await lab.client.rpc('helper', 'GetTask', {
        id: taskId,
        ...(historyLength !== undefined && { historyLength }),
      });
      const query = historyLength === undefined ? '' : `?historyLength=${historyLength}`;
      const rest = await lab.client.request('GET', `/agents/helper/tasks/${taskId}${query}`);
      expect(rest.body).toEqual(rpc.body.result);
      return texts(rpc.body.result.history);
    };
    expect(await get()).toEqual(['one', 'Which?', 'two']);
    expect(await get(0)).toBeUndefined();
    expect(await get(2)).toEqual(['Which?', 'two']);
    expect(await get(9)).toEqual(['one', 'Which?', 'two']);
    const listed = await list({ historyLength: 1 });
    expect(texts(listed.result.tasks[0]?.history)).toEqual(['two']);
    const repeated = await lab.client.rpc(
      'helper',
      'SendMessage',
      message('three', { taskId }, { returnImmediately: true, historyLength: 1 }),
    );
    expect(texts(repeated.body.result.task.history)).toEqual(['three']);
  });

  it('A-261 filters alone and together, newest first, ties by id', async () => {
    lab = await a2aLab();
    const a = await finished('a');
    await lab.clock.advance(1_000);
    const b = await finished('b');
    await lab.clock.advance(1_000);
    const c = await lab.submit('c', { contextId: 'b' });
    await lab.until(async () => (await lab.get(c)).status.state === 'TASK_STATE_WORKING');
    const ids = async (params: object) => (await list(params)).result.tasks.map(({ id }) => id);
    expect(await ids({})).toEqual([c, b, a]);
    expect(await ids({ contextId: 'b' })).toEqual([c, b]);
    expect(await ids({ status: 'TASK_STATE_COMPLETED' })).toEqual([b, a]);
    expect(await ids({ status: 3, contextId: 'b' })).toEqual([b]);
    const since = (await lab.get(b)).status.timestamp;
    expect(await ids({ statusTimestampAfter: since })).toEqual([c, b]);
    expect(await ids({ statusTimestampAfter: since.replace('Z', '+00:00'), status: 'TASK_STATE_COMPLETED' })).toEqual([
      b,
    ]);
    expect(await ids({ statusTimestampAfter: '0001-01-01T00:00:00Z' })).toEqual([c, b, a]);
    expect(await ids({ statusTimestampAfter: '9999-12-31T23:59:59Z' })).toEqual([]);
    const odd = await finished('x","b');
    expect(await ids({ contextId: 'b' })).toEqual([c, b]);
    expect(await ids({ contextId: 'x","b' })).toEqual([odd]);
    await lab.clock.advance(1_000);
    const [d, e] = [await finished('d'), await finished('e')];
    expect((await ids({})).slice(0, 2)).toEqual([d, e].sort());
  });

  it('A-262 pages hold each task once, also while tasks move, and the last has an empty token', async () => {
    lab = await a2aLab({ options: { limits: { openTasks: 500, openTasksPerPrincipal: 500 } } });
    const tasks: string[] = [];
    for (let n = 0; n < 120; n += 1) tasks.push(await lab.submit(`job ${n}`));
    await lab.posted(120);
    await lab.until(() => [...lab.engine.book.openTasks()].every(({ row }) => row.state === 'TASK_STATE_WORKING'));
    const seen: string[] = [];
    const sizes: number[] = [];
    let pageToken = '';
    do {
      const { result } = await list({ pageSize: 50, ...(pageToken !== '' && { pageToken }) });
      sizes.push(result.tasks.length);
      expect([result.totalSize, result.pageSize]).toEqual([120, 50]);
      seen.push(...result.tasks.map(({ id }) => id));
      pageToken = result.nextPageToken;
      await lab.clock.advance(10);
      // One that was seen already moves to the front, and comes no second time.
      if (pageToken !== '') await lab.client.rpc('helper', 'CancelTask', { id: seen[0] });
    } while (pageToken !== '');
    expect(sizes).toEqual([50, 50, 20]);
    expect(new Set(seen).size).toBe(120);
  });

  it('A-263 sizes out of range and tokens that are forged, foreign, old or of another query are refused', async () => {
    lab = await a2aLab();
    for (const n of ['a', 'b', 'c']) await finished(n);
    for (const pageSize of [0, 101, -1, 'abc', 1.5]) {
      expect((await list({ pageSize })).error).toMatchObject({
        code: -32602,
        data: [{ fieldViolations: [{ field: 'pageSize' }] }],
      });
    }
    const { nextPageToken } = (await list({ pageSize: 1 })).result;
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    const refusals = [
      await list({ pageSize: 1, pageToken: `${nextPageToken}x` }),
      await list({ pageSize: 1, pageToken: 'e30.e30' }),
      await list({ pageSize: 1, pageToken: nextPageToken, contextId: 'a' }),
      (await beta.rpc('helper', 'ListTasks', { pageSize: 1, pageToken: nextPageToken })).body,
      (await lab.client.rpc('weather-bot', 'ListTasks', { pageSize: 1, pageToken: nextPageToken })).body,
    ];
    for (const { error } of refusals) {
      expect(error).toMatchObject({ code: -32602, data: [{ fieldViolations: [{ field: 'pageToken' }] }] });
    }
    const rest = await lab.client.request(
      'GET',
      `/agents/helper/tasks?contextId=a&pageSize=1&pageToken=${nextPageToken}`,
    );
    expect(rest.status).toBe(400);
    expect(rest.body).toEqual({
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'The page token does not belong to this query',
        details: [
          {
            '@type': 'type.googleapis.com/google.rpc.BadRequest',
            fieldViolations: [{ field: 'pageToken', description: 'does not belong to this query' }],
          },
        ],
      },
    });
    const again = await lab.restarted();
    expect((await again.client.rpc('helper', 'ListTasks', { pageSize: 1, pageToken: nextPageToken })).status).toBe(200);
    await again.close();
    await lab.clock.advance(86_400_001);
    expect((await list({ pageSize: 1, pageToken: nextPageToken })).error.message).toBe('The page token has expired');
  });

  it('A-264 artifacts are left out unless asked for, and a list when there are none', async () => {
    lab = await a2aLab();
    await finished('a');
    await lab.submit('b');
    for (const form of ['rpc', 'rest'] as const) {
      const tasks = async (includeArtifacts: boolean) =>
        form === 'rpc'
          ? (await list({ includeArtifacts })).result.tasks
          : (await lab.client.request('GET', `/agents/helper/tasks?includeArtifacts=${includeArtifacts}`)).body.tasks;
      expect((await tasks(false)).map((task) => 'artifacts' in task)).toEqual([false, false]);
      expect((await tasks(true)).map(({ artifacts }) => artifacts?.length).sort()).toEqual([0, 1]);
    }
  });

  it('A-265 shows own tasks of this peer only', async () => {
    lab = await a2aLab();
    const mine = await lab.submit('a');
    await lab.submit('b', {}, 'weather-bot');
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    await beta.rpc('helper', 'SendMessage', message('c', {}, { returnImmediately: true }));
    expect((await list({})).result.tasks.map(({ id }) => id)).toEqual([mine]);
  });
});
