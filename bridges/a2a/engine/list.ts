import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { prefixRange, type StateStore, type StoreEntry, type StoreKey } from '../../../src/store/port.js';
import { invalidFields } from '../errors.js';
import type { TaskState } from '../wire.js';
import { digest, listedFilter, listedId, type RecordKeys } from './records.js';

export interface ListQuery {
  readonly owner: string;
  readonly peerId: string;
  readonly contextId: string | null;
  readonly status: TaskState | null;
  /** Milliseconds; tasks whose status is of this time or later. */
  readonly statusFrom: number | null;
  readonly pageSize: number;
  readonly pageToken: string | null;
}

export interface ListedPage {
  readonly taskIds: readonly string[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

const WALK_PAGE = 10_000;
const TOKEN_LIFE_MS = 86_400_000;
const tokenSchema = z.object({ v: z.literal(1), k: z.string(), q: z.string(), e: z.number() });

/** Newest status first, ties by id; a page goes on after the last entry of the one before, however tasks moved since. */
export async function listTasks(
  { store, keys, tokens, now }: { store: StateStore; keys: RecordKeys; tokens: PageTokens; now: number },
  query: ListQuery,
): Promise<ListedPage> {
  const { owner, peerId } = query;
  const prefix = keys.listOf(owner, peerId);
  const queryHash = digest(owner, peerId, query.contextId ?? '', query.status ?? '', String(query.statusFrom ?? ''));
  const after = query.pageToken === null ? null : prefix + tokens.open(query.pageToken, queryHash, now);
  const isAsked = listedFilter(query.status, query.contextId);
  const range = query.statusFrom === null ? prefixRange(prefix) : keys.listedSince(prefix, query.statusFrom);
  const page: string[] = [];
  let more = false;
  let totalSize = 0;
  for await (const entries of walk(store, range)) {
    for (const { key, value } of entries) {
      if (!isAsked(value)) continue;
      totalSize += 1;
      if (after !== null && key <= after) continue;
      if (page.length < query.pageSize) page.push(key);
      else more = true;
    }
  }
  const last = page.at(-1);
  return {
    taskIds: page.map(listedId),
    nextPageToken: more && last !== undefined ? tokens.seal(last.slice(prefix.length), queryHash, now) : '',
    totalSize,
  };
}

async function* walk(
  store: StateStore,
  { from: first, to }: { from: StoreKey; to: StoreKey },
): AsyncGenerator<StoreEntry[]> {
  for (let from = first; ;) {
    const entries = await store.range({ from, to, limit: WALK_PAGE });
    yield entries;
    const last = entries.at(-1);
    if (!last || entries.length < WALK_PAGE) return;
    from = `${last.key}\0`;
  }
}

/** Page tokens: opaque, signed, bound to their query, good for a day. */
export class PageTokens {
  readonly #secret: Uint8Array;

  constructor(secret: Uint8Array) {
    this.#secret = secret;
  }

  /** The secret of this store, made on first use, so that tokens outlive a restart. */
  static async of(store: StateStore, keys: RecordKeys): Promise<PageTokens> {
    const stored = await store.get(keys.secret);
    if (stored) return new PageTokens(stored.value);
    const secret = randomBytes(32);
    await store.batch([{ kind: 'put', key: keys.secret, value: secret }]);
    return new PageTokens(secret);
  }

  seal(place: string, queryHash: string, now: number): string {
    const body = Buffer.from(JSON.stringify({ v: 1, k: place, q: queryHash, e: now + TOKEN_LIFE_MS })).toString(
      'base64url',
    );
    return `${body}.${this.#sign(body).toString('base64url')}`;
  }

  /** @throws {GatewayError} `A2A_PARAMS` for a token that is forged, too old or of another query */
  open(token: string, queryHash: string, now: number): string {
    const [body = '', signature = '', rest] = token.split('.');
    const given = Buffer.from(signature, 'base64url');
    const right = this.#sign(body);
    const genuine = rest === undefined && given.length === right.length && timingSafeEqual(given, right);
    const parsed = genuine ? tokenSchema.safeParse(JSON.parse(Buffer.from(body, 'base64url').toString('utf8'))) : null;
    if (!parsed?.success) throw refused('The page token is not valid', 'is not valid');
    if (parsed.data.q !== queryHash) {
      throw refused('The page token does not belong to this query', 'does not belong to this query');
    }
    if (parsed.data.e < now) throw refused('The page token has expired', 'has expired');
    return parsed.data.k;
  }

  #sign(body: string): Buffer {
    return createHmac('sha256', this.#secret).update(body).digest();
  }
}

function refused(message: string, description: string) {
  return invalidFields([{ field: 'pageToken', description }], message);
}
