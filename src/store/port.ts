/** A key of the store. Keys compare as UTF-8 bytes; segments are joined by the owner with `/`. */
export type StoreKey = string;
/** What is stored: bytes the owner can read back. JSON is the owner's affair. */
export type StoreValue = Uint8Array;

/** A value with the revision it was written at, the token of compare-and-set. */
export interface Stored {
  readonly value: StoreValue;
  /** Grows with every write of this key; never reused while the store lives, not even after a delete. */
  readonly revision: number;
}

export interface StoreEntry extends Stored {
  readonly key: StoreKey;
}

/**
 * One change of a batch. `ifRevision` makes the whole batch depend on the key: a number wants exactly that revision,
 * `null` wants the key to be absent, leaving it out wants nothing. `check` changes nothing and only states the wish.
 */
export type StoreChange =
  | StorePut
  | { readonly kind: 'delete'; readonly key: StoreKey; readonly ifRevision?: number | null }
  | { readonly kind: 'check'; readonly key: StoreKey; readonly ifRevision: number | null };

export interface StorePut {
  readonly kind: 'put';
  readonly key: StoreKey;
  /** Text is kept as its UTF-8 bytes. */
  readonly value: StoreValue | string;
  readonly ifRevision?: number | null;
}

export interface RangeOptions {
  /** First key, included. */
  readonly from: StoreKey;
  /** First key past the range, excluded. */
  readonly to: StoreKey;
  readonly reverse?: boolean;
  /** Default 1000; at most 10,000 entries are handed out by one call. */
  readonly limit?: number;
}

export interface Lease {
  readonly name: string;
  /** Grows with every grant of this name: a fencing token. */
  readonly token: number;
  /** Extends the lease. @returns false when it was lost meanwhile */
  renew(ttlMs: number): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * Durable state with an order. A batch commits as one or not at all, and is on disk when its promise resolves.
 *
 * Every method rejects with a GatewayError: `STORE_CLOSED`, or `STORE_TRIPPED` while the store recovers from a write
 * error (certainly not written); writes also with `STORE_CONFLICT` (a condition did not hold; nothing was written;
 * `details.key` names the key), `STORE_TOO_LARGE` and `QUEUE_FULL` (nothing was written), and `STORE_IO` (the disk
 * refused, and whether the batch is on it will be known only after the next opening).
 */
export interface StateStore {
  get(key: StoreKey): Promise<Stored | null>;
  range(options: RangeOptions): Promise<StoreEntry[]>;
  /** @returns the revision that all puts of the batch now carry */
  batch(changes: readonly StoreChange[]): Promise<number>;
  /** A named lease for `ttlMs`, or null while another owner holds it. */
  lease(name: string, owner: string, ttlMs: number): Promise<Lease | null>;
  close(): Promise<void>;
}

/** The range that holds every key beginning with `prefix`. */
export function prefixRange(prefix: string): { from: StoreKey; to: StoreKey } {
  return { from: prefix, to: `${prefix}\u{10FFFF}` };
}
