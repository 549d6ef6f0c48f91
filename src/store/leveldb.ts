import { mkdir, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backoffMs } from '../base/backoff.js';
import { type Clock, systemClock } from '../base/clock.js';
import { GatewayError, isGatewayError } from '../base/errors.js';
import { type Logger, silentLogger } from '../base/log.js';
import { CommitLoop } from './commit-loop.js';
import { grantLease } from './lease.js';
import { type Level, type OpenLevel, openClassicLevel } from './level.js';
import { lacksManifest, signsOf } from './level-folder.js';
import {
  DATA,
  decodeRevision,
  decodeStored,
  encodeStored,
  META_CLEAN,
  META_REVISION,
  META_VERSION,
  STORE_VERSION,
} from './level-layout.js';
import { rangeLimit } from './limits.js';
import type { StateStore, StoreEntry } from './port.js';

export interface LevelStoreOptions {
  /** The store's own folder; made when missing. One process owns it at a time, by the kernel's lock. */
  folder: string;
  clock?: Clock;
  log?: Logger;
  /** Opens the database; default LevelDB. */
  openLevel?: OpenLevel;
  /** Told when a damaged folder was moved aside, with its new path. */
  onDamaged?: (movedTo: string) => void;
}

const REOPEN_BACKOFF = { baseMs: 500, maxMs: 30_000 } as const;

/**
 * The durable store: one LevelDB folder.
 *
 * Batches are group-committed: one synced write is in flight, whatever arrives meanwhile shares the next one. The
 * first write error trips the store: writes are refused, the folder is closed, reopened and checked, then work
 * resumes. A batch that was in flight is settled by what the reopened folder holds.
 *
 * @throws {GatewayError} `STORE_LOCKED` when another process owns the folder; `STORE_NEWER` when a newer version of the
 *   program wrote it; `STORE_IO` when it cannot be opened
 */
export async function openLevelStore(options: LevelStoreOptions): Promise<StateStore> {
  const { folder, clock = systemClock, log = silentLogger, openLevel = openClassicLevel, onDamaged } = options;
  await mkdir(dirname(folder), { recursive: true });

  let level: Level | null = null;
  let closing = false;
  const stopping = new AbortController();
  let reopening: Promise<void> | null = null;

  /**
   * Only a start may move a damaged folder aside. Later its records live on in the memory of those who put them, and
   * an empty folder would make them forgotten at the next crash: then the store stays tripped until somebody restarts.
   */
  const openFirst = async (): Promise<{ level: Level; revision: number }> => {
    try {
      return await openAndCheck(folder, openLevel);
    } catch (error) {
      if (!isGatewayError(error, 'STORE_DAMAGED')) throw error;
      const movedTo = `${folder}.damaged-${new Date(clock.now()).toISOString().replace(/[:.]/g, '-')}`;
      await rename(folder, movedTo);
      log.error({ err: error, movedTo }, 'store damaged: its folder was moved aside and a new one begun');
      onDamaged?.(movedTo);
      return await openAndCheck(folder, openLevel);
    }
  };

  const opened = await openFirst();
  level = opened.level;
  const loop = new CommitLoop({ level: opened.level, revision: opened.revision, onWriteError: recover });

  /** Closes and reopens; the first try settles the batch in flight, later ones follow in the background. */
  async function recover(cause: Error): Promise<{ level: Level; revision: number } | null> {
    log.error({ err: cause }, 'store write failed: closing and reopening');
    const broken = level;
    level = null;
    await broken?.close().catch((error: unknown) => {
      log.warn({ err: error }, 'closing the failed store failed too');
    });
    try {
      const again = await openAndCheck(folder, openLevel);
      level = again.level;
      return again;
    } catch (error) {
      log.error({ err: error }, 'store could not be reopened yet');
      reopening = keepReopening();
      return null;
    }
  }

  async function keepReopening(): Promise<void> {
    for (let tries = 1; !closing; tries += 1) {
      try {
        await clock.sleep(backoffMs(tries, REOPEN_BACKOFF), stopping.signal);
        const again = await openAndCheck(folder, openLevel);
        level = again.level;
        loop.resume(again.level, again.revision);
        log.info('store reopened');
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.warn({ err: error, tries }, 'store still cannot be reopened');
      }
    }
  }

  const usable = (): Level => {
    if (closing) throw new GatewayError('STORE_CLOSED');
    if (!level) throw new GatewayError('STORE_TRIPPED');
    return level;
  };

  /** A read that meets the folder while it is closed and reopened is refused like a write. */
  const reading = async <T>(read: (from: Level) => Promise<T>): Promise<T> => {
    const from = usable();
    try {
      return await read(from);
    } catch (error) {
      if (isGatewayError(error)) throw error;
      if (level !== from) throw new GatewayError(closing ? 'STORE_CLOSED' : 'STORE_TRIPPED', { cause: error });
      throw translate(error, folder);
    }
  };

  const store: StateStore = {
    get: (key) =>
      reading(async (from) => {
        const bytes = await from.get(DATA + key);
        return bytes === undefined ? null : decodeStored(bytes);
      }),
    async range(range) {
      const { from, to, reverse = false } = range;
      const limit = rangeLimit(range);
      if (limit === 0) return [];
      return await reading(async (open) => {
        const entries: StoreEntry[] = [];
        for await (const page of open.pages({ gte: DATA + from, lt: DATA + to, reverse, limit })) {
          for (const [key, bytes] of page) entries.push({ key: key.slice(DATA.length), ...decodeStored(bytes) });
        }
        return entries;
      });
    },
    batch: (changes) => (closing ? Promise.reject(new GatewayError('STORE_CLOSED')) : loop.commit(changes)),
    lease: (name, owner, ttlMs) => grantLease(store, clock, name, owner, ttlMs),
    async close() {
      if (closing) return;
      closing = true;
      stopping.abort();
      await loop.drain();
      await reopening;
      const last = level;
      level = null;
      if (!last) return;
      await last.write([{ type: 'put', key: META_CLEAN, value: new Uint8Array() }]).catch((error: unknown) => {
        log.warn({ err: error }, 'store closed without its clean mark: the next start reads every record once');
      });
      await last.close();
    },
  };
  return store;
}

/** Opens the folder and, after an unclean stop, reads every record once so that damage shows now and not at night. */
async function openAndCheck(folder: string, openLevel: OpenLevel): Promise<{ level: Level; revision: number }> {
  const { recordBytes, isOrphaned } = await signsOf(folder);
  if (isOrphaned) throw new GatewayError('STORE_DAMAGED', { details: { folder } });
  let level: Level;
  try {
    level = await openLevel(folder);
  } catch (error) {
    const translated = translate(error, folder);
    if (translated.code !== 'STORE_IO' || !(await lacksManifest(folder))) throw translated;
    throw new GatewayError('STORE_DAMAGED', { cause: error, details: { folder } });
  }
  try {
    const version = await level.get(META_VERSION);
    if (version && decodeRevision(version) > STORE_VERSION) {
      throw new GatewayError('STORE_NEWER', { details: { folder, version: decodeRevision(version) } });
    }
    const stored = await level.get(META_REVISION);
    // Every folder that was ever in use holds these two: where there was something and it did not read, it is not new.
    if (!version && !stored && recordBytes > 0) throw new GatewayError('STORE_DAMAGED', { details: { folder } });
    const clean = (await level.get(META_CLEAN)) !== undefined;
    if (!clean)
      for await (const page of level.pages({ gte: DATA, lt: `${DATA}\u{10FFFF}` })) {
        for (const [, bytes] of page) decodeStored(bytes);
      }
    await level.write([
      { type: 'del', key: META_CLEAN },
      { type: 'put', key: META_VERSION, value: encodeStored(new Uint8Array(), STORE_VERSION) },
    ]);
    return { level, revision: stored ? decodeStored(stored).revision : 0 };
  } catch (error) {
    await level.close().catch(() => undefined); // the error that counts is the one that led here
    throw translate(error, folder);
  }
}

/** LevelDB's errors carry a code; its opening error carries the reason as its cause. */
function translate(error: unknown, folder: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const codes = [error, (error as { cause?: unknown } | null)?.cause].map(
    (e) => (e as { code?: unknown } | null)?.code,
  );
  if (codes.includes('LEVEL_LOCKED')) {
    return new GatewayError('STORE_LOCKED', { cause: error, details: { folder } });
  }
  if (codes.includes('LEVEL_CORRUPTION')) {
    return new GatewayError('STORE_DAMAGED', { cause: error, details: { folder } });
  }
  return new GatewayError('STORE_IO', { cause: error, details: { folder } });
}
