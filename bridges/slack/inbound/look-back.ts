import { z } from 'zod';
import type { Background } from '../../../src/base/async.js';
import { KeyedRecords } from '../../../src/store/keyed-records.js';
import type { StateStore } from '../../../src/store/port.js';
import type { Installation } from '../installations.js';
import type { Bindings } from './bindings.js';
import { catchUp, type CatchUpDeps, type MissedPlace } from './catch-up.js';
import type { Threads } from './threads.js';

export interface LookBackDeps extends Omit<CatchUpDeps, 'mode' | 'pace'> {
  readonly mode: 'auto' | 'on' | 'off';
  readonly installations: ReadonlyMap<string, Installation>;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly store: StateStore;
  readonly prefix: string;
  /** A connection may be dead for this long before it is known to be. */
  readonly pingTimeoutMs: number;
  readonly background: Background;
  /** False while the bridge stops. */
  readonly open: () => boolean;
  readonly signal: AbortSignal;
}

/** When conversations are looked through for what was written while Slack could not reach us. */
export interface LookBack {
  /** Notes what was seen last, before anything new is taken up. */
  prepare(): Promise<void>;
  /** Slack knows an app (again): looks through its conversations. */
  begun(slug: string): Promise<void>;
  /** An outage that Slack's own repeats may not cover makes conversations looked through. */
  noteConnections(slug: string, connections: number): void;
  /** Slack dropped an app's events for a minute, given in seconds since the epoch. */
  dropped(slug: string, minute: number | null): void;
}

const OUTAGE_MS = 30_000;
const RECENT_MS = 24 * 3_600_000;
const MAX_THREADS = 200;
const MAX_DIRECT = 200;
/** Twenty calls a minute leave a workspace's limits to those who are waiting for an answer. */
const PAUSE_MS = 3_000;
const MINUTE_MS = 60_000;
/** How long after its minute what was dropped can surely be read. */
const MINUTE_OVER_MS = MINUTE_MS + 5_000;

/** Since when something may be missing, by Slack's clock, in milliseconds since the epoch. */
const owedSchema = z.object({ since: z.number().nullable() });

interface Seen extends Omit<MissedPlace, 'oldest'> {
  readonly lastTs: string;
  readonly touchedAt: number;
}

export function createLookBack(deps: LookBackDeps): LookBack {
  const { mode, installations, bindings, threads, background, open, signal, clock, log } = deps;
  const owed = new KeyedRecords({
    store: deps.store,
    prefix: deps.prefix,
    schema: owedSchema,
    empty: { since: null },
  });
  const downSince = new Map<string, number>();
  const tooStrict = new Set<string>();
  const running = new Map<string, Promise<void>>();
  const before = new Map<string, readonly Seen[]>();
  const nextCallAt = new Map<string, number>();

  /** How far this machine's clock is before Slack's, which dates all messages. */
  const aheadMs = (slug: string): number => installations.get(slug)?.client.clockAheadMs() ?? 0;

  /** Conversations of an app in which something happened in the day before the gap, newest first. */
  const seen = async (slug: string, since: number | null): Promise<readonly Seen[]> => {
    const all: Seen[] = [];
    const direct = new Map<string, Seen>();
    for (const { key, thread } of bindings.ofApp(slug)) {
      const { lastTs, touchedAt } = await threads.get(key);
      if (lastTs === null) continue;
      const { team, channel, threadTs } = thread;
      const one = { team, channel, threadTs, lastTs, touchedAt };
      all.push(one);
      const known = direct.get(channel);
      if (!channel.startsWith('D') || (known && known.lastTs > lastTs)) continue;
      direct.set(channel, { ...one, threadTs: null });
    }
    const newest = (some: readonly Seen[], most: number) =>
      some.toSorted((a, b) => b.touchedAt - a.touchedAt).slice(0, most);
    const threadsOf = newest(all, MAX_THREADS);
    // How long the process was down nobody knows: it ended no earlier than the last thing that it saw.
    const gap = since === null ? (threadsOf[0]?.touchedAt ?? 0) : since + aheadMs(slug);
    const recent = threadsOf.filter(({ touchedAt }) => touchedAt > gap - RECENT_MS);
    return newest([...recent, ...newest([...direct.values()], MAX_DIRECT)], Infinity);
  };

  const pace = (team: string) => async (within: AbortSignal) => {
    const at = Math.max(clock.now(), nextCallAt.get(team) ?? 0);
    nextCallAt.set(team, at + PAUSE_MS);
    await clock.sleep(at - clock.now(), within);
  };

  const look = async (slug: string, onlyOwed: boolean): Promise<void> => {
    const installation = installations.get(slug);
    if (!installation?.identity || !open() || mode === 'off' || tooStrict.has(slug)) return;
    const { since } = await owed.get(slug);
    if (onlyOwed && since === null) return;
    const places = before.get(slug) ?? (await seen(slug, since));
    before.delete(slug);
    // Live events may have come since: what is newest in a thread does not say that nothing older is missing.
    const from = since === null ? null : toTs(since);
    const missed = places.map(({ lastTs, ...place }) => ({
      ...place,
      oldest: from !== null && from < lastTs ? from : lastTs,
    }));
    const outcome = await catchUp(
      installation,
      missed,
      { ...deps, mode, pace: pace(installation.identity.teamId) },
      signal,
    );
    if (outcome.kind === 'strict') {
      tooStrict.add(slug);
      log.warn({ app: slug }, 'catch-up is off: Slack lets this app read too little for it');
    }
    await owed.change(slug, (now) => (now.since === since ? { since: null } : now));
  };

  /** One at a time for an app; nothing happens while the bridge stops. */
  const at = (slug: string, onlyOwed: boolean): Promise<void> => {
    const run = (running.get(slug) ?? Promise.resolve())
      .then(() => look(slug, onlyOwed))
      .catch((error: unknown) => {
        if (!signal.aborted) log.error({ err: error, app: slug }, 'what was missed could not be looked for');
      });
    running.set(slug, run);
    return run;
  };

  /** On disk first, so that a restart in between looks as far back. */
  const owe = (slug: string, since: number, waitMs: number): void => {
    if (mode === 'off') return;
    background.run(async () => {
      await owed.change(slug, (now) => ({ since: Math.min(now.since ?? since, since) }));
      try {
        await clock.sleep(waitMs, signal);
      } catch {
        return; // stopped: the next start finds what is owed
      }
      await at(slug, true);
    });
  };

  return {
    async prepare() {
      if (mode === 'off') return;
      for (const slug of installations.keys()) before.set(slug, await seen(slug, null));
    },
    begun: (slug) => at(slug, false),
    noteConnections(slug, connections) {
      if (connections === 0) {
        if (!downSince.has(slug)) downSince.set(slug, clock.now());
        return;
      }
      const since = downSince.get(slug);
      downSince.delete(slug);
      if (since === undefined || clock.now() - since <= OUTAGE_MS) return;
      owe(slug, since - aheadMs(slug) - 2 * deps.pingTimeoutMs, 0);
    },
    dropped(slug, minute) {
      const now = clock.now() - aheadMs(slug);
      const since = minute === null ? now - MINUTE_MS : minute * 1_000;
      const waitMs = since + MINUTE_OVER_MS - now;
      owe(slug, since, Math.min(Math.max(0, waitMs), MINUTE_OVER_MS));
    },
  };
}

/** A moment as Slack writes it; texts of this form compare as the moments do. */
const toTs = (ms: number): string => (ms / 1_000).toFixed(6);
