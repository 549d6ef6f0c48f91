import { describe, expect, it } from 'vitest';
import { readPush } from '../../src/platform/events.js';
import { topics } from '../../src/platform/topics.js';
import { messageCreated } from '../support/link-lab.js';

const times = { inserted_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };

/** Event, topic, a payload with exactly the keys a writer always sends, and those without which it is dropped. */
const TABLE: [string, string, Record<string, unknown>, string[]][] = [
  [
    'message_created',
    topics.chatRoom('r'),
    messageCreated('m', 'r'),
    ['id', 'content', 'message_type', 'sender_id', 'sender_type', 'inserted_at', 'updated_at'],
  ],
  ['room_added', topics.rooms('a'), { id: 'r', ...times }, ['id', 'inserted_at', 'updated_at']],
  ['room_removed', topics.rooms('a'), { id: 'r', ...times }, ['id', 'inserted_at', 'updated_at']],
  ['room_deleted', topics.participants('r'), { id: 'r' }, ['id']],
  ['participant_added', topics.participants('r'), { id: 'p', name: 'P', type: 'User' }, ['id', 'name', 'type']],
  ['participant_removed', topics.participants('r'), { id: 'p', name: 'P', type: 'User' }, ['id']],
  [
    'contact_request_received',
    topics.contacts('a'),
    { id: 'c', status: 'pending', inserted_at: 't' },
    ['id', 'status', 'inserted_at'],
  ],
  ['contact_request_updated', topics.contacts('a'), { id: 'c', status: 'approved' }, ['id', 'status']],
  [
    'contact_added',
    topics.contacts('a'),
    { id: 'c', type: 'User', inserted_at: 't', handle: null, name: null },
    ['id', 'type', 'inserted_at'],
  ],
  ['contact_removed', topics.contacts('a'), { id: 'c' }, ['id']],
  ['supersede', topics.control('a'), { reason: 'r', message: 'm', correlation_id: null }, ['reason', 'message']],
  [
    'agent.control',
    topics.control('a'),
    { mode: 'stop', scope: 'room', agent_id: 'a', execution_id: null, room_id: null, correlation_id: null },
    ['mode', 'scope', 'agent_id'],
  ],
];

describe.each(TABLE)('%s', (event, topic, payload, required) => {
  it('is read with what a writer always sends, unknown keys included', () => {
    expect(readPush(topic, event, payload).kind).not.toMatch(/invalid|unknown/);
    expect(readPush(topic, event, { ...payload, brand_new: { deep: [1] } }).kind).not.toMatch(/invalid|unknown/);
  });

  it.each(required)('is dropped without %s, or when it is null or no text', (key) => {
    const rest = Object.fromEntries(Object.entries(payload).filter(([name]) => name !== key));
    for (const broken of [rest, { ...rest, [key]: null }, { ...rest, [key]: 7 }, { ...rest, [key]: { a: 1 } }]) {
      expect(readPush(topic, event, broken).kind).toBe('invalid');
    }
  });

  it('on another topic is an event nobody knows', () => {
    expect(readPush('room_tasks:r', event, payload).kind).toBe('unknown');
    expect(readPush('no colon', event, payload).kind).toBe('unknown');
  });
});

describe('the finer points', () => {
  const read = (change: Record<string, unknown>) =>
    readPush(topics.chatRoom('r'), 'message_created', { ...messageCreated('m', 'r'), ...change }).kind;

  it('metadata may be absent or null; mentions null or absent, else a list of objects with an id', () => {
    expect(read({ metadata: undefined })).toBe('event');
    expect(read({ metadata: null })).toBe('event');
    expect(read({ metadata: { mentions: null } })).toBe('event');
    expect(read({ metadata: {} })).toBe('event');
    for (const metadata of [[], 'x', { mentions: {} }, { mentions: [null] }, { mentions: [{ name: 'x' }] }]) {
      expect(read({ metadata })).toBe('invalid');
    }
  });

  it('contact_added needs the keys handle and name even when they are null', () => {
    const contact = { id: 'c', type: 'User', inserted_at: 't' };
    expect(readPush(topics.contacts('a'), 'contact_added', contact).kind).toBe('invalid');
  });

  it('BND-04 a participant_removed that carries an id alone is read: who left must not be believed to be there', () => {
    expect(readPush(topics.participants('r'), 'participant_removed', { id: 'p' })).toMatchObject({
      kind: 'event',
      event: { kind: 'participant_removed', roomId: 'r', participant: { id: 'p' } },
    });
  });

  it('BND-01 a room_added with a null title is read', () => {
    expect(readPush(topics.rooms('a'), 'room_added', { id: 'r', title: null, ...times }).kind).toBe('event');
  });

  it('control signals take only the modes and scopes there are', () => {
    const control = { mode: 'stop', scope: 'room', agent_id: 'a' };
    expect(readPush(topics.control('a'), 'agent.control', control).kind).toBe('control');
    expect(readPush(topics.control('a'), 'agent.control', { ...control, mode: 'pause' }).kind).toBe('invalid');
    expect(readPush(topics.control('a'), 'agent.control', { ...control, scope: 'world' }).kind).toBe('invalid');
  });

  it('a supersede notice reads an odd retry_after as none', () => {
    const push = readPush(topics.control('a'), 'supersede', { reason: 'r', message: 'm', retry_after: 1.5 });
    expect(push).toMatchObject({ supersede: { retry_after: null, retryable: false } });
  });

  it('a payload can not give an event a prototype of its own', () => {
    const payload = JSON.parse(
      `{"__proto__": {"thread_id": "sneaked in"}, ${JSON.stringify({ ...messageCreated('m', 'r'), thread_id: undefined }).slice(1)}`,
    ) as Record<string, unknown>;
    const push = readPush(topics.chatRoom('r'), 'message_created', payload);
    expect(push.kind === 'event' && push.event.kind === 'message_created' && push.event.message.thread_id).toBe(
      undefined,
    );
  });
});
