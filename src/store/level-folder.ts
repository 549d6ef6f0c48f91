import { access, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

const RECORD_FILE = /^\d+\.(?:log|ldb|sst)$/;

/**
 * What LevelDB does not tell of a folder: it begins anew where the pointer to its table of contents is gone, skips
 * records of a log that it cannot read, and calls a missing table of contents an I/O error.
 */
export interface FolderSigns {
  /** Bytes of record files before the folder is opened. */
  readonly recordBytes: number;
  /** There are record files, and nothing that says which of them count. */
  readonly isOrphaned: boolean;
}

/** Looks without opening; a folder that does not exist holds nothing. */
export async function signsOf(folder: string): Promise<FolderSigns> {
  const names = await readdir(folder).catch(() => []);
  let recordBytes = 0;
  for (const name of names.filter((one) => RECORD_FILE.test(one))) {
    // Its owner may have put it away meanwhile.
    recordBytes += await stat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  // Looked for last: whoever is just making the folder makes this file before the first record file.
  return { recordBytes, isOrphaned: recordBytes > 0 && !(await exists(join(folder, 'CURRENT'))) };
}

/** Whether the folder points to a table of contents that is not there. */
export async function lacksManifest(folder: string): Promise<boolean> {
  const named = await readFile(join(folder, 'CURRENT'), 'utf8').catch(() => null);
  return named !== null && !(await exists(join(folder, named.trim())));
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
