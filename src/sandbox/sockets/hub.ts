import type { PushFault } from '../options.js';
import type { Push } from '../world/change.js';
import type { Message } from '../world/world.js';
import type { Connection } from './connection.js';

/** A message that a push has just handed to an agent. */
export interface HandedOver {
  readonly agentId: string;
  readonly message: Message;
}

interface Withheld {
  readonly to: string;
  readonly push: Push;
  readonly payload: string;
}

/** Push faults and withheld pushes together are a test's doing; this many is more than any test wants. */
const MAX_WITHHELD = 10_000;

/** Who is connected, and the way of a push to them. */
export class Hub {
  readonly #byPrincipal = new Map<string, Set<Connection>>();
  readonly #isMember: (roomId: string, principalId: string) => boolean;
  #faults: { fault: PushFault; left: number }[] = [];
  #withheld: Withheld[] = [];

  /** @param isMember - asked at every push of a room */
  constructor(isMember: (roomId: string, principalId: string) => boolean) {
    this.#isMember = isMember;
  }

  add(connection: Connection): void {
    const connections = this.#byPrincipal.get(connection.principalId);
    if (connections) connections.add(connection);
    else this.#byPrincipal.set(connection.principalId, new Set([connection]));
  }

  remove(connection: Connection): void {
    const connections = this.#byPrincipal.get(connection.principalId);
    connections?.delete(connection);
    if (connections?.size === 0) this.#byPrincipal.delete(connection.principalId);
  }

  isOnline(principalId: string): boolean {
    return this.#byPrincipal.has(principalId);
  }

  of(principalId: string): readonly Connection[] {
    return [...(this.#byPrincipal.get(principalId) ?? [])];
  }

  *all(): Generator<Connection> {
    for (const connections of this.#byPrincipal.values()) yield* connections;
  }

  get size(): number {
    let size = 0;
    for (const connections of this.#byPrincipal.values()) size += connections.size;
    return size;
  }

  /** Sends pushes in order. @returns the messages that reached an agent's socket by them */
  send(pushes: readonly Push[]): HandedOver[] {
    const handed: HandedOver[] = [];
    for (const push of pushes) {
      let payload: string | null = null;
      for (const to of push.to) {
        if (!this.#listens(to, push.topic)) continue;
        payload ??= JSON.stringify(push.payload());
        const mode = this.#faults.length === 0 ? null : this.#meet(to, push);
        if (mode === 'drop') continue;
        if (mode === 'withhold') {
          if (this.#withheld.length < MAX_WITHHELD) this.#withheld.push({ to, push, payload });
          continue;
        }
        const sent = this.#deliver(to, push, payload);
        if (mode === 'duplicate') this.#deliver(to, push, payload);
        if (sent && push.delivers) handed.push({ agentId: to, message: push.delivers });
      }
    }
    return handed;
  }

  fault(fault: PushFault): void {
    this.#faults.push({ fault, left: fault.times ?? 1 });
  }

  clearFaults(): void {
    this.#faults = [];
  }

  /** Sends what was withheld, in order. */
  release(): { sent: number; handed: HandedOver[] } {
    const withheld = this.#withheld;
    this.#withheld = [];
    const handed: HandedOver[] = [];
    let sent = 0;
    for (const { to, push, payload } of withheld) {
      if (!this.#deliver(to, push, payload)) continue;
      sent += 1;
      if (push.delivers) handed.push({ agentId: to, message: push.delivers });
    }
    return { sent, handed };
  }

  forgetWithheld(): void {
    this.#withheld = [];
  }

  #listens(to: string, topic: string): boolean {
    const connections = this.#byPrincipal.get(to);
    if (!connections) return false;
    for (const connection of connections) if (connection.has(topic)) return true;
    return false;
  }

  #deliver(to: string, push: Push, payload: string): boolean {
    if (push.roomId !== undefined && !this.#isMember(push.roomId, to)) return false;
    let sent = false;
    for (const connection of this.#byPrincipal.get(to) ?? []) {
      sent = connection.push(push.topic, push.event, payload) || sent;
    }
    return sent;
  }

  #meet(to: string, push: Push): PushFault['mode'] | null {
    for (const entry of this.#faults) {
      const { fault } = entry;
      if (fault.principalId !== undefined && fault.principalId !== to) continue;
      if (fault.event !== undefined && fault.event !== push.event) continue;
      entry.left -= 1;
      if (entry.left <= 0) this.#faults = this.#faults.filter((other) => other !== entry);
      return fault.mode;
    }
    return null;
  }
}
