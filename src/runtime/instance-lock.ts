import { unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { AgentAlreadyRunningError, BandConfigError } from '../base/band-errors.js';

/**
 * One process per agent id on this host. The lock is a LevelDB folder: the kernel holds it for the process and lets
 * go of it however the process ends, so a killed holder never blocks the next start. The folder itself stays.
 */
export interface InstanceLock {
  readonly path: string;
  /** Claiming twice is claiming once. */
  claim(): Promise<void>;
  /** Releasing what is not held does nothing. */
  release(): Promise<void>;
}

/** Where the lock of an agent lies; processes contend only when they share the folder. */
export function instanceLockPath(agentId: string, folder = tmpdir()): string {
  const name = agentId.replace(/[^A-Za-z0-9._-]/g, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  );
  return join(folder, `band-agent-${name}.lock`);
}

/**
 * @param folder - default the system's folder for temporary files
 * @returns a lock that is not yet held. `claim()` throws `AgentAlreadyRunningError` when another live process or
 *   another Agent of this process holds it, `BandConfigError` when the folder cannot be used
 */
export function createInstanceLock(agentId: string, folder?: string): InstanceLock {
  const path = instanceLockPath(agentId, folder);
  let held: ClassicLevel | null = null;
  return {
    path,
    async claim() {
      held ??= await open(agentId, path);
    },
    async release() {
      const closing = held;
      held = null;
      await closing?.close();
    },
  };
}

async function open(agentId: string, path: string): Promise<ClassicLevel> {
  // A plain file is what another implementation may have left there. On a folder this fails and changes nothing.
  await unlink(path).catch(() => undefined);
  try {
    return await openFolder(path);
  } catch (error) {
    const code = causeCode(error);
    if (code === 'LEVEL_LOCKED') throw alreadyRunning(agentId, path, error);
    if (code !== 'LEVEL_CORRUPTION') throw unusable(path, error);
  }
  // The folder holds nothing of value; damage after a power cut is mended, under the same kernel lock.
  try {
    await ClassicLevel.repair(path);
    return await openFolder(path);
  } catch (error) {
    if (causeCode(error) === 'LEVEL_LOCKED') throw alreadyRunning(agentId, path, error);
    throw unusable(path, error);
  }
}

async function openFolder(path: string): Promise<ClassicLevel> {
  const level = new ClassicLevel(path, { writeBufferSize: 64 * 1024, cacheSize: 0, maxOpenFiles: 16 });
  try {
    await level.open();
    return level;
  } catch (error) {
    await level.close().catch(() => undefined);
    throw error;
  }
}

function causeCode(error: unknown): string | null {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as Error & { code?: unknown };
    if (typeof code === 'string' && code !== 'LEVEL_DATABASE_NOT_OPEN') return code;
  }
  return null;
}

function alreadyRunning(agentId: string, path: string, cause: unknown): AgentAlreadyRunningError {
  return new AgentAlreadyRunningError(
    `Agent ${agentId} is already running on this host (lock: ${path}). ` +
      'Stop the other process, or pass AgentConfig(single_instance=False) to run without this guard.',
    { cause },
  );
}

function unusable(path: string, cause: unknown): BandConfigError {
  return new BandConfigError(
    `The single-instance lock ${path} cannot be used. ` +
      'Make the folder writable, or pass AgentConfig(single_instance=False) to run without this guard.',
    { cause },
  );
}
