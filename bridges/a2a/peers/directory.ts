import { abortable, deferred } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { backoffMs } from '../../../src/base/backoff.js';
import { GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { Peer } from '../../../src/platform/wire/objects.js';
import { readJson } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slugRecordSchema, type RecordKeys, type SlugRecord } from '../engine/records.js';
import { refusal } from '../errors.js';
import { conversationOf, type A2AOptions, type ConversationSettings, type PeerOverride } from '../settings.js';
import { matchesAny } from './patterns.js';
import { assignSlugs, baseSlug, type Nameable } from './slugs.js';

/** A Band peer as it is published. */
export interface PublishedPeer extends Nameable {
  readonly slug: string;
  readonly type: string;
  readonly description: string | null;
  readonly tags: readonly string[];
  readonly override: PeerOverride | undefined;
  readonly conversation: ConversationSettings;
}

/** What an alias stands for: a peer that is served, or one that is gone and whose ended tasks are still readable. */
export type Resolved =
  { readonly kind: 'served'; readonly peer: PublishedPeer } | { readonly kind: 'gone'; readonly peerId: string };

export interface DirectoryDeps {
  readonly rest: Pick<BandRest, 'listPeers'>;
  readonly store: StateStore;
  readonly keys: RecordKeys;
  readonly options: A2AOptions;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly selfId: string;
  /** A peer left the directory for good. */
  onRemoved(peerId: string): void;
}

const PAGE_SIZE = 100;
const MAX_PEERS = 10_000;
const ON_DEMAND_GAP_MS = 5_000;
const MISSES_UNTIL_REMOVED = 2;
const FIRST_RETRY = { baseMs: 1_000, maxMs: 30_000 } as const;

/** The peers and under which names they are reached; read again and again, changed only by complete listings. */
export class PeerDirectory {
  readonly #deps: DirectoryDeps;
  readonly #slugs = new Map<string, SlugRecord>();
  readonly #misses = new Map<string, number>();
  /** Published peers as Band lists them. */
  readonly #listed = new Map<string, Peer>();
  #peers = new Map<string, PublishedPeer>();
  #aliases = new Map<string, string>();
  readonly #firstRead = deferred();
  #ready = false;
  #lastReadAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(deps: DirectoryDeps) {
    this.#deps = deps;
  }

  /** True once a listing was read. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Resolves once a listing was read. */
  whenReady(signal: AbortSignal): Promise<void> {
    return this.#ready ? Promise.resolve() : abortable(this.#firstRead.promise, signal);
  }

  list(): PublishedPeer[] {
    return [...this.#peers.values()];
  }

  byId(peerId: string): PublishedPeer | null {
    return this.#peers.get(peerId) ?? null;
  }

  /** Takes up the slugs given in earlier runs, before the first listing. */
  async load(): Promise<void> {
    const { store, keys } = this.#deps;
    for (const { value } of await store.range({ ...prefixRange(keys.allSlugs), limit: MAX_PEERS })) {
      const record = readJson(value, slugRecordSchema);
      this.#slugs.set(record.peerId, record);
    }
  }

  /** Reads the directory now and again until `signal` aborts; the first success is hurried, with growing waits. */
  async run(signal: AbortSignal): Promise<void> {
    const stopped = (): boolean => signal.aborted;
    for (let failures = 0; !stopped();) {
      try {
        await this.#read(signal);
        failures = 0;
      } catch (error) {
        if (stopped()) return;
        failures += 1;
        this.#deps.log.warn({ err: error, failures }, 'the peer directory could not be read; nothing changes');
      }
      const wait = this.#ready ? this.#deps.options.peers.refreshSeconds * 1_000 : backoffMs(failures, FIRST_RETRY);
      await this.#deps.clock.sleep(wait, signal).catch(() => undefined);
    }
  }

  /**
   * What an alias (slug, former slug or id) stands for. An unknown one has the directory read again, at most every
   * five seconds.
   *
   * @throws {GatewayError} `A2A_NOT_READY` before the first listing; `A2A_PEER_UNKNOWN`
   */
  async resolve(alias: string): Promise<Resolved> {
    if (!this.#ready) throw new GatewayError('A2A_NOT_READY', { retryAfterMs: ON_DEMAND_GAP_MS });
    const wanted = alias.toLowerCase();
    const known = this.#find(wanted);
    if (known?.kind === 'served') return known;
    await this.#readOnDemand();
    const found = this.#find(wanted) ?? known;
    if (!found) throw refusal('A2A_PEER_UNKNOWN', { alias });
    return found;
  }

  /** Reads the directory in the background, at most every five seconds. */
  lookAgain(): void {
    void this.#readOnDemand();
  }

  /** Publishes all peers anew, by settings that have changed. */
  republish(): void {
    for (const peer of [...this.#peers.values()]) {
      const listed = this.#listed.get(peer.id);
      if (listed) this.#peers.set(peer.id, this.#publish(peer, listed, peer.slug));
    }
  }

  /** Takes a peer off at once: Band no longer knows it. */
  remove(peerId: string): void {
    if (!this.#peers.delete(peerId)) return;
    this.#misses.delete(peerId);
    this.#index();
    this.#deps.onRemoved(peerId);
  }

  /** Never rejects. */
  async #readOnDemand(): Promise<void> {
    if (this.#deps.clock.now() - this.#lastReadAt < ON_DEMAND_GAP_MS) return;
    await this.#read().catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'the peer directory could not be read on demand');
    });
  }

  #find(alias: string): Resolved | null {
    const peerId = this.#aliases.get(alias);
    const peer = peerId === undefined ? undefined : this.#peers.get(peerId);
    if (peer) return { kind: 'served', peer };
    return this.#slugs.has(alias) ? { kind: 'gone', peerId: alias } : null;
  }

  #read(signal?: AbortSignal): Promise<void> {
    this.#reading ??= this.#readNow(signal).finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readNow(signal?: AbortSignal): Promise<void> {
    this.#lastReadAt = this.#deps.clock.now();
    await this.#take(await this.#listAll(signal));
  }

  async #listAll(signal?: AbortSignal): Promise<Map<string, Peer>> {
    const found = new Map<string, Peer>();
    for (let page = 1; found.size < MAX_PEERS; page += 1) {
      const { data, totalPages } = await this.#deps.rest.listPeers({ page, pageSize: PAGE_SIZE, signal });
      for (const peer of data) if (!found.has(peer.id)) found.set(peer.id, peer);
      if (data.length < PAGE_SIZE || page >= totalPages) return found;
    }
    this.#deps.log.warn({ peers: found.size }, 'more peers than can be published; the rest is left out');
    return found;
  }

  async #take(listed: ReadonlyMap<string, Peer>): Promise<void> {
    const { options, clock, store, keys, selfId } = this.#deps;
    const wanted: (Nameable & { readonly peer: Peer })[] = [];
    for (const peer of listed.values()) {
      const one = { id: peer.id, name: peer.name, handle: peer.handle ?? null, peer };
      if (peer.id !== selfId && this.#isWanted(one, peer.type)) wanted.push(one);
    }
    const kept = [...this.#peers.values()].filter((peer) => !listed.has(peer.id) && this.#missed(peer.id));
    for (const { id } of wanted) this.#misses.delete(id);
    const assignments = assignSlugs([...wanted, ...kept], options.peers.slugs, this.#slugs, clock.now());

    const changed = [...assignments.values()].filter((one) => one.changed).map((one) => one.record);
    if (changed.length > 0) {
      await store.batch(
        changed.map((record): StoreChange => ({
          kind: 'put',
          key: keys.slug(record.peerId),
          value: JSON.stringify(record),
        })),
      );
      for (const record of changed) this.#slugs.set(record.peerId, record);
    }
    const before = this.#peers;
    this.#peers = new Map();
    for (const one of wanted) {
      this.#listed.set(one.id, one.peer);
      this.#peers.set(one.id, this.#publish(one, one.peer, assignments.get(one.id)?.record.slug));
    }
    for (const peer of kept) this.#peers.set(peer.id, peer);
    for (const peerId of this.#listed.keys()) if (!this.#peers.has(peerId)) this.#listed.delete(peerId);
    this.#index();
    this.#ready = true;
    this.#firstRead.resolve();
    this.#count();
    for (const peerId of before.keys()) if (!this.#peers.has(peerId)) this.#deps.onRemoved(peerId);
  }

  #count(): void {
    const { metrics } = this.#deps;
    const claims = new Map<string, number>();
    for (const peer of this.#peers.values()) claims.set(baseSlug(peer), (claims.get(baseSlug(peer)) ?? 0) + 1);
    const contested = [...claims.values()].filter((count) => count > 1).length;
    metrics.gauge('band_a2a_peers', 'Peers published').set({}, this.#peers.size);
    metrics.gauge('band_a2a_slug_conflicts', 'Slugs that several peers would have by their names').set({}, contested);
  }

  #isWanted(one: Nameable, type: string): boolean {
    const { include, exclude, types, slugs } = this.#deps.options.peers;
    if (!types.some((wanted) => wanted === type)) return false;
    const names = [
      one.id,
      baseSlug(one),
      this.#slugs.get(one.id)?.slug,
      one.handle,
      slugs[one.id],
      one.handle === null ? undefined : slugs[one.handle],
    ].filter((name) => typeof name === 'string');
    return matchesAny(include, names) && !matchesAny(exclude, names);
  }

  /** Counts a complete listing without the peer. @returns whether it is kept for now */
  #missed(peerId: string): boolean {
    const misses = (this.#misses.get(peerId) ?? 0) + 1;
    if (misses >= MISSES_UNTIL_REMOVED) {
      this.#misses.delete(peerId);
      return false;
    }
    this.#misses.set(peerId, misses);
    return true;
  }

  #publish(one: Nameable, peer: Peer, assigned: string | undefined): PublishedPeer {
    const { options } = this.#deps;
    const slug = assigned ?? baseSlug(one);
    const { overrides } = options.peers;
    const override = overrides[one.id] ?? (one.handle === null ? undefined : overrides[one.handle]) ?? overrides[slug];
    return {
      id: one.id,
      name: one.name,
      handle: one.handle,
      slug,
      type: peer.type,
      description: peer.description ?? null,
      tags: override?.tags ?? peer.tags ?? [],
      override,
      conversation: conversationOf(options, override, peer.type),
    };
  }

  #index(): void {
    const now = this.#deps.clock.now();
    this.#aliases = new Map();
    for (const peer of this.#peers.values()) {
      for (const { slug, until } of this.#slugs.get(peer.id)?.former ?? []) {
        if (until > now) this.#aliases.set(slug, peer.id);
      }
    }
    for (const peer of this.#peers.values()) this.#aliases.set(peer.slug, peer.id).set(peer.id.toLowerCase(), peer.id);
  }
}
