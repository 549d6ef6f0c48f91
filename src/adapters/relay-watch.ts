import type { CancelTimer, Clock } from '../base/clock.js';
import type { Outlet } from '../core/outside.js';
import type { RelayTalks, Wait } from './relay-talks.js';

export interface RelayWatchDeps {
  readonly clock: Clock;
  readonly talks: RelayTalks;
  readonly outlet: Outlet;
  readonly slowAfterMs: number;
  readonly timeoutMs: number;
  readonly onError: (error: unknown) => void;
}

const TELL_AGAIN_MS = 30_000;

/** Tells the person when an answer takes long, and when it has taken too long. One timer per room. */
export class RelayWatch {
  readonly #deps: RelayWatchDeps;
  readonly #timers = new Map<string, CancelTimer>();
  #stopped = false;

  constructor(deps: RelayWatchDeps) {
    this.#deps = deps;
  }

  /** Sets the room's timer by what it waits for; no wait, no timer. */
  set(roomId: string, waits: readonly Wait[]): void {
    this.#timers.get(roomId)?.();
    this.#timers.delete(roomId);
    const due = Math.min(...waits.map((wait) => this.#dueAt(wait)));
    if (Number.isFinite(due)) this.#tellIn(roomId, Math.max(0, due - this.#deps.clock.now()));
  }

  /** What could not be said now is said later. */
  #tellIn(roomId: string, ms: number): void {
    const { clock, onError } = this.#deps;
    if (this.#stopped) return;
    const cancel = clock.after(ms, () => {
      this.#timers.delete(roomId);
      this.#tell(roomId).catch((error: unknown) => {
        onError(error);
        if (!this.#timers.has(roomId)) this.#tellIn(roomId, TELL_AGAIN_MS);
      });
    });
    this.#timers.set(roomId, cancel);
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #dueAt({ since, told }: Wait): number {
    if (told === 'nothing') return since + this.#deps.slowAfterMs;
    return told === 'slow' ? since + this.#deps.timeoutMs : Number.POSITIVE_INFINITY;
  }

  /** A notice has an id of its own, so that a crash between it and its record says it once. */
  async #tell(roomId: string): Promise<void> {
    const { clock, talks, outlet, timeoutMs } = this.#deps;
    const talk = await talks.get(roomId);
    for (const wait of talk.waits.filter((open) => this.#dueAt(open) <= clock.now())) {
      const late = wait.since + timeoutMs <= clock.now();
      const told = late ? 'timeout' : 'slow';
      const text = late
        ? `${wait.peerName} has not answered. If an answer still comes, it will be posted here.`
        : `${wait.peerName} is still working on it.`;
      await outlet.notice(roomId, { id: `${wait.messageId}:${wait.peerId}:${told}`, text });
      if (late) outlet.waiting(roomId, false);
      await talks.change(roomId, (now) => ({
        ...now,
        waits: now.waits.map((open) =>
          open.messageId === wait.messageId && open.peerId === wait.peerId ? { ...open, told } : open,
        ),
      }));
    }
    this.set(roomId, (await talks.get(roomId)).waits);
  }
}
