import type { Background } from '../../../src/base/async.js';
import type { SlackThread } from '../conversation.js';
import type { Installation } from '../installations.js';
import type { Bindings } from './bindings.js';
import { catchUp, type CatchUpDeps } from './catch-up.js';
import type { Threads } from './threads.js';

export interface LookBackDeps extends Omit<CatchUpDeps, 'threads'> {
  readonly installations: ReadonlyMap<string, Installation>;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly background: Background;
  /** False while the bridge stops. */
  readonly open: () => boolean;
  readonly signal: AbortSignal;
}

/** When bound threads are looked through for what was written while Slack could not reach us. */
export interface LookBack {
  /** Looks through the threads of an app; nothing happens while the bridge stops. */
  at(slug: string): Promise<void>;
  /** The same without waiting for it. */
  soon(slug: string): void;
  /** An outage that Slack's own repeats may not cover makes bound threads looked through. */
  noteConnections(slug: string, connections: number): void;
}

const OUTAGE_MS = 30_000;
const RECENT_MS = 24 * 3_600_000;

export function createLookBack(deps: LookBackDeps): LookBack {
  const { installations, bindings, threads, background, open, signal, clock } = deps;
  const downSince = new Map<string, number>();

  const recentThreads = async (slug: string) => {
    const recent: { thread: SlackThread; lastTs: string; touchedAt: number }[] = [];
    for (const { key, thread } of bindings.ofApp(slug)) {
      const { lastTs, touchedAt } = await threads.get(key);
      if (lastTs !== null && touchedAt > clock.now() - RECENT_MS) recent.push({ thread, lastTs, touchedAt });
    }
    return recent.sort((a, b) => b.touchedAt - a.touchedAt);
  };
  const at = async (slug: string): Promise<void> => {
    const installation = installations.get(slug);
    if (!installation || !open()) return;
    try {
      await catchUp(installation, { ...deps, threads: recentThreads }, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  const soon = (slug: string): void => {
    background.run(() => at(slug));
  };

  return {
    at,
    soon,
    noteConnections(slug, connections) {
      if (connections === 0) {
        if (!downSince.has(slug)) downSince.set(slug, clock.now());
        return;
      }
      const since = downSince.get(slug);
      downSince.delete(slug);
      if (since !== undefined && clock.now() - since > OUTAGE_MS) soon(slug);
    },
  };
}
