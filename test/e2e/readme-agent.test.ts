import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { sandboxPerson } from '../support/sandbox-person.js';
import { tempFolder } from '../support/temp-folder.js';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

/** The program that the README shows to adapter authors. */
function agentOfReadme(): string {
  const readme = readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
  return /<!-- agent -->\s*```js\n([\s\S]*?)```\s*<!-- \/agent -->/.exec(readme)?.[1] ?? '';
}

it("the README's agent runs as it stands, in no more lines than it promises", async () => {
  const program = agentOfReadme();
  expect(program.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(20);

  const folder = await tempFolder();
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(PACKAGE, path.join(folder, 'node_modules', 'band-gateway'));
  writeFileSync(path.join(folder, 'agent.mjs'), program);

  const sandbox = await startSandbox({ port: 0 });
  onTestFinished(() => sandbox.close());
  const person = await sandboxPerson(sandbox);
  onTestFinished(() => person.close());
  const roomId = await person.createRoom([DEMO.editor.id]);

  const child = spawn(process.execPath, ['agent.mjs'], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      TMPDIR: folder,
      BAND_AGENT_ID: DEMO.editor.id,
      BAND_API_KEY: DEMO.editor.apiKey,
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));

  await person.post(roomId, '@demo/editor good morning', [DEMO.editor.id]);
  const thought = await person.event(roomId, 'thought');
  expect(thought.content).toBe('Thinking of a greeting');
  const reply = await person.reply(roomId, DEMO.editor.id);
  expect(reply.content).toContain('Hello Demo Person, you said:');
  expect(reply.content).toContain('good morning');

  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(said).toBe('');
});
