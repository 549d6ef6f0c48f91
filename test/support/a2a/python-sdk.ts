import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const VERSION = '1.3.0';
const INSTALL_TIMEOUT_MS = 300_000;
const cache = fileURLToPath(new URL(`../../../node_modules/.cache/a2a-sdk-${VERSION}`, import.meta.url));

export type PythonSdk =
  { readonly kind: 'present'; readonly python: string } | { readonly kind: 'absent'; readonly reason: string };

/** The official Python SDK in an environment of its own, which is made on first use and kept for the next run. */
export async function findPythonSdk(): Promise<PythonSdk> {
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
    const quiet = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1'];
    await run(python, [...quiet, `a2a-sdk==${VERSION}`, 'httpx'], { timeout: INSTALL_TIMEOUT_MS });
    await writeFile(ready, '');
    return { kind: 'present', python };
  } catch (error) {
    return { kind: 'absent', reason: `a2a-sdk ${VERSION} cannot be installed: ${String(error).split('\n')[0] ?? ''}` };
  }
}
