import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import {
  accepted,
  dataOf,
  idOf,
  metadataOf,
  rowsOf,
  sandboxLab,
  verdictOf,
  type Json,
} from '../../support/sandbox-lab.js';

const { echo: ECHO, dice: DICE } = DEMO;

/** A room with echo in it, one message for it, and what can be done with that message. */
async function oneMessage() {
  const lab = await sandboxLab();
  const roomId = await lab.room(ECHO.id, DICE.id);
  const messageId = await lab.say(roomId, 'hello', ECHO.id);
  const path = `/chats/${roomId}/messages`;
  const mark = (what: string, body?: unknown) => lab.echo.post(`${path}/${messageId}/${what}`, body);
  return {
    ...lab,
    roomId,
    messageId,
    path,
    mark,
    next: async () => {
      const answer = await lab.echo.get(`${path}/next`);
      return answer.status === 204 ? null : idOf(answer);
    },
    delivery: async () => {
      const row = rowsOf(await lab.user.get(path)).find(({ id }) => id === messageId);
      const { delivery_status: states } = row?.['metadata'] as { delivery_status: Record<string, Json> };
      return states[ECHO.id];
    },
    listed: async (status: string) => rowsOf(await lab.echo.get(`${path}?status=${status}`)).length,
  };
}

describe('the delivery of a message', () => {
  it('has no entry until the agent is handed the message', async () => {
    const { delivery, next } = await oneMessage();
    expect(await delivery()).toBeUndefined();
    await next();
    expect(await delivery()).toMatchObject({ status: 'delivered', current_attempt: 0, attempts: [] });
  });

  it('goes through an attempt to processed, and leaves the work list', async () => {
    const { mark, delivery, next, messageId, listed } = await oneMessage();
    expect(dataOf(await mark('processing'))).toEqual({
      id: messageId,
      status: 'processing',
      attempt_number: 1,
      success: true,
    });
    expect(await next()).toBe(messageId);
    expect(dataOf(await mark('processed'))).toMatchObject({ status: 'processed', attempt_number: 1 });
    expect(await next()).toBeNull();
    expect(await listed('')).toBe(0);
    expect(await listed('processed')).toBe(1);
    expect(await delivery()).toMatchObject({
      status: 'processed',
      current_attempt: 1,
      processed_at: expect.any(String) as string,
      attempts: [{ attempt_number: 1, status: 'success', completed_at: expect.any(String) as string }],
    });
  });

  it('stays on the work list after a failure, until an attempt succeeds', async () => {
    const { mark, delivery, next, messageId, listed } = await oneMessage();
    await mark('processing');
    accepted(await mark('failed', { error: 'no luck' }));
    expect(await next()).toBe(messageId);
    expect([await listed('failed'), await listed('pending'), await listed('processing')]).toEqual([1, 1, 0]);
    expect(dataOf(await mark('processing'))).toMatchObject({ attempt_number: 2 });
    accepted(await mark('processed'));
    expect(await delivery()).toMatchObject({
      status: 'processed',
      attempts: [
        { attempt_number: 1, status: 'failed', error: 'no luck' },
        { attempt_number: 2, status: 'success' },
      ],
    });
  });

  it('records an attempt that a crash left open, and starts another', async () => {
    const { mark, delivery, next, messageId } = await oneMessage();
    await mark('processing');
    expect(await next()).toBe(messageId);
    expect(dataOf(await mark('processing'))).toMatchObject({ attempt_number: 2 });
    await mark('processed');
    expect(await delivery()).toMatchObject({
      attempts: [
        { attempt_number: 1, status: 'processing' },
        { attempt_number: 2, status: 'success' },
      ],
    });
  });

  it('keeps the open attempt instead, when that is switched on', async () => {
    const { sandbox, mark, delivery } = await oneMessage();
    sandbox.dev.set({ repeatedProcessingKeepsAttempt: true });
    await mark('processing');
    expect(dataOf(await mark('processing'))).toMatchObject({ attempt_number: 1 });
    await mark('processed');
    expect(dataOf(await mark('processing'))).toMatchObject({ attempt_number: 2 });
    expect(await delivery()).toMatchObject({ status: 'processing' });
  });

  it('opens again when a processed message is taken up again', async () => {
    const { mark, next, messageId, delivery } = await oneMessage();
    await mark('processing');
    await mark('processed');
    expect(dataOf(await mark('processing'))).toMatchObject({ attempt_number: 2 });
    expect(await next()).toBe(messageId);
    expect(await delivery()).toMatchObject({ status: 'processing', processed_at: null });
  });

  it('cannot end without an open attempt, and says so under /processing_attempt', async () => {
    const { mark } = await oneMessage();
    for (const ended of [await mark('processed'), await mark('failed', { error: 'x' })]) {
      expect(verdictOf(ended)).toBe('422 validation_error');
      expect(ended.body).toMatchObject({ error: { details: { '/processing_attempt': [expect.any(String)] } } });
    }
    await mark('processing');
    await mark('processed');
    expect(verdictOf(await mark('processed'))).toBe('422 validation_error');
  });

  it.each([[undefined], [{}], [{ error: null }], [{ error: '  ' }]])('cannot fail with %j', async (body) => {
    const { mark } = await oneMessage();
    await mark('processing');
    expect(verdictOf(await mark('failed', body))).toBe('422 validation_error');
  });

  it('exists only for an agent that the message mentions, in the room of the message', async () => {
    const { dice, echo, messageId, path, room, user } = await oneMessage();
    expect(verdictOf(await dice.post(`${path}/${messageId}/processing`))).toBe('404 not_found');
    const other = await room(ECHO.id);
    expect(verdictOf(await echo.post(`/chats/${other}/messages/${messageId}/processing`))).toBe('404 not_found');
    const mentions = [{ id: DICE.id }, { id: ECHO.id, kind: 'reference' }];
    const sent = await user.post(path, { message: { content: 'hi', mentions } });
    expect(verdictOf(await echo.post(`${path}/${idOf(sent)}/processing`))).toBe('404 not_found');
  });

  it('keeps the latest 20 attempts only, with their own numbers', async () => {
    const { mark, delivery } = await oneMessage();
    for (let n = 0; n < 25; n += 1) await mark('processing');
    const { attempts, current_attempt: current } = (await delivery()) as { attempts: Json[]; current_attempt: number };
    expect(current).toBe(25);
    expect(attempts).toHaveLength(20);
    expect(attempts[0]).toMatchObject({ attempt_number: 6 });
    expect(dataOf(await mark('processed'))).toMatchObject({ attempt_number: 25 });
  });
});

describe('the work of an agent', () => {
  it('comes oldest first, whatever the state, one agent apart from the other', async () => {
    const { echo, dice, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const path = `/chats/${roomId}/messages`;
    const ids: string[] = [];
    for (let n = 0; n < 4; n += 1) ids.push(await say(roomId, `message ${n}`, ECHO.id, DICE.id));
    const next = async (caller: typeof echo) => {
      const answer = await caller.get(`${path}/next`);
      return answer.status === 204 ? null : idOf(answer);
    };
    const done = async (id: string | undefined) => {
      await echo.post(`${path}/${String(id)}/processing`);
      await echo.post(`${path}/${String(id)}/processed`);
    };
    await done(ids[1]);
    expect(await next(echo)).toBe(ids[0]);
    await done(ids[0]);
    expect(await next(echo)).toBe(ids[2]);
    await echo.post(`${path}/${String(ids[1])}/processing`);
    expect(await next(echo)).toBe(ids[1]);
    expect(await next(dice)).toBe(ids[0]);

    const list = await echo.get(path);
    expect(rowsOf(list).map(({ id }) => id)).toEqual([ids[1], ids[2], ids[3]]);
    expect(metadataOf(list)).toMatchObject({ total_count: 3 });
    const all = await echo.get(`${path}?status=all&sort_order=desc`);
    expect(rowsOf(all).map(({ id }) => id)).toEqual([...ids].reverse());
    expect(metadataOf(await echo.get(`${path}?status=processed`))).toMatchObject({ total_count: 1 });
  });

  it('is hidden while the agent is not in the room', async () => {
    const { echo, user, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    await say(roomId, 'hello', ECHO.id);
    await user.delete(`/chats/${roomId}/participants/${ECHO.id}`);
    for (const path of ['', '/messages', '/messages/next', '/context', '/participants']) {
      expect(verdictOf(await echo.get(`/chats/${roomId}${path}`))).toBe('404 not_found');
    }
    expect(rowsOf(await echo.get('/chats'))).toEqual([]);
  });

  it('shows an agent its own delivery state and nobody else’s', async () => {
    const { echo, dice, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const messageId = await say(roomId, 'hello', ECHO.id, DICE.id);
    await dice.post(`/chats/${roomId}/messages/${messageId}/processing`);
    await echo.post(`/chats/${roomId}/messages/${messageId}/processing`);
    const next = dataOf(await echo.get(`/chats/${roomId}/messages/next`));
    const { delivery_status: states } = next['metadata'] as { delivery_status: Json };
    expect(Object.keys(states)).toEqual([ECHO.id]);
  });
});
