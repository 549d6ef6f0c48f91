import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Clock } from '../base/clock.js';
import { GatewayError, isGatewayError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { Blocker } from '../core/bridge.js';
import type { StateStore } from '../store/port.js';
import type { Lifecycle } from './lifecycle.js';
import type { Notice } from './report.js';

export interface StorePart extends Lifecycle {
  /** The store, once started. */
  readonly store: StateStore;
  /** Names the store while it takes no writes. */
  blockers(): readonly Blocker[];
  /** Folders that were moved aside because they could not be read. */
  notices(): readonly Notice[];
}

const PROBE_MS = 2_000;
const PROBE_KEY = 'service/probe';
const MAX_NOTICES = 5;

/** Opens the durable state under the data directory, or one in memory, watches it, and closes it last of all. */
export function createStorePart(
  { kind, dataDir }: { readonly kind: 'leveldb' | 'memory'; readonly dataDir: string },
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): StorePart {
  let store: StateStore | null = null;
  let refusing: { readonly since: number; readonly message: string } | null = null;
  let stopProbing: () => void = () => undefined;
  const notices: Notice[] = [];

  const onDamaged = (movedTo: string): void => {
    if (notices.length >= MAX_NOTICES) notices.shift();
    notices.push({
      at: clock.now(),
      text: `The store was damaged. It was moved to ${movedTo}, and a new one begun.`,
      action: 'Conversations are found again from their rooms. Look at the disk; keep the folder until all is well.',
    });
  };

  const probe = (): void => {
    // A condition without a change costs nothing on disk, and is refused like any write.
    store?.batch([{ kind: 'check', key: PROBE_KEY, ifRevision: null }]).then(
      () => {
        refusing = null;
      },
      (error: unknown) => {
        if (isGatewayError(error, 'STORE_CLOSED')) return;
        const message = error instanceof Error ? error.message : String(error);
        refusing = { since: refusing?.since ?? clock.now(), message };
      },
    );
  };

  return {
    name: 'store',
    get store() {
      if (!store) throw new TypeError('The store is not open yet.');
      return store;
    },
    blockers() {
      if (!refusing) return [];
      const action = 'Look at the disk under data_dir: space, permissions, errors. It reopens by itself.';
      return [{ name: 'store', message: refusing.message, action, since: refusing.since }];
    },
    notices: () => [...notices],
    async start() {
      // Messages and push credentials lie in here: nobody else on this machine reads them, and the operator socket's
      // folder is closed before the socket is there.
      await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
        const { code = 'unknown' } = error as NodeJS.ErrnoException;
        const message = `The data directory ${dataDir} cannot be made (${code}). Set data_dir to a folder this user may write to.`;
        throw new GatewayError('STORE_IO', { cause: error, message });
      });
      if (kind === 'memory') {
        const { createMemoryStore } = await import('../store/memory.js');
        store = createMemoryStore(clock);
      } else {
        const { openLevelStore } = await import('../store/leveldb.js');
        store = await openLevelStore({ folder: path.join(dataDir, 'store'), clock, log, onDamaged });
      }
      stopProbing = clock.every(PROBE_MS, probe);
    },
    async stop() {
      stopProbing();
      await store?.close();
    },
  };
}
