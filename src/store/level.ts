import { ClassicLevel } from 'classic-level';

export type LevelOperation =
  | { readonly type: 'put'; readonly key: string; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: string };

export type LevelEntry = readonly [key: string, value: Uint8Array];

export interface LevelRange {
  readonly gte: string;
  readonly lt?: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

const PAGE_ENTRIES = 500;

/** What the store asks of a LevelDB folder; the port through which tests make the disk fail. */
export interface Level {
  get(key: string): Promise<Uint8Array | undefined>;
  /**
   * Reads in place instead of in another thread, which for a key that was read or written a moment ago, or that is nowhere,
   * takes a few microseconds instead of fifty: both are answered from memory.
   */
  getNow(key: string): Uint8Array | undefined;
  /** Entries in order, a few hundred at a time. */
  pages(range: LevelRange): AsyncIterable<readonly LevelEntry[]>;
  /** Writes all operations as one and syncs the disk. */
  write(operations: readonly LevelOperation[]): Promise<void>;
  close(): Promise<void>;
}

export type OpenLevel = (folder: string) => Promise<Level>;

export const openClassicLevel: OpenLevel = async (folder) => {
  const level = new ClassicLevel<string, Uint8Array>(folder, { keyEncoding: 'utf8', valueEncoding: 'view' });
  await level.open();
  return {
    get: (key) => level.get(key),
    getNow: (key) => level.getSync(key),
    async *pages(range) {
      const iterator = level.iterator({ ...range, fillCache: false });
      try {
        for (;;) {
          const page = await iterator.nextv(PAGE_ENTRIES);
          if (page.length === 0) return;
          yield page;
        }
      } finally {
        await iterator.close();
      }
    },
    // A chained batch costs a quarter of an array batch per operation.
    async write(operations) {
      const batch = level.batch();
      for (const operation of operations) {
        if (operation.type === 'put') batch.put(operation.key, operation.value);
        else batch.del(operation.key);
      }
      await batch.write({ sync: true });
    },
    close: () => level.close(),
  };
};
