import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const MAKER = fileURLToPath(new URL('python-venv.py', import.meta.url));
const MAKE_TIMEOUT_MS = 300_000;

/** What each environment holds; its folder is named after the version, so that a new one leaves the old alone. */
const VENVS = {
  bandSdk: { folder: 'band-sdk-6.0.1', requirements: ['band-sdk==6.0.1'] },
  bandSdkBridges: {
    folder: 'band-sdk-bridges-6.0.1',
    requirements: [
      'band-sdk[a2a-gateway,slack]==6.0.1',
      'a2a-sdk==1.3.0',
      'slack-sdk==3.48.0',
      'starlette==1.10.0',
      'uvicorn==0.54.0',
      'aiohttp==3.14.5',
    ],
  },
  a2aSdk: { folder: 'a2a-sdk-1.3.0', requirements: ['a2a-sdk==1.3.0', 'httpx==0.28.1'] },
  acpSdk: { folder: 'acp-python-0.12.1', requirements: ['agent-client-protocol==0.12.1'] },
} as const;

export type PythonVenv =
  { readonly kind: 'present'; readonly python: string } | { readonly kind: 'absent'; readonly reason: string };

/**
 * A Python virtual environment with pinned packages, made on first use and kept for the next run. Test workers may ask
 * for one at the same time: one makes it, the others wait.
 * @returns its interpreter, or why this machine has none
 */
export async function pythonVenv(name: keyof typeof VENVS): Promise<PythonVenv> {
  const { folder, requirements } = VENVS[name];
  const path = join(CACHE, folder);
  const python = join(path, 'bin', 'python');
  const pins = await readFile(join(path, 'ready'), 'utf8').catch(() => null);
  if (pins === requirements.join('\n')) return { kind: 'present', python };
  try {
    await run('python3', [MAKER, path, ...requirements], { timeout: MAKE_TIMEOUT_MS });
    return { kind: 'present', python };
  } catch (error) {
    return { kind: 'absent', reason: `${folder} cannot be made: ${whyNot(error as Failure)}` };
  }
}

type Failure = Error & { readonly code?: number | string; readonly killed?: boolean; readonly stderr?: string };

function whyNot({ code, killed, stderr, message }: Failure): string {
  if (code === 'ENOENT') return 'no python3 on this machine';
  if (code === 3) return 'python3 is older than 3.10';
  if (killed) return `not done after ${MAKE_TIMEOUT_MS} ms`;
  return stderr?.trim().split('\n').at(-1) ?? message;
}
