import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ourCommand, percentile, startEditor } from '../support/acp/bench-client.js';
import type { Figure } from './figure.js';

const RUNS = 11;

/** How long an editor waits for the first answer of a fresh process, Band being out of reach. */
export async function run(): Promise<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'acp-bench-'));
  const env = {
    HOME: folder,
    TMPDIR: folder,
    BAND_AGENT_ID: '00000000-0000-4000-8000-0000000000ff',
    BAND_API_KEY: 'band_a_bench',
    BAND_REST_URL: 'http://127.0.0.1:9',
    BAND_WS_URL: 'ws://127.0.0.1:9/x',
  };
  const ours: number[] = [];
  const node: number[] = [];
  for (let i = 0; i < RUNS; i += 1) {
    const before = performance.now();
    spawnSync(process.execPath, ['-e', '0']);
    node.push(performance.now() - before);
    const editor = await startEditor(ourCommand(), env);
    ours.push(editor.startMs);
    editor.child.kill('SIGKILL');
  }
  await rm(folder, { recursive: true, force: true });
  return {
    figure: `ACP: start of the process to the initialize answer (${RUNS} runs)`,
    rows: [
      { name: 'node itself, start to exit, median', value: percentile(node, 0.5), unit: 'ms' },
      { name: 'band-gateway acp, median', value: percentile(ours, 0.5), unit: 'ms', aim: '< 300' },
      { name: 'band-gateway acp, slowest', value: Math.max(...ours), unit: 'ms' },
    ],
  };
}
