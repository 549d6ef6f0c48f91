import { ClassicLevel } from 'classic-level';

export type LevelOperation =
  | { readonly type: 'put'; readonly key: string; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: string };

/** What the store asks of a LevelDB folder; the port through which tests make the disk fail. */
export interface Level {
  get(key: string): Promise<Uint8Array | undefined>;
  getMany(keys: string[]): Promise<(Uint8Array | undefined)[]>;
  entries(range: { gte: string; lt?: string; reverse?: boolean; limit?: number }): AsyncIterable<[string, Uint8Array]>;
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
    getMany: (keys) => level.getMany(keys),
    entries: (range) => level.iterator({ ...range, fillCache: false }),
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
