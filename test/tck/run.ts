/**
 * Runs the official compliance suite against the gateway: `npm run tck -- --checkouts DIR [--python PYTHON]`.
 *
 * DIR holds two checkouts of the suite: `tck10` at 357c4a8 (branch 1.0-dev) and `tck03` at eb1f804 (branch 0.3.x). PYTHON
 * is an interpreter (3.11 or newer) that has the suites' packages. A missing checkout is named and left out. Ends with 0
 * when nothing failed but known differences, which are named with their reasons at the end; skipped tests are listed too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { failuresIn, judge } from './known-differences.js';

const { values } = parseArgs({
  options: {
    checkouts: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    port: { type: 'string', default: '9999' },
  },
});
const SUT = fileURLToPath(new URL('sut.ts', import.meta.url));
const agent = `http://localhost:${values.port}/agents/tck`;
const CATEGORIES = ['mandatory', 'capabilities', 'quality', 'features'] as const;

interface Suite {
  readonly name: '1.0' | '0.3';
  readonly folder: string;
  readonly commit: string;
  readonly runs: readonly (readonly string[])[];
}

const suites: readonly Suite[] = [
  {
    name: '1.0',
    folder: 'tck10',
    commit: '357c4a8',
    runs: [['-m', 'pytest', 'tests/compatibility', `--sut-host=${agent}`, '--transport=jsonrpc,http_json', '-q']],
  },
  {
    name: '0.3',
    folder: 'tck03',
    commit: 'eb1f804',
    // HTTP+JSON of 0.3 is not served, so there is one transport.
    runs: [
      ...CATEGORIES.map((category) => [
        'run_tck.py',
        '--sut-url',
        agent,
        '--category',
        category,
        '--transports',
        'jsonrpc',
      ]),
      // Files of the mandatory folder that carry no marker, so that no category runs them.
      ['-m', 'pytest', 'tests/mandatory', '-m', 'not mandatory', '--sut-url', agent, '--transports', 'jsonrpc', '-q'],
    ],
  },
];

let failed = false;
const notes: string[] = [];
for (const suite of suites) {
  const folder = resolve(values.checkouts ?? '.', suite.folder);
  if (!existsSync(join(folder, 'run_tck.py'))) {
    console.log(`suite ${suite.name}: no checkout of commit ${suite.commit} at ${folder}; left out`);
    continue;
  }
  const sut = spawn(process.execPath, ['--import', 'tsx', SUT, '--port', values.port, '--suite', suite.name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: sut.stdout }), 'line')) as [string];
  console.log(`suite ${suite.name} at ${suite.commit}, ${line}`);
  for (const args of suite.runs) {
    const python = spawn(values.python, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, PYTEST_ADDOPTS: '-rfEsxX' },
    });
    let output = '';
    python.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      process.stdout.write(chunk);
    });
    const [code] = (await once(python, 'close')) as [number | null];
    const verdict = judge(suite.name, code, failuresIn(output));
    failed ||= !verdict.passed;
    notes.push(...verdict.notes.map((note) => `suite ${suite.name}: ${note}`));
  }
  sut.kill('SIGTERM');
  await once(sut, 'exit');
}
for (const note of notes) console.log(note);
console.log(failed ? 'not as it should be' : 'as it should be');
process.exitCode = failed ? 1 : 0;
