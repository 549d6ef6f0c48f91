import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../src/platform/event-queue.js';
import type { LinkEvent } from '../../src/platform/link-port.js';
import type { MessageCreated } from '../../src/platform/wire/socket-events.js';

const message = (roomId: string, id: string, content = ''): LinkEvent => ({
  kind: 'message_created',
  roomId,
  message: { id, content } as MessageCreated,
});
const removed = (roomId: string): LinkEvent => ({ kind: 'room_deleted', roomId });

async function drain(queue: EventQueue): Promise<LinkEvent[]> {
  queue.end();
  const events: LinkEvent[] = [];
  for await (const event of queue) events.push(event);
  return events;
}

describe('an event queue', () => {
  it('gives events in order and ends once it is drained', async () => {
    const queue = new EventQueue();
    for (let i = 0; i < 5_000; i += 1) queue.push(message(`r${i % 7}`, String(i)));
    const ids = (await drain(queue)).map((event) => (event.kind === 'message_created' ? event.message.id : ''));
    expect(ids).toEqual(Array.from({ length: 5_000 }, (_, i) => String(i)));
    queue.push(message('r', 'late'));
    expect(queue.size).toBe(0);
  });

  it('wakes a consumer that waits', async () => {
    const queue = new EventQueue();
    const iterator = queue[Symbol.asyncIterator]();
    const next = iterator.next();
    queue.push({ kind: 'reconnected' });
    expect(await next).toEqual({ done: false, value: { kind: 'reconnected' } });
    const last = iterator.next();
    queue.end();
    expect((await last).done).toBe(true);
  });

  it("beyond its total size asks for a catch-up of everything, and takes the link's own words all the same", async () => {
    let dropped = 0;
    const queue = new EventQueue({ maxBytes: 4_096, dropped: () => (dropped += 1) });
    queue.push(message('a', '1', 'x'.repeat(1_000)));
    queue.push(message('a', '2', 'x'.repeat(1_000)));
    queue.push(message('b', '3'));
    queue.push(removed('c'));
    queue.push({ kind: 'disconnected', why: 'w' });
    queue.push({ kind: 'reconnected' });
    const kinds = (await drain(queue)).map((event) => (event.kind === 'resync' ? `all:${event.roomId}` : event.kind));
    expect(kinds).toEqual(['message_created', 'all:null', 'disconnected', 'reconnected']);
    expect(dropped).toBe(3);
  });

  it('never loses a message that no later resync covers', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.constant('take'), fc.constantFrom('a', 'b', 'c')), { maxLength: 200 }),
        async (steps) => {
          const queue = new EventQueue({ maxMessagesPerRoom: 3, maxBytes: 512 * 7 });
          const iterator = queue[Symbol.asyncIterator]();
          const open = new Map<string, string>();
          let n = 0;
          const settle = (event: LinkEvent) => {
            if (event.kind === 'message_created') open.delete(event.message.id);
            // A catch-up finds everything that was pushed before it is read.
            if (event.kind === 'resync') {
              for (const [id, room] of open) if (event.roomId === null || event.roomId === room) open.delete(id);
            }
          };
          for (const step of steps) {
            if (step === 'take') {
              if (queue.size > 0) settle((await iterator.next()).value as LinkEvent);
            } else {
              const id = String(n++);
              open.set(id, step);
              queue.push(message(step, id));
              expect(queue.size).toBeLessThanOrEqual(7 + 4);
            }
          }
          for (const event of await drain(queue)) settle(event);
          expect([...open]).toEqual([]);
        },
      ),
    );
  });
});
