import { context, createContextKey, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { message } from '../../support/a2a/client.js';
import { HELPER, peer, refused } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';
import { asyncContexts } from '../../support/async-contexts.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';

let lab: A2ALab;
afterEach(() => lab.close());

describe('the figures', () => {
  const figure = (name: string) => lab.counters.get(name) ?? 0;

  it('A-345 count open tasks by state, and how long the way to the post, to the first reply and to the end took', async () => {
    lab = await a2aLab();
    const release = lab.rooms.hold('postMessage');
    const first = await lab.submit('one', { contextId: 'c' });
    const second = await lab.submit('two', { contextId: 'c' });
    expect(figure('band_a2a_open_tasks submitted')).toBe(2);
    await lab.until(() => lab.rooms.countOf(/messages$/) === 1);
    await lab.clock.advance(4_000);
    release();
    await lab.posted(1);
    await lab.until(() => figure('band_a2a_open_tasks working') === 1);
    expect(figure('band_a2a_lane_wait_seconds last')).toBe(4);
    await lab.clock.advance(7_000);
    await lab.reply(`Which?${ASK}`);
    expect([figure('band_a2a_first_reply_seconds'), figure('band_a2a_first_reply_seconds last')]).toEqual([1, 7]);
    expect(figure('band_a2a_open_tasks input_required')).toBe(1);
    await lab.posted(2);
    await lab.reply('done');
    await lab.client.rpc('helper', 'CancelTask', { id: first });
    await lab.until(() => lab.engine.held.tasks === 0);
    expect((await lab.get(second)).status.state).toBe('TASK_STATE_COMPLETED');
    for (const state of ['submitted', 'working', 'input_required']) {
      expect([state, figure(`band_a2a_open_tasks ${state}`)]).toEqual([state, 0]);
    }
    expect(figure('band_a2a_first_reply_seconds')).toBe(2);
    expect(figure('band_a2a_tasks_ended_total completed')).toBe(1);
    expect(figure('band_a2a_tasks_ended_total canceled')).toBe(1);
    expect(figure('band_a2a_store_seconds')).toBeGreaterThan(5);
  });

  it('A-345 count open tasks that a start takes up', async () => {
    lab = await a2aLab();
    await lab.submit('one');
    await lab.posted(1);
    await lab.until(() => figure('band_a2a_open_tasks working') === 1);
    await lab.close();
    lab = await lab.restarted();
    expect(figure('band_a2a_open_tasks working')).toBe(1);
  });

  it('A-345 count peers, names that several claim, and rooms', async () => {
    lab = await a2aLab();
    lab.rooms.peers = [HELPER, peer('aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaa0009', 'helper', 'joe/helper')];
    await lab.submit('one');
    await lab.posted(1);
    await lab.clock.advance(60_000);
    await lab.until(() => figure('band_a2a_rooms') === 1);
    expect([figure('band_a2a_peers'), figure('band_a2a_slug_conflicts')]).toEqual([3, 1]);
  });
});

describe('the lines of the log', () => {
  it('A-345 lead one request through every hop by its ids', async () => {
    lab = await a2aLab();
    const { body, headers } = await lab.client.rpc(
      'helper',
      'SendMessage',
      message('canary-text', { messageId: 'm-1', contextId: 'c' }, { returnImmediately: true }),
    );
    const taskId = body.result.task.id;
    await lab.posted(1);
    const replyId = await lab.reply('canary-answer');
    const roomId = lab.roomId;
    const ids = { taskId, contextId: 'c', peer: HELPER.id, principal: 'key:alpha' };
    const lines = lab.lines.filter((line) => line['taskId'] === taskId && line['level'] === 30);
    expect(lines).toMatchObject([
      { msg: 'a2a task accepted', ...ids, requestId: headers.get('x-request-id'), messageId: 'm-1' },
      { msg: 'a2a request posted', ...ids, roomId, messageId: 'm-1', bandMessageId: lab.rooms.posted[0]?.id },
      { msg: 'a2a task ended', ...ids, roomId, state: 'completed' },
      { msg: 'a2a reply taken', ...ids, bandMessageId: replyId },
    ]);
    expect(JSON.stringify(lab.lines)).not.toContain('canary-text');
    expect(JSON.stringify(lab.lines)).not.toContain('canary-answer');
  });

  it('A-345 name the reason of a failure', async () => {
    lab = await a2aLab();
    lab.rooms.fail('createChat', refused(403, 'ROOM_LIMIT'));
    await lab.client.rpc('helper', 'SendMessage', message('x'));
    expect(lab.lines.find(({ msg }) => msg === 'a2a task ended')).toMatchObject({
      state: 'failed',
      reason: 'BAND_QUOTA',
    });
  });
});

describe('the trace of a request', () => {
  const NAME = createContextKey('name');
  afterEach(() => {
    context.disable();
  });

  it('A-346 goes on in the calls that its task makes, also when another task woke the lane', async () => {
    context.setGlobalContextManager(asyncContexts());
    lab = await a2aLab();
    const seen: unknown[] = [];
    lab.rooms.onPost = () => {
      seen.push(context.active().getValue(NAME));
    };
    const served = lab.adapter.gateway.directory.byId(HELPER.id)!;
    const send = (name: string) => {
      const spanContext = { traceId: name.repeat(32).slice(0, 32), spanId: '1'.repeat(16), traceFlags: 1 };
      const traced = trace.setSpanContext(ROOT_CONTEXT.setValue(NAME, name), spanContext);
      return context.with(traced, () =>
        lab.engine.send({
          requestId: name,
          owner: 'key:alpha',
          peer: served,
          message: { messageId: name, role: 'ROLE_USER', parts: [{ text: name }], contextId: 'c' },
        }),
      );
    };
    const ids = await Promise.all(['a', 'b', 'c'].map(send));
    for (const count of [1, 2, 3]) {
      await lab.posted(count);
      await lab.until(() => lab.engine.book.find(ids[count - 1]!)?.row.posted === 1);
      await lab.reply('ok');
    }
    expect(seen).toEqual(['a', 'b', 'c']);
    const accepted = lab.lines.filter(({ msg }) => msg === 'a2a task accepted');
    expect(accepted.map((line) => line['traceId'])).toEqual(['a', 'b', 'c'].map((name) => name.repeat(32)));
  });
});
