import { constants } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { GatewayError } from '../../../src/base/errors.js';

/**
 * A plain file inside `directory`, for a brain that names a file by its path. Links are refused wherever they stand on
 * the way, so that none leads out (S-145).
 *
 * @param path - absolute, or relative to `directory`
 * @throws {GatewayError} `SLACK_FILE_PATH` for anything else, `SLACK_FILE_SIZE` for more than `maxBytes`
 */
export async function readAllowedFile(directory: string, path: string, maxBytes: number): Promise<Uint8Array> {
  const root = await realpath(directory);
  const inside = relative(resolve(directory), resolve(directory, path));
  const wanted = join(root, inside);
  const leaves = inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside);
  if (leaves || (await real(wanted)) !== wanted) throw refused();
  // Without O_NONBLOCK a pipe would wait for its writer.
  const file = await open(wanted, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => {
    throw refused();
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw refused();
    if (stat.size > maxBytes) throw new GatewayError('SLACK_FILE_SIZE', { details: { bytes: stat.size, maxBytes } });
    const bytes = new Uint8Array(stat.size);
    const { bytesRead } = await file.read(bytes, 0, stat.size, 0);
    return bytes.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function real(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    // Missing, unreadable, or no path at all: refused alike, so that nothing can be learned from it.
    return null;
  }
}

const refused = (): GatewayError => new GatewayError('SLACK_FILE_PATH');
