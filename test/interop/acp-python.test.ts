import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BIN } from '../support/acp/command.js';
import { echoes, ponders, startWorld, type World } from '../support/acp/world.js';
import { pythonVenv } from '../support/python-venv.js';

const run = promisify(execFile);
const found = await pythonVenv('acpSdk');
const python = found.kind === 'present' ? found.python : '';
const title = found.kind === 'present' ? 'the Python client' : `the Python client (skipped: ${found.reason})`;

describe.skipIf(found.kind === 'absent')(title, { timeout: 90_000 }, () => {
  let world: World;
  let folder: string;
  beforeAll(async () => {
    world = await startWorld();
    folder = await mkdtemp(join(tmpdir(), 'acp-'));
    await world.peer('Echo', echoes);
    await world.peer('Mute', ponders);
  });
  afterAll(async () => {
    await world.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('opens a session, prompts with a file, cancels, lists and loads', async () => {
    const program = fileURLToPath(new URL('./acp-python-client.py', import.meta.url));
    const { stdout } = await run(python, [program], {
      timeout: 80_000,
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        TMPDIR: folder,
        ...world.env,
        ACP_COMMAND: JSON.stringify([process.execPath, BIN, 'acp', '--peer', 'echo', '--context', 'never']),
      },
    });
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const session = events[1]?.['id'];
    expect(events).toEqual([
      { event: 'initialized', version: 1, load: true },
      { event: 'session', id: session, mode: 'default', options: ['mode', 'target'] },
      { event: 'answer', stop: 'end_turn', texts: ['echo: hello from python'] },
      { event: 'answer', stop: 'end_turn', texts: [expect.stringContaining("print('x')")] },
      { event: 'cancelled', stop: 'cancelled' },
      { event: 'listed', ids: [session] },
      {
        event: 'loaded',
        users: ['hello from python', 'look\n[a.py](file:///a.py)', '@mute wait'],
        agents: 2,
      },
      { event: 'refused', code: -32_002 },
    ]);
    expect(world.rooms).toHaveLength(1);
  });
});
