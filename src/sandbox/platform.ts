import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import { expireActivity } from './world/activity.js';
import { Change } from './world/change.js';
import { markDelivered } from './world/deliveries.js';
import type { Fact } from './world/facts.js';
import { problemOf } from './answer.js';
import type { Hub, HandedOver } from './sockets/hub.js';
import type { SandboxSwitches } from './options.js';
import { emptyWorld, type World } from './world/world.js';

/** Where facts are kept. `append` returns once they survive the end of this process. */
export interface Journal {
  append(facts: readonly Fact[], world: World): void;
  /** Forgets everything. */
  clear(): void;
  close(): Promise<void>;
}

export interface PlatformDeps {
  readonly world: World;
  readonly hub: Hub;
  readonly journal: Journal | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Runs commands against the world: facts are kept first, then pushed, and only then does the caller get its answer.
 * All of it happens in one turn of the event loop, so nobody sees half of a command.
 */
export class Platform {
  readonly world: World;
  readonly hub: Hub;
  readonly clock: Clock;
  readonly switches: { -readonly [Name in keyof SandboxSwitches]: SandboxSwitches[Name] } = {
    takeoverCooldownMs: 0,
    deliveryStatusOnOwnRows: true,
    repeatedProcessingKeepsAttempt: false,
  };
  readonly #journal: Journal | null;
  readonly #log: Logger;
  #broken = false;
  #cancelExpiry: (() => void) | null = null;

  constructor({ world, hub, journal, clock, log }: PlatformDeps) {
    this.world = world;
    this.hub = hub;
    this.clock = clock;
    this.#journal = journal;
    this.#log = log;
  }

  /** False after a failed write: what is in memory may be more than what is on disk, so nothing is answered any more. */
  get healthy(): boolean {
    return !this.#broken;
  }

  /** @throws {Problem} what the command refuses; 503 when its facts cannot be kept */
  run<T>(command: (change: Change) => T): T {
    const change = new Change(this.world);
    const value = command(change);
    this.#commit(change);
    this.#watchActivity();
    return value;
  }

  /** Notes that messages reached agents by socket. */
  delivered(handed: readonly HandedOver[]): void {
    if (handed.length === 0) return;
    this.run((change) => {
      for (const { agentId, message } of handed) {
        const room = this.world.rooms.get(message.roomId);
        if (room) markDelivered(change, room, message, agentId);
      }
    });
  }

  /** Forgets everything that ever happened. Moments go on growing. */
  empty(): void {
    this.#journal?.clear();
    emptyWorld(this.world);
  }

  async close(): Promise<void> {
    this.#cancelExpiry?.();
    await this.#journal?.close();
  }

  #commit(change: Change): void {
    if (this.#broken) throw problemOf(503, 'The sandbox cannot write to its data folder');
    if (change.facts.length > 0 && this.#journal) {
      try {
        this.#journal.append(change.facts, this.world);
      } catch (error) {
        this.#broken = true;
        this.#log.error({ err: error }, 'sandbox journal failed; calls are refused until a restart');
        throw problemOf(503, 'The sandbox cannot write to its data folder');
      }
    }
    this.delivered(this.hub.send(change.pushes));
  }

  #watchActivity(): void {
    if (this.#cancelExpiry !== null || this.world.working.size === 0) return;
    this.#expireThenWait();
  }

  #expireThenWait(): void {
    this.#cancelExpiry = null;
    const change = new Change(this.world);
    const nextMs = expireActivity(change, this.clock.now());
    this.hub.send(change.pushes);
    if (nextMs === null) return;
    this.#cancelExpiry = this.clock.after(nextMs - this.clock.now(), () => {
      this.#expireThenWait();
    });
  }
}
