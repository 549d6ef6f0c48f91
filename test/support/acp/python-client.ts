import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const VERSION = '0.12.1';
const INSTALL_TIMEOUT_MS = 300_000;
const cache = fileURLToPath(new URL(`../../../node_modules/.cache/acp-python-${VERSION}`, import.meta.url));

export type PythonClient =
  { readonly kind: 'present'; readonly python: string } | { readonly kind: 'absent'; readonly reason: string };

/** The protocol's Python SDK in an environment of its own, made on first use and kept for the next run. */
export async function findPythonClient(): Promise<PythonClient> {
  const python = join(cache, 'bin', 'python');
  const ready = join(cache, 'ready');
  if (existsSync(ready)) return { kind: 'present', python };
  try {
    await run('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']);
  } catch {
    return { kind: 'absent', reason: 'no Python 3.10 or newer with venv on this machine' };
  }
  try {
    await rm(cache, { recursive: true, force: true });
    await mkdir(cache, { recursive: true });
    await run('python3', ['-m', 'venv', cache], { timeout: INSTALL_TIMEOUT_MS });
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await run(python, [...install, `agent-client-protocol==${VERSION}`], { timeout: INSTALL_TIMEOUT_MS });
    await writeFile(ready, '');
    return { kind: 'present', python };
  } catch (error) {
    return { kind: 'absent', reason: `the SDK ${VERSION} cannot be installed: ${String(error).split('\n')[0] ?? ''}` };
  }
}
