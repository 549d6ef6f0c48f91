import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export interface LogFile {
  write(text: string): void;
  close(): void;
}

/**
 * A log file that starts anew once it has `maxBytes`, keeping `backups` older ones as `<file>.1`, `<file>.2` …
 * Lines are written as they come, so that the last words of a dying process are there.
 */
export function openLogFile(
  path: string,
  { maxBytes, backups }: { readonly maxBytes: number; readonly backups: number },
): LogFile {
  mkdirSync(dirname(path), { recursive: true });
  let fd = openSync(path, 'a');
  let bytes = fstatSync(fd).size;

  const rotate = () => {
    closeSync(fd);
    if (backups === 0) rmSync(path, { force: true });
    else {
      rmSync(`${path}.${backups}`, { force: true });
      for (let n = backups - 1; n >= 0; n -= 1) move(n === 0 ? path : `${path}.${n}`, `${path}.${n + 1}`);
    }
    fd = openSync(path, 'a');
    bytes = 0;
  };

  return {
    write(text) {
      const size = Buffer.byteLength(text);
      if (maxBytes > 0 && bytes > 0 && bytes + size > maxBytes) rotate();
      writeSync(fd, text);
      bytes += size;
    },
    close() {
      closeSync(fd);
    },
  };
}

function move(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    // Fewer files than may be kept.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
