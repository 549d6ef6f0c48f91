import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { CAUSES, nextState, type Cause } from '../../../bridges/a2a/engine/states.js';
import { fold, emptyView, snapshot } from '../../../bridges/a2a/engine/log.js';
import { isTerminal, TASK_STATES, type StreamEvent, type Task, type TaskState } from '../../../bridges/a2a/wire.js';
import { message } from '../../support/a2a/client.js';
import { HELPER, refused, WEATHER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';

describe('the states of a task', () => {
  const ALLOWED: Partial<Record<TaskState, Partial<Record<Cause, TaskState>>>> = {
    TASK_STATE_SUBMITTED: {
      posted: 'TASK_STATE_WORKING',
      cancelled: 'TASK_STATE_CANCELED',
      failed: 'TASK_STATE_FAILED',
    },
    TASK_STATE_WORKING: {
      posted: 'TASK_STATE_WORKING',
      progress: 'TASK_STATE_WORKING',
      follow_up: 'TASK_STATE_WORKING',
      answered: 'TASK_STATE_COMPLETED',
      asked: 'TASK_STATE_INPUT_REQUIRED',
      auth_asked: 'TASK_STATE_AUTH_REQUIRED',
      refused: 'TASK_STATE_REJECTED',
      parked: 'TASK_STATE_INPUT_REQUIRED',
      cancelled: 'TASK_STATE_CANCELED',
      failed: 'TASK_STATE_FAILED',
    },
    TASK_STATE_INPUT_REQUIRED: {
      follow_up: 'TASK_STATE_WORKING',
      resumed: 'TASK_STATE_WORKING',
      remark: 'TASK_STATE_INPUT_REQUIRED',
      cancelled: 'TASK_STATE_CANCELED',
      failed: 'TASK_STATE_FAILED',
    },
    TASK_STATE_AUTH_REQUIRED: {
      follow_up: 'TASK_STATE_WORKING',
      resumed: 'TASK_STATE_WORKING',
      remark: 'TASK_STATE_AUTH_REQUIRED',
      cancelled: 'TASK_STATE_CANCELED',
      failed: 'TASK_STATE_FAILED',
    },
  };

  it('A-200 every pair of state and cause leads where the table says, and nothing leaves a terminal state', () => {
    for (const state of TASK_STATES) {
      for (const cause of CAUSES) {
        expect([state, cause, nextState(state, cause)]).toEqual([state, cause, ALLOWED[state]?.[cause] ?? null]);
      }
      if (isTerminal(state)) expect(CAUSES.every((cause) => nextState(state, cause) === null)).toBe(true);
    }
  });
});

describe('tasks of one conversation', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const state = async (taskId: string, peer?: string) => (await lab.get(taskId, peer)).status.state;
  const texts = async (taskId: string, peer?: string) =>
    (await lab.get(taskId, peer)).artifacts?.map(({ parts }) => parts[0]?.text);

  it('A-202 run one after the other, and answers are not swapped', async () => {
    lab = await a2aLab();
    const first = await lab.submit('one', { contextId: 'c' });
    const second = await lab.submit('two', { contextId: 'c' });
    await lab.posted(1);
    expect(await state(second)).toBe('TASK_STATE_SUBMITTED');
    await lab.reply('answer one');
    await lab.posted(2);
    await lab.reply('answer two');
    expect([await texts(first), await texts(second)]).toEqual([['answer one'], ['answer two']]);
  });

  it('A-203 two peers of one context answer in any order', async () => {
    lab = await a2aLab();
    const one = await lab.submit('one', { contextId: 'c' });
    const two = await lab.submit('two', { contextId: 'c' }, 'weather-bot');
    await lab.posted(2);
    await lab.reply('rain', { from: WEATHER.id });
    await lab.reply('help', { from: HELPER.id });
    expect([await texts(one), await texts(two, 'weather-bot')]).toEqual([['help'], ['rain']]);
  });

  it('A-204 the ninth that waits is refused, the eight run in order', async () => {
    lab = await a2aLab();
    const tasks: string[] = [];
    for (let n = 0; n < 9; n += 1) tasks.push(await lab.submit(`job ${n}`, { contextId: 'c' }));
    const busy = await lab.client.rpc('helper', 'SendMessage', message('one more', { contextId: 'c' }));
    expect(busy.status).toBe(200);
    expect(busy.body.error).toMatchObject({ code: -32000, data: [{ reason: 'CONTEXT_BUSY' }] });
    const rest = await lab.client.request(
      'POST',
      '/agents/helper/message:send',
      message('one more', { contextId: 'c' }),
    );
    expect(rest.status).toBe(409);
    for (let n = 0; n < 9; n += 1) {
      await lab.posted(n + 1);
      await lab.reply(`done ${n}`);
    }
    expect(await Promise.all(tasks.map((id) => texts(id)))).toEqual(tasks.map((_, n) => [`done ${n}`]));
  });

  it('A-205 A-206 an interrupted task blocks nobody, and plain replies go to the running one', async () => {
    lab = await a2aLab();
    const asking = await lab.submit('pay', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply(`Which?${ASK}`);
    const next = await lab.submit('weather', { contextId: 'c' });
    await lab.posted(2);
    await lab.reply('sunny');
    expect(await texts(next)).toEqual(['sunny']);
    expect(await state(asking)).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  it('A-207 A-208 every open state can be cancelled, once; ended and unknown tasks cannot', async () => {
    lab = await a2aLab({ options: { onTimeout: 'park', responseTimeoutMs: 1_000 } });
    const submitted = async () => {
      const release = lab.rooms.hold('createChat');
      const taskId = await lab.submit('a');
      return { taskId, release };
    };
    const cases: Record<string, () => Promise<{ taskId: string; release?: () => void }>> = {
      submitted,
      working: async () => {
        const taskId = await lab.submit('b');
        await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
        return { taskId };
      },
      asked: async () => {
        const taskId = await lab.submit('c');
        await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
        await lab.reply(`Which?${ASK}`);
        return { taskId };
      },
      parked: async () => {
        const taskId = await lab.submit('d');
        await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
        await lab.clock.advance(1_000);
        await lab.until(async () => (await state(taskId)) === 'TASK_STATE_INPUT_REQUIRED');
        return { taskId };
      },
    };
    for (const [name, make] of Object.entries(cases)) {
      const { taskId, release } = await make();
      const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
      const cancelled = await lab.client.rpc('helper', 'CancelTask', { id: taskId });
      expect([name, cancelled.body.result.status.state]).toEqual([name, 'TASK_STATE_CANCELED']);
      expect((await stream.rest()).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
      const again = await lab.client.rpc('helper', 'CancelTask', { id: taskId });
      expect(again.body.error).toMatchObject({
        code: -32002,
        message: 'The task can no longer be cancelled',
        data: [{ reason: 'TASK_NOT_CANCELABLE', metadata: { taskId, state: 'TASK_STATE_CANCELED' } }],
      });
      release?.();
    }
    const unknown = await lab.client.rpc('helper', 'CancelTask', { id: 'task-unknown' });
    expect(unknown.body.error.code).toBe(-32001);
  });

  it.each(['completed', 'failed', 'rejected'])('A-208 a task that is %s cannot be cancelled', async (said) => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply(`x\n\`\`\`a2a\n{"state":"${said}"}\n\`\`\``);
    expect((await lab.client.rpc('helper', 'CancelTask', { id: taskId })).body.error.code).toBe(-32002);
  });

  it('A-207 a blocked send gets the cancelled task', async () => {
    lab = await a2aLab();
    const sent = lab.client.rpc('helper', 'SendMessage', message('hi'));
    await lab.posted(1);
    const [open] = [...lab.engine.book.openTasks()];
    await lab.client.rpc('helper', 'CancelTask', { id: open!.row.id });
    expect((await sent).body.result.task.status.state).toBe('TASK_STATE_CANCELED');
  });

  it('A-209 cancel and answer in the same tick, in both orders, leave one end state everywhere', async () => {
    lab = await a2aLab();
    for (const order of ['answer first', 'cancel first']) {
      const taskId = await lab.submit(order);
      await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
      const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: taskId });
      await stream.next();
      const owner = 'key:alpha';
      const cancel = () =>
        lab.engine.cancel(owner, HELPER.id, taskId).then(
          () => 'cancelled',
          (error: unknown) => (error as { code: string }).code,
        );
      const [cancelled] =
        order === 'answer first'
          ? (await Promise.all([lab.reply('done'), cancel()])).reverse()
          : await Promise.all([cancel(), lab.reply('done')]);
      const ended = await state(taskId);
      expect((await stream.rest()).at(-1)?.result.statusUpdate.status.state).toBe(ended);
      expect(cancelled).toBe(ended === 'TASK_STATE_CANCELED' ? 'cancelled' : 'A2A_NOT_CANCELABLE');
    }
  });

  it('A-210 the room is told of a cancel as the setting says, and never of a task it has not seen', async () => {
    for (const cancelNotice of ['event', 'message', 'both', 'none'] as const) {
      lab = await a2aLab({ options: { cancelNotice } });
      const taskId = await lab.submit('hi');
      await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
      const before = lab.rooms.writes.length;
      await lab.client.rpc('helper', 'CancelTask', { id: taskId });
      const wanted = { event: 1, message: 1, both: 2, none: 0 }[cancelNotice];
      await lab.until(() => lab.rooms.writes.length === before + wanted);
      const bodies = JSON.stringify(lab.rooms.writes.slice(before));
      expect(bodies.includes('"gateway_cancelled":true')).toBe(cancelNotice === 'event' || cancelNotice === 'both');
      expect(bodies.includes('@Helper The requester cancelled this request.')).toBe(
        cancelNotice === 'message' || cancelNotice === 'both',
      );
      const release = lab.rooms.hold('createChat');
      const unseen = await lab.submit('hi');
      await lab.client.rpc('helper', 'CancelTask', { id: unseen });
      release();
      await lab.until(() => lab.engine.held.lanes === 0);
      expect(JSON.stringify(lab.rooms.writes.slice(before + wanted))).not.toContain('cancelled');
      await lab.close();
    }
  });

  it('A-210 a notice that fails changes nothing', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    lab.rooms.fail('postEvent', refused(500, 'BAND_UNAVAILABLE'));
    await lab.client.rpc('helper', 'CancelTask', { id: taskId });
    await lab.until(() => lab.lines.some(({ msg }) => String(msg).includes('could not be told')));
    expect(await state(taskId)).toBe('TASK_STATE_CANCELED');
  });

  it('A-211 silence counts from the last sign of life, and null waits without end', async () => {
    lab = await a2aLab({
      options: { responseTimeoutMs: 10_000, peers: { overrides: { 'weather-bot': { responseTimeoutMs: null } } } },
    });
    const taskId = await lab.submit('hi');
    const patient = await lab.submit('hi', {}, 'weather-bot');
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    await lab.clock.advance(9_000);
    await lab.reply('working on it\n```a2a\n{"state":"working"}\n```', { roomId: lab.rooms.posted[0]!.roomId });
    await lab.clock.advance(9_000);
    await lab.reply('take your time', { roomId: lab.rooms.posted[0]!.roomId, from: WEATHER.id, name: 'Weather' });
    await lab.clock.advance(9_999);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.clock.advance(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_FAILED');
    expect((await lab.get(taskId)).status.message).toMatchObject({
      parts: [{ text: 'The agent did not answer in time.' }],
      metadata: { band_reason: 'PEER_TIMEOUT' },
    });
    await lab.clock.advance(3_600_000);
    expect(await state(patient, 'weather-bot')).toBe('TASK_STATE_WORKING');
  });

  it('A-212 a parked task goes on by itself when a late answer comes', async () => {
    lab = await a2aLab({ options: { onTimeout: 'park', responseTimeoutMs: 300_000 } });
    const sent = await lab.client.stream('helper', 'SendStreamingMessage', message('approve this'));
    await sent.until((event) => event.result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    await lab.clock.advance(300_000);
    const parked = (await sent.rest()).at(-1)!.result.statusUpdate;
    expect(parked).toMatchObject({
      status: {
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: { parts: [{ text: expect.stringContaining('Helper') as string }] },
      },
      metadata: { band_reason: 'WAITING_FOR_BAND' },
    });
    const stream = await lab.client.stream('helper', 'SubscribeToTask', { id: parked.taskId });
    expect((await stream.next())?.result.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.clock.advance(2_400_000);
    await lab.reply('approved');
    const kinds = (await stream.rest()).map(({ result }) => result.statusUpdate?.status.state ?? 'artifact');
    expect(kinds).toEqual(['TASK_STATE_WORKING', 'artifact', 'TASK_STATE_COMPLETED']);
  });

  it('A-213 an open task expires in every open state, an ended one is removed in its time', async () => {
    lab = await a2aLab({
      options: { tasks: { ttlSeconds: 60, retentionSeconds: 600 }, responseTimeoutMs: null, cancelNotice: 'none' },
    });
    const asked = await lab.submit('a', { contextId: 'a' });
    await lab.until(async () => (await state(asked)) === 'TASK_STATE_WORKING');
    await lab.reply(`Which?${ASK}`);
    const working = await lab.submit('b', { contextId: 'b' });
    await lab.until(async () => (await state(working)) === 'TASK_STATE_WORKING');
    const queued = await lab.submit('c', { contextId: 'b' });
    const auth = await lab.submit('d', { contextId: 'd' });
    await lab.until(async () => (await state(auth)) === 'TASK_STATE_WORKING');
    await lab.reply('Log in\n```a2a\n{"state":"auth-required"}\n```');
    const all = [asked, working, queued, auth];
    expect(await Promise.all(all.map((taskId) => state(taskId)))).toEqual([
      'TASK_STATE_INPUT_REQUIRED',
      'TASK_STATE_WORKING',
      'TASK_STATE_SUBMITTED',
      'TASK_STATE_AUTH_REQUIRED',
    ]);
    const streams = await Promise.all(all.map((id) => lab.client.stream('helper', 'SubscribeToTask', { id })));
    await lab.clock.advance(60_000);
    for (const stream of streams) {
      expect((await stream.rest()).at(-1)?.result.statusUpdate.status).toMatchObject({
        state: 'TASK_STATE_FAILED',
        message: { metadata: { band_reason: 'EXPIRED' } },
      });
    }
    for (const taskId of all) expect(await state(taskId)).toBe('TASK_STATE_FAILED');
    await lab.clock.advance(700_000);
    for (const id of all) {
      await lab.until(async () => (await lab.client.rpc('helper', 'GetTask', { id })).body.error?.code === -32001);
    }
    expect((await lab.client.rpc('helper', 'ListTasks', {})).body.result.totalSize).toBe(0);
    const keys = (await lab.store.range({ from: 'a2a/', to: 'a2a0', limit: 10_000 })).map(({ key }) => key);
    expect(keys.filter((key) => all.some((taskId) => key.includes(taskId)))).toEqual([]);
  });

  /** A task that asked back, and a later one of its lane that was cancelled while the peer was at it. */
  const askedAndCancelled = async () => {
    const asked = await lab.submit('book a table', { contextId: 'c' });
    await lab.posted(1);
    await lab.reply(`For how many?${ASK}`);
    const other = await lab.submit('the weather?', { contextId: 'c' });
    await lab.posted(2);
    await lab.until(async () => (await state(other)) === 'TASK_STATE_WORKING');
    await lab.client.rpc('helper', 'CancelTask', { id: other });
    // Of the first request the turn is over.
    lab.rooms.delivery.set(lab.rooms.posted[0]!.id, 'processed');
    return { asked, post: lab.rooms.posted[1]!.id };
  };
  const textOf = async (taskId: string) => (await lab.get(taskId)).artifacts?.[0]?.parts[0]?.text;

  it('A-181 A-205 the late answer to a cancelled task is not taken for one of a task that waits', async () => {
    lab = await a2aLab();
    const { asked } = await askedAndCancelled();
    await lab.reply('sunny');
    expect(await state(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    expect(lab.counters.get('band_a2a_late_replies_total')).toBe(1);
  });

  it('A-181 A-205 once nothing is owed any more, the task that waits is resumed by what comes, over a restart too', async () => {
    lab = await a2aLab();
    const { asked } = await askedAndCancelled();
    await lab.clock.advance(4_999);
    await lab.reply('sunny');
    await lab.close();
    lab = await lab.restarted();
    await lab.clock.advance(5_000);
    await lab.reply('booked for four');
    expect([await state(asked), await textOf(asked)]).toEqual(['TASK_STATE_COMPLETED', 'booked for four']);
  });

  it('A-181 A-205 where turns can be seen, one answer is owed until the turn is over, however long it takes', async () => {
    lab = await a2aLab();
    lab.rooms.showDelivery = true;
    const { asked, post } = await askedAndCancelled();
    await lab.clock.advance(60_000);
    await lab.reply('one moment');
    await lab.clock.advance(60_000);
    lab.rooms.delivery.set(post, 'processed');
    expect(await state(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.reply('booked for four');
    expect([await state(asked), await textOf(asked)]).toEqual(['TASK_STATE_COMPLETED', 'booked for four']);
  });

  it('A-181 A-205 the answer that ends the turn is owed as well', async () => {
    lab = await a2aLab();
    lab.rooms.showDelivery = true;
    const { asked, post } = await askedAndCancelled();
    await lab.clock.advance(60_000);
    lab.rooms.delivery.set(post, 'processed');
    await lab.reply('sunny');
    expect(await state(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.reply('booked for four');
    expect(await textOf(asked)).toBe('booked for four');
  });

  it('A-181 A-205 a turn that ended without a word owes none: what is written later is about the task that waits', async () => {
    lab = await a2aLab();
    lab.rooms.showDelivery = true;
    const { asked, post } = await askedAndCancelled();
    const ended = lab.clock.now() + 60_000;
    lab.rooms.delivery.set(post, 'processed');
    lab.rooms.processedAt.set(post, ended);
    await lab.clock.advance(120_000);
    await lab.reply('booked for four', { writtenAt: ended + 1 });
    expect([await state(asked), await textOf(asked)]).toEqual(['TASK_STATE_COMPLETED', 'booked for four']);
  });

  it('A-181 A-205 what was written before the turn ended is owed, however late it comes', async () => {
    lab = await a2aLab();
    lab.rooms.showDelivery = true;
    const { asked, post } = await askedAndCancelled();
    const ended = lab.clock.now() + 60_000;
    lab.rooms.delivery.set(post, 'processed');
    lab.rooms.processedAt.set(post, ended);
    await lab.clock.advance(120_000);
    await lab.reply('sunny', { writtenAt: ended });
    expect(await state(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
    await lab.reply('booked for four', { writtenAt: ended + 1 });
    expect(await textOf(asked)).toBe('booked for four');
  });

  it('A-214 at the cap new work is refused, running work goes on, and an end makes room', async () => {
    lab = await a2aLab({ options: { limits: { openTasks: 3, openTasksPerPrincipal: 2 } } });
    const first = await lab.submit('a');
    await lab.posted(1);
    const { roomId } = lab;
    await lab.submit('b');
    const own = await lab.client.rpc('helper', 'SendMessage', message('c'));
    expect(own.status).toBe(429);
    expect(own.headers.get('retry-after')).not.toBeNull();
    expect(own.body.error.data[0]?.reason).toBe('TASK_LIMIT');
    const beta = lab.client.as({ headers: { 'x-api-key': 'test-token-beta' } });
    const now = { returnImmediately: true };
    expect((await beta.rpc('helper', 'SendMessage', message('d', {}, now))).status).toBe(200);
    const total = await beta.rpc('helper', 'SendMessage', message('e', {}, now));
    expect([total.status, total.body.error.data[0]?.reason]).toEqual([503, 'CAPACITY']);
    await lab.reply('done', { roomId });
    expect(await state(first)).toBe('TASK_STATE_COMPLETED');
    await lab.submit('f');
    const open = [...lab.counters].filter(([name]) => name.startsWith('band_a2a_open_tasks '));
    expect(open.reduce((sum, [, count]) => sum + count, 0)).toBe(lab.engine.held.tasks);
  });

  it.each([
    ['of a principal', { openTasks: 100, openTasksPerPrincipal: 3 }, 'A2A_TASK_LIMIT'],
    ['of all', { openTasks: 3, openTasksPerPrincipal: 100 }, 'A2A_CAPACITY'],
  ])('A-214 the cap %s holds for tasks that come at the same moment', async (_name, limits, code) => {
    lab = await a2aLab({ options: { limits } });
    const served = lab.adapter.gateway.directory.byId(HELPER.id)!;
    const sent = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) =>
        lab.engine.send({
          requestId: 'r',
          owner: 'key:alpha',
          peer: served,
          message: { messageId: `m-${n}`, role: 'ROLE_USER', parts: [{ text: 'x' }] },
        }),
      ),
    );
    const refusals = sent.flatMap((one) => (one.status === 'rejected' ? [(one.reason as { code: string }).code] : []));
    expect(refusals).toEqual(Array.from({ length: 9 }, () => code));
    expect(lab.engine.held.tasks).toBe(3);
  });

  it('A-344 a clock that is put forward or back by an hour fires no timers and holds none up', async () => {
    lab = await a2aLab({ options: { responseTimeoutMs: 300_000 } });
    const taskId = await lab.submit('a');
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    lab.clock.jump(3_600_000);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    lab.clock.jump(-3_600_000);
    await lab.clock.advance(300_000);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_FAILED');
  });
});

describe('any order of happenings', () => {
  const STEPS = [
    'reply',
    'ask',
    'cancel',
    'timeout',
    'followUp',
    'roomGone',
    'remark',
    'restart',
    'left',
    'removed',
  ] as const;

  it('A-201 leaves one end state, and log, row and every subscriber agree', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 8 }), async (steps) => {
        let lab = await a2aLab({ options: { responseTimeoutMs: 1_000, cancelNotice: 'none', completion: 'settle' } });
        try {
          const taskId = await lab.submit('go');
          await lab.posted(1);
          await lab.until(() => lab.engine.book.find(taskId)?.row.lastPostId != null);
          const seen: StreamEvent[] = [];
          const watch = () => {
            const open = lab.engine.book.find(taskId);
            if (!open) return;
            seen.length = 0;
            seen.push({ task: snapshot(open.view) });
            open.watchers.add({ onEvent: (event) => seen.push(event), onEnd: () => undefined });
          };
          watch();
          for (const step of steps) {
            if (step === 'restart') {
              const again = await lab.restarted();
              await lab.close();
              lab = again;
              watch();
            } else await take(lab, step, taskId);
          }
          await lab.clock.advance(5_000);
          const stored = await lab.engine.book.read(taskId);
          const view = snapshot(stored!.view);
          if (seen.length > 0 && isTerminal(view.status.state)) expect(replayed(seen)).toEqual(withoutUsers(view));
          expect(stored!.row.state).toBe(view.status.state);
          const listed = await lab.client.rpc('helper', 'ListTasks', { includeArtifacts: true });
          expect(listed.body.result.tasks[0]?.status.state).toBe(view.status.state);
          const artifacts = view.artifacts?.map(({ artifactId }) => artifactId) ?? [];
          expect(new Set(artifacts).size).toBe(artifacts.length);
        } finally {
          await lab.close();
        }
      }),
      { numRuns: Number(process.env['A2A_MODEL_RUNS'] ?? 25) },
    );
  });

  async function take(lab: A2ALab, step: (typeof STEPS)[number], taskId: string): Promise<void> {
    const { roomId } = lab;
    if (step === 'reply') await lab.reply('answer', { roomId });
    if (step === 'ask') await lab.reply(`Which?${ASK}`, { roomId });
    if (step === 'cancel') await lab.client.rpc('helper', 'CancelTask', { id: taskId });
    if (step === 'timeout') await lab.clock.advance(1_000);
    if (step === 'followUp') {
      await lab.client.rpc('helper', 'SendMessage', message('more', { taskId }, { returnImmediately: true }));
    }
    if (step === 'remark') await lab.reply('hm', { roomId, from: WEATHER.id, name: 'Weather' });
    if (step === 'roomGone') await lab.engine.roomGone(roomId);
    if (step === 'left') await lab.engine.peerLeft(roomId, HELPER.id);
    if (step === 'removed') await lab.engine.peerRemoved(HELPER.id);
  }

  /** What a client makes of the events it was handed. */
  function replayed(events: readonly StreamEvent[]): Task {
    const [first, ...later] = events;
    const { task } = first as { task: Task };
    const view = { ...emptyView(task.id, task.contextId), status: task.status };
    view.history.push(...(task.history ?? []));
    view.artifacts.push(...(task.artifacts ?? []));
    for (const event of later) {
      if ('statusUpdate' in event) fold(view, { kind: 'status', status: event.statusUpdate.status });
      if ('artifactUpdate' in event) fold(view, { kind: 'artifact', ...event.artifactUpdate });
    }
    return withoutUsers(snapshot(view));
  }
});

/** A stream does not show a client its own further messages. */
function withoutUsers(task: Task): Task {
  return { ...task, history: (task.history ?? []).filter(({ role }) => role === 'ROLE_AGENT') };
}
