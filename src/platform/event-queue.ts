import type { LinkEvent } from './link-port.js';

interface EventQueueOptions {
  /** Messages of one room that may wait; default 1,000. */
  maxMessagesPerRoom?: number;
  /** Estimated size of everything that waits; default 64 MiB. */
  maxBytes?: number;
  /** Called for each event that is left out. */
  dropped?: () => void;
}

/** What an event without text is counted as. */
const BASE_BYTES = 512;

/**
 * Link events in order, for one consumer. What does not fit is dropped, and in its place stands one `resync`, so that
 * the consumer knows where to catch up: never a loss without a word (PHX-04). As long as that `resync` waits, later
 * events of the same place are dropped as well: it covers them, and they would overtake what was lost.
 */
export class EventQueue implements AsyncIterable<LinkEvent> {
  readonly #maxMessagesPerRoom: number;
  readonly #maxBytes: number;
  readonly #dropped: () => void;
  readonly #messages = new Map<string, number>();
  /** Rooms whose `resync` waits in the queue; null stands for everything. */
  readonly #overflowed = new Set<string | null>();
  #events: (LinkEvent | undefined)[] = [];
  #head = 0;
  #bytes = 0;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor({ maxMessagesPerRoom = 1_000, maxBytes = 64 * 1024 * 1024, dropped }: EventQueueOptions = {}) {
    this.#maxMessagesPerRoom = maxMessagesPerRoom;
    this.#maxBytes = maxBytes;
    this.#dropped = dropped ?? (() => undefined);
  }

  get size(): number {
    return this.#events.length - this.#head;
  }

  push(event: LinkEvent): void {
    if (this.#ended) return;
    if (isLinksOwn(event)) {
      this.#append(event);
      return;
    }
    if (this.#overflowed.has(null)) {
      this.#dropped();
      return;
    }
    if (this.#bytes + bytesOf(event) > this.#maxBytes) {
      this.#overflow(null);
      return;
    }
    if (event.kind === 'message_created') {
      const waiting = this.#messages.get(event.roomId) ?? 0;
      if (this.#overflowed.has(event.roomId)) {
        this.#dropped();
        return;
      }
      if (waiting >= this.#maxMessagesPerRoom) {
        this.#overflow(event.roomId);
        return;
      }
      this.#messages.set(event.roomId, waiting + 1);
    }
    this.#append(event);
  }

  /** What is queued can still be read; nothing more is taken. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LinkEvent, void, undefined> {
    for (;;) {
      const event = this.#take();
      if (event) yield event;
      else if (this.#ended) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #overflow(roomId: string | null): void {
    this.#dropped();
    this.#overflowed.add(roomId);
    this.#append({ kind: 'resync', roomId, why: 'overflow' });
  }

  #append(event: LinkEvent): void {
    this.#bytes += bytesOf(event);
    this.#events.push(event);
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  #take(): LinkEvent | undefined {
    const event = this.#events[this.#head];
    if (!event) return undefined;
    this.#events[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#events.length) {
      this.#events = [];
      this.#head = 0;
    } else if (this.#head > 1_024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    this.#bytes -= bytesOf(event);
    if (event.kind === 'message_created') {
      const waiting = (this.#messages.get(event.roomId) ?? 1) - 1;
      if (waiting === 0) this.#messages.delete(event.roomId);
      else this.#messages.set(event.roomId, waiting);
    } else if (event.kind === 'resync' && event.why === 'overflow') {
      this.#overflowed.delete(event.roomId);
    }
    return event;
  }
}

/** The link's own words are few and never dropped. */
function isLinksOwn({ kind }: LinkEvent): boolean {
  return kind === 'disconnected' || kind === 'reconnected' || kind === 'resync' || kind === 'topic_lost';
}

function bytesOf(event: LinkEvent): number {
  return event.kind === 'message_created' ? BASE_BYTES + event.message.content.length * 2 : BASE_BYTES;
}
