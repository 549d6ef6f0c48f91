import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { sandboxPerson } from '../support/sandbox-person.js';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('../support/programs/start-and-stop.ts', import.meta.url));

it('R-287 a stopped agent holds no timer, socket or listener: its process ends by itself', async () => {
  const sandbox = await startSandbox({ port: 0 });
  const person = await sandboxPerson(sandbox);
  await person.createRoom([DEMO.echo.id]);
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', PROGRAM, sandbox.restUrl, sandbox.wsUrl, await tempFolder()],
    { stdio: ['ignore', 'pipe', 'inherit'], timeout: 15_000 },
  );
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(0);
  expect(JSON.parse(said)).toEqual({ stopped: true, left: [], sameListeners: true });
  await person.close();
  await sandbox.close();
});
