import { afterEach, describe, expect, it } from 'vitest';
import { message } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';

describe('a message to a task', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const state = async (taskId: string) => (await lab.get(taskId)).status.state;

  it('A-220 three rounds of question and answer leave a history with every message in order', async () => {
    lab = await a2aLab();
    const sent = lab.client.rpc('helper', 'SendMessage', message('Pay invoice 7', { messageId: 'm-7' }));
    await lab.posted(1);
    await lab.reply(`Which account should I use?${ASK}`);
    const { id, contextId, status } = (await sent).body.result.task;
    expect(status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { role: 'ROLE_AGENT', taskId: id, contextId, parts: [{ text: 'Which account should I use?' }] },
    });
    for (const [round, question] of ['And which day?', 'And how much?'].entries()) {
      const answer = lab.client.rpc('helper', 'SendMessage', message(`answer ${round}`, { taskId: id }));
      await lab.posted(round + 2);
      await lab.reply(question + ASK);
      expect((await answer).body.result.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    }
    const last = lab.client.rpc('helper', 'SendMessage', message('ten euros', { taskId: id, contextId }));
    await lab.posted(4);
    await lab.reply('Paid.');
    const { task } = (await last).body.result;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(['Paid.']);
    expect(task.history?.map(({ parts }) => parts[0]?.text)).toEqual([
      'Pay invoice 7',
      'Which account should I use?',
      'answer 0',
      'And which day?',
      'answer 1',
      'And how much?',
      'ten euros',
    ]);
    const markers = lab.rooms.writes.filter(({ call }) => call.endsWith('/events'));
    expect(markers).toHaveLength(4);
    expect(lab.rooms.posted.at(-1)?.content).toBe('@Helper ten euros');
  });

  it.each(['first', 'settle'] as const)(
    'A-149 A-220 an answer that is there before the further post has returned ends the task (%s)',
    async (completion) => {
      lab = await a2aLab({ options: { completion } });
      const taskId = await lab.submit('pay', { contextId: 'c' });
      await lab.posted(1);
      await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
      await lab.reply(`Which account?${ASK}`);
      lab.rooms.onPost = async (roomId) => {
        await lab.reply('Paid.', { roomId });
      };
      const sent = lab.client.rpc('helper', 'SendMessage', message('the main one', { taskId }));
      await lab.posted(2);
      await lab.until(() => lab.engine.book.find(taskId)?.row.pending.length !== 1);
      await lab.clock.advance(300);
      const { task } = (await sent).body.result;
      expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(['Paid.']);
      expect([task.status.state, lab.rooms.posted.length]).toEqual(['TASK_STATE_COMPLETED', 2]);
    },
  );

  it('A-221 goes by taskId alone; a wrong context, an ended task and an unknown one are refused', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('pay', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply(`Which?${ASK}`);
    const wrong = await lab.client.rpc('helper', 'SendMessage', message('x', { taskId, contextId: 'other' }));
    expect(wrong.body.error).toMatchObject({
      code: -32602,
      data: [{ fieldViolations: [{ field: 'message.contextId' }] }],
    });
    const unknown = await lab.client.rpc('helper', 'SendMessage', message('x', { taskId: 'nope' }));
    expect(unknown.body.error.code).toBe(-32001);
    const elsewhere = await lab.client.rpc('weather-bot', 'SendMessage', message('x', { taskId }));
    expect(elsewhere.body.error.code).toBe(-32001);
    await lab.submit('the main one', { taskId });
    await lab.posted(2);
    await lab.reply('done');
    const ended = await lab.client.rpc('helper', 'SendMessage', message('x', { taskId }));
    expect(ended.body.error).toMatchObject({
      code: -32004,
      data: [{ reason: 'UNSUPPORTED_OPERATION', metadata: { state: 'TASK_STATE_COMPLETED' } }],
    });
  });

  it('A-222 joins a running task: both texts in the room, both callers get the whole task', async () => {
    lab = await a2aLab();
    const first = await lab.client.stream('helper', 'SendStreamingMessage', message('plan a day'));
    const { id } = (await first.next())!.result.task;
    await first.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    const second = lab.client.rpc('helper', 'SendMessage', message('in Riga', { taskId: id }));
    await lab.posted(2);
    const third = await lab.client.stream('helper', 'SendStreamingMessage', message('in May', { taskId: id }));
    expect((await third.next())?.result.task.id).toBe(id);
    await lab.posted(3);
    await lab.until(() => lab.engine.book.find(id)?.row.posted === 3);
    for (const text of ['one', 'two', 'three']) await lab.reply(text);
    expect((await second).body.result.task).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } });
    const kinds = (events: { result: object }[]) => events.map(({ result }) => Object.keys(result)[0]);
    expect(kinds(await first.rest())).toEqual(['artifactUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    expect(kinds(await third.rest())).toEqual(['artifactUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    expect((await lab.get(id)).history?.map(({ parts }) => parts[0]?.text)).toEqual([
      'plan a day',
      'in Riga',
      'in May',
    ]);
    expect(lab.rooms.posted.map(({ content }) => content)).toEqual([
      '@Helper plan a day',
      '@Helper in Riga',
      '@Helper in May',
    ]);
  });

  it('A-222 one answer to two messages is enough once the peer has been quiet for hold_max_ms', async () => {
    lab = await a2aLab({ options: { completion: 'settle', holdMaxMs: 10_000 } });
    const taskId = await lab.submit('one');
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    await lab.submit('two', { taskId });
    await lab.until(() => lab.engine.book.find(taskId)?.row.posted === 2);
    await lab.reply('both at once');
    await lab.clock.advance(9_999);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.clock.advance(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_COMPLETED');
  });

  it('A-223 is refused where the setting says so', async () => {
    lab = await a2aLab({ options: { followup: 'reject' } });
    const taskId = await lab.submit('one');
    await lab.posted(1);
    const busy = await lab.client.rpc('helper', 'SendMessage', message('two', { taskId }));
    expect(busy.body.error).toMatchObject({ code: -32004, data: [{ reason: 'TASK_BUSY' }] });
    expect(lab.rooms.posted).toHaveLength(1);
  });

  it('goes to a parked task as a reminder', async () => {
    lab = await a2aLab({ options: { onTimeout: 'park', responseTimeoutMs: 1_000 } });
    const taskId = await lab.submit('one');
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    await lab.clock.advance(1_000);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_INPUT_REQUIRED');
    const sent = lab.client.rpc('helper', 'SendMessage', message('any news?', { taskId }));
    await lab.posted(2);
    await lab.until(() => lab.engine.book.find(taskId)?.row.posted === 2);
    await lab.reply('soon');
    await lab.reply('now');
    expect((await sent).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });
});
