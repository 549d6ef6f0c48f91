import { abortable } from '../base/async.js';
import type { Clock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { Peer } from '../platform/wire/objects.js';

const PAGE_SIZE = 100;
const MAX_PAGES = 50;
const FRESH_MS = 60_000;

/** Somebody the relay may ask. */
export interface RelayPeer {
  readonly id: string;
  readonly name: string;
  readonly handle: string | null;
}

/** The agents among this agent's peers that the settings allow, read anew when older than a minute. */
export class RelayPeers {
  readonly #rest: BandRest;
  readonly #clock: Clock;
  readonly #allow: readonly string[];
  #peers: readonly RelayPeer[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;

  constructor(rest: BandRest, clock: Clock, allow: readonly string[]) {
    this.#rest = rest;
    this.#clock = clock;
    this.#allow = allow;
  }

  /** @throws {GatewayError} what the platform throws */
  async all(signal?: AbortSignal): Promise<readonly RelayPeer[]> {
    if (this.#clock.now() - this.#readAt > FRESH_MS) {
      // Read for everybody who waits: none of them may end it for the others.
      this.#reading ??= this.#read().finally(() => {
        this.#reading = null;
      });
      await abortable(this.#reading, signal);
    }
    return this.#peers;
  }

  /** The peer that `word` names by id, handle, last part of the handle, or name; null for nobody, or for several. */
  async find(word: string, signal?: AbortSignal): Promise<RelayPeer | null> {
    return findPeer(await this.all(signal), word);
  }

  async #read(): Promise<void> {
    const found: RelayPeer[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const { data, totalPages } = await this.#rest.listPeers({ page, pageSize: PAGE_SIZE });
      found.push(...data.filter(({ type }) => type === 'Agent').map(toRelayPeer));
      if (page >= totalPages || data.length < PAGE_SIZE) break;
    }
    const allowed = this.#allow.map(plain);
    this.#peers =
      allowed.length === 0 ? found : found.filter((peer) => wordsOf(peer).some((word) => allowed.includes(word)));
    this.#readAt = this.#clock.now();
  }
}

function findPeer(peers: readonly RelayPeer[], word: string): RelayPeer | null {
  const wanted = plain(word);
  const exact = peers.filter((peer) => peer.id.toLowerCase() === wanted || plain(peer.handle ?? '') === wanted);
  if (exact.length > 0) return exact[0] ?? null;
  const loose = peers.filter((peer) => wordsOf(peer).includes(wanted));
  return loose.length === 1 ? (loose[0] ?? null) : null;
}

/** The peer that a configured word names. @throws {GatewayError} `RELAY_PEER_UNKNOWN` */
export async function configuredPeer(peers: RelayPeers, word: string, signal?: AbortSignal): Promise<RelayPeer> {
  const peer = await peers.find(word, signal);
  if (!peer) throw new GatewayError('RELAY_PEER_UNKNOWN', { details: { peer: word } });
  return peer;
}

function wordsOf({ id, name, handle }: RelayPeer): string[] {
  const whole = plain(handle ?? '');
  return [id.toLowerCase(), whole, whole.split('/').at(-1) ?? '', plain(name), plain(name).replace(/\s+/g, '-')].filter(
    Boolean,
  );
}

const plain = (word: string): string => word.trim().replace(/^@+/, '').toLowerCase();

function toRelayPeer({ id, name, handle }: Peer): RelayPeer {
  return { id, name, handle: handle ?? null };
}
