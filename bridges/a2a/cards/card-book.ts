import { createHash } from 'node:crypto';
import type { Clock } from '../../../src/base/clock.js';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import { readJson } from '../../../src/store/json.js';
import type { StateStore } from '../../../src/store/port.js';
import { cardRecordSchema, type CardRecord, type RecordKeys } from '../engine/records.js';
import type { PublishedPeer } from '../peers/directory.js';
import { cardV03, cardV1, extendedCard, type CardContext } from './card.js';

export interface ServedCard {
  readonly json: Readonly<Record<string, unknown>>;
  readonly bytes: Buffer;
  /** Strong, of the bytes. */
  readonly etag: string;
  /** When this card's content last changed, in milliseconds; whole seconds. */
  readonly changedAt: number;
}

interface Kept {
  readonly peer: PublishedPeer;
  readonly baseUrl: string;
  readonly card: ServedCard;
}

const MAX_KEPT = 1_000;

/**
 * Cards as they are served. Each content has a number that grows when it changes, kept in the store, so that version,
 * ETag and date of an unchanged card are the same after a restart.
 */
export class CardBook {
  readonly #store: StateStore;
  readonly #keys: RecordKeys;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #lock = new KeyedLock();

  constructor(store: StateStore, keys: RecordKeys, clock: Clock) {
    this.#store = store;
    this.#keys = keys;
    this.#clock = clock;
  }

  card(peer: PublishedPeer, dialect: '1.0' | '0.3', context: CardContext): Promise<ServedCard> {
    const kept = this.#kept.get(`${dialect} ${peer.id} ${context.baseUrl}`);
    // A refreshed directory hands out new peers, so the same object is the same content.
    if (kept?.peer === peer) return Promise.resolve(kept.card);
    return this.#lock.hold(peer.id, () => this.#make(peer, dialect, context));
  }

  async extended(peer: PublishedPeer, dialect: '1.0' | '0.3', context: CardContext) {
    const { json } = await this.card(peer, dialect, context);
    return extendedCard(json, peer, context.options);
  }

  async #make(peer: PublishedPeer, dialect: '1.0' | '0.3', context: CardContext): Promise<ServedCard> {
    const build = dialect === '1.0' ? cardV1 : cardV03;
    const content = build(peer, context);
    // The address is not content: the same card may be served under several.
    const hash = sha256(JSON.stringify(build(peer, { ...context, baseUrl: '' })));
    const { counter, changedAt } = await this.#record(peer.id, dialect, hash);
    const { name, description, ...rest } = content;
    const json = { name, description, version: `1.0.${counter}`, ...rest };
    const bytes = Buffer.from(JSON.stringify(json));
    const card: ServedCard = { json, bytes, etag: `"${sha256(bytes).slice(0, 32)}"`, changedAt };
    if (this.#kept.size >= MAX_KEPT) this.#kept.clear();
    this.#kept.set(`${dialect} ${peer.id} ${context.baseUrl}`, { peer, baseUrl: context.baseUrl, card });
    return card;
  }

  async #record(peerId: string, dialect: string, hash: string): Promise<CardRecord> {
    const key = this.#keys.card(peerId, dialect);
    const stored = await this.#store.get(key);
    const old = stored ? readJson(stored.value, cardRecordSchema) : null;
    if (old?.hash === hash) return old;
    const changedAt = Math.floor(this.#clock.now() / 1_000) * 1_000;
    const record: CardRecord = { hash, counter: (old?.counter ?? -1) + 1, changedAt };
    await this.#store.batch([{ kind: 'put', key, value: JSON.stringify(record) }]);
    return record;
  }
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
