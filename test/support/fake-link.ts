import { deferred } from '../../src/base/async.js';
import { GatewayError } from '../../src/base/errors.js';
import { EventQueue } from '../../src/platform/event-queue.js';
import type { BandLink, LinkEvent, LinkState } from '../../src/platform/link-port.js';
import { topics } from '../../src/platform/topics.js';
import type { AgentControl } from '../../src/platform/wire/socket-events.js';

/** A link whose other end is the test. */
export class FakeLink implements BandLink {
  readonly joined = new Set<string>();
  readonly joins: string[] = [];
  readonly leaves: string[] = [];
  /** Those that the platform hears of. */
  readonly leavesWhileUp: string[] = [];
  readonly #queue = new EventQueue();
  readonly #closed = deferred<GatewayError | null>();
  readonly #refused = new Map<string, { times: number; error: GatewayError }>();
  #control: ((control: AgentControl) => void) | null = null;
  #state: ((state: LinkState) => void) | null = null;
  connectError: Error | null = null;
  connects = 0;
  isClosed = false;
  isUp = false;

  async connect(): Promise<void> {
    this.connects += 1;
    await Promise.resolve();
    if (this.connectError) {
      await this.close();
      throw this.connectError;
    }
    this.isUp = true;
    this.#state?.(this.state);
  }

  async close(): Promise<void> {
    await Promise.resolve();
    if (this.isClosed) return;
    this.end(null);
  }

  /** The link is over; with an error, because the platform ended it. */
  end(error: GatewayError | null): void {
    this.isClosed = true;
    this.isUp = false;
    this.#state?.(this.state);
    this.joined.clear();
    this.#queue.end();
    this.#closed.resolve(error);
  }

  async join(topic: string): Promise<void> {
    this.joins.push(topic);
    await Promise.resolve();
    if (this.isClosed) throw new GatewayError('BAND_LINK_CLOSED');
    const refusal = this.#refused.get(topic);
    if (refusal && refusal.times > 0) {
      refusal.times -= 1;
      throw refusal.error;
    }
    this.joined.add(topic);
  }

  async leave(topic: string): Promise<void> {
    this.leaves.push(topic);
    if (!this.isClosed) this.leavesWhileUp.push(topic);
    await Promise.resolve();
    this.joined.delete(topic);
  }

  /** The next joins of a topic are refused. */
  refuse(topic: string, times = 1, error = new GatewayError('BAND_TIMEOUT')): void {
    this.#refused.set(topic, { times, error });
  }

  /** An event comes over the socket; one of a room only when the room is joined. */
  push(event: LinkEvent): void {
    if (event.kind === 'message_created' && !(this.isUp && this.joined.has(topics.chatRoom(event.roomId)))) return;
    this.#queue.push(event);
  }

  drop(): void {
    this.isUp = false;
    this.#state?.(this.state);
    this.#queue.push({ kind: 'disconnected', why: 'test' });
  }

  reconnect(): void {
    this.isUp = true;
    this.#state?.(this.state);
    this.#queue.push({ kind: 'reconnected' });
  }

  control(control: AgentControl): void {
    this.#control?.(control);
  }

  get events(): AsyncIterable<LinkEvent> {
    return this.#queue;
  }

  onControl(handler: (control: AgentControl) => void): void {
    this.#control = handler;
  }

  get state(): LinkState {
    return {
      kind: this.isClosed ? 'closed' : this.isUp ? 'connected' : 'new',
      sinceMs: 0,
      why: null,
      nextTryAtMs: null,
      failures: 0,
      topicsJoined: this.joined.size,
      topicsKnown: this.joined.size,
    };
  }

  onState(handler: (state: LinkState) => void): () => void {
    this.#state = handler;
    return () => {
      this.#state = null;
    };
  }

  get closed(): Promise<GatewayError | null> {
    return this.#closed.promise;
  }
}
