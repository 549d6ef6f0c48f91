import { childSignal } from '../../../src/base/async.js';
import { TurnResultAlreadyReported } from '../../../src/base/band-errors.js';
import type { Clock } from '../../../src/base/clock.js';
import { toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Counter, Gauge, Histogram, Metrics } from '../../../src/base/metrics.js';
import { createAgentInput } from '../../../src/core/agent-input.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { HistoryProvider, type RawHistoryMessage } from '../../../src/core/history.js';
import type { PlatformMessage } from '../../../src/core/platform-message.js';
import type { AgentToolsProtocol } from '../../../src/core/tools.js';
import type { Turn } from '../../../src/core/turn.js';

/** Why a turn was cut short. */
export type CutReason = 'interrupt' | 'stop' | 'deleted' | 'timeout' | 'shutdown';

/** The reason a turn's signal carries. */
export class TurnCut extends Error {
  readonly reason: CutReason;
  /** Who asked for it, as the thread will read it; null where nobody did. */
  readonly by: string | null;

  constructor(reason: CutReason, by: string | null = null) {
    super(`The turn was cut: ${reason}`);
    this.name = 'TurnCut';
    this.reason = reason;
    this.by = by;
  }
}

/** How a turn ended. */
export type TurnEnd =
  /** Something was shown, said not to be needed, or settled by the brain itself. */
  | { readonly kind: 'replied' | 'no_reply' | 'settled' }
  | { readonly kind: 'silent' }
  | { readonly kind: 'cut'; readonly cut: TurnCut }
  | { readonly kind: 'failed'; readonly error: Error };

export interface TurnRunnerDeps {
  readonly inner: FrameworkAdapter;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly timeoutMs: number;
}

export interface TurnInput {
  /** The thread's key: one turn at a time runs under it. */
  readonly key: string;
  readonly slug: string;
  readonly message: PlatformMessage;
  readonly tools: AgentToolsProtocol;
  readonly turn: Turn;
  readonly history: readonly RawHistoryMessage[];
  readonly note: string;
  readonly isNew: boolean;
  readonly roomId: string;
  /** The turn's own signal, already handed to its tools. */
  readonly signal: AbortSignal;
}

interface Running {
  readonly cut: (cut: TurnCut) => void;
  readonly startedBy: string;
  readonly messageTs: string;
}

/** An adapter that ignores its signal is waited for this long, and no longer. */
const UNWIND_MS = 1_000;
const TURN_BUCKETS_SECONDS = [0.1, 0.5, 1, 5, 15, 60, 300, 900];

/** Runs the brain for Slack turns, and cuts them on request. */
export class TurnRunner {
  readonly #deps: TurnRunnerDeps;
  readonly #running = new Map<string, Running>();
  readonly #seconds: Histogram;
  readonly #ends: Counter;
  readonly #depth: Gauge;

  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps;
    const { metrics } = deps;
    this.#seconds = metrics.histogram(
      'slack_turn_seconds',
      'Length of turns',
      ['app', 'outcome'],
      TURN_BUCKETS_SECONDS,
    );
    this.#ends = metrics.counter('slack_turns_total', 'Turns by how they ended', ['app', 'outcome']);
    this.#depth = metrics.gauge('slack_turns_running', 'Turns that run now');
  }

  get running(): number {
    return this.#running.size;
  }

  /** Who began the turn that runs under a key; null when none does. */
  startedBy(key: string): string | null {
    return this.#running.get(key)?.startedBy ?? null;
  }

  runs(key: string): boolean {
    return this.#running.has(key);
  }

  /** Whether the turn that runs under a key answers this message. */
  runsMessage(key: string, ts: string): boolean {
    return this.#running.get(key)?.messageTs === ts;
  }

  /** @returns false when no turn runs under this key */
  cut(key: string, cut: TurnCut): boolean {
    const running = this.#running.get(key);
    running?.cut(cut);
    return running !== undefined;
  }

  /** Makes the turn's signal: it aborts with a {@link TurnCut}. The caller disposes of it when all is done. */
  begin(
    key: string,
    message: { readonly by: string; readonly ts: string },
    parent: AbortSignal,
  ): { signal: AbortSignal; end(): void } {
    const child = childSignal(parent);
    const cut = (why: TurnCut) => {
      child.abort(why);
    };
    const cancelTimeout = this.#deps.clock.after(this.#deps.timeoutMs, () => {
      cut(new TurnCut('timeout'));
    });
    this.#running.set(key, { cut, startedBy: message.by, messageTs: message.ts });
    this.#depth.set({}, this.#running.size);
    return {
      signal: child.signal,
      end: () => {
        cancelTimeout();
        child[Symbol.dispose]();
        this.#running.delete(key);
        this.#depth.set({}, this.#running.size);
      },
    };
  }

  async run(input: TurnInput): Promise<TurnEnd> {
    const { clock } = this.#deps;
    const begun = clock.now();
    const end = await this.#outcome(input);
    // Whatever the brain does from here on reaches neither Slack nor the room (S-087).
    input.turn.end();
    const outcome = outcomeLabel(end);
    this.#seconds.observe({ app: input.slug, outcome }, (clock.now() - begun) / 1_000);
    this.#ends.inc({ app: input.slug, outcome });
    return end;
  }

  async #outcome({ message, tools, turn, history, note, isNew, roomId, signal }: TurnInput): Promise<TurnEnd> {
    // Cut while it was being prepared: the brain never hears of it.
    if (isAborted(signal)) return cutEnd(signal);
    const work = this.#deps.inner.onEvent(
      createAgentInput({
        msg: message,
        tools,
        history: new HistoryProvider(history),
        participantsMsg: note,
        contactsMsg: null,
        isSessionBootstrap: isNew,
        roomId,
        signal,
      }),
    );
    try {
      await this.#orCut(work, signal);
    } catch (error) {
      if (isAborted(signal)) return cutEnd(signal);
      if (error instanceof TurnResultAlreadyReported) return { kind: 'silent' };
      return { kind: 'failed', error: toError(error) };
    }
    if (isAborted(signal)) return cutEnd(signal);
    if (turn.declined) return { kind: 'no_reply' };
    if (turn.replied) return { kind: 'replied' };
    return turn.settled ? { kind: 'settled' } : { kind: 'silent' };
  }

  /** Waits for the work; once cut, a second longer at most. */
  async #orCut(work: Promise<void>, signal: AbortSignal): Promise<void> {
    const late = new Promise<never>((_resolve, reject) => {
      signal.addEventListener(
        'abort',
        () => {
          this.#deps.clock.after(UNWIND_MS, () => {
            reject(toError(signal.reason));
          });
        },
        { once: true },
      );
    });
    work.catch((error: unknown) => {
      if (signal.aborted) this.#deps.log.debug({ err: error }, 'a turn that was cut ended with an error');
    });
    await Promise.race([work, late]);
  }
}

/** The end of a turn whose signal has aborted; what aborts it without a reason of its own is the shutdown. */
export const cutEnd = (signal: AbortSignal): TurnEnd => ({
  kind: 'cut',
  cut: signal.reason instanceof TurnCut ? signal.reason : new TurnCut('shutdown'),
});

function outcomeLabel(end: TurnEnd): string {
  if (end.kind === 'failed') return 'error';
  if (end.kind === 'cut') return end.cut.reason === 'timeout' ? 'timeout' : 'interrupted';
  return end.kind;
}

/** Asked anew after every wait, whatever was known before it. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted;
