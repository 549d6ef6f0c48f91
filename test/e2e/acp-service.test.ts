import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AcpCommand, BIN } from '../support/acp/command.js';
import { echoes, startWorld, type World } from '../support/acp/world.js';

let world: World;
let folder: string;
let service: ChildProcess | null = null;
beforeAll(async () => {
  world = await startWorld();
  folder = await mkdtemp(join(tmpdir(), 'acp-'));
  await world.peer('Echo', echoes);
  await writeFile(
    join(folder, 'gateway.yaml'),
    [
      `platform: { rest_url: '${world.sandbox.restUrl}', ws_url: '${world.sandbox.wsUrl}' }`,
      'http: { port: 0 }',
      'agents:',
      '  ed:',
      `    agent_id: ${world.editor.id}`,
      `    api_key: ${world.editor.apiKey}`,
      '    bridge: acp',
      '    acp: { peers: [ana/echo], context_preamble: never }',
      '',
    ].join('\n'),
  );
});
afterEach(async () => {
  await stopService();
});
afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});

const env = () => ({ PATH: process.env['PATH'], HOME: folder, TMPDIR: folder });
async function startService(): Promise<void> {
  const child = spawn(process.execPath, [BIN, 'start'], { cwd: folder, env: env(), stdio: ['ignore', 'pipe', 'pipe'] });
  service = child;
  let text = '';
  await new Promise<void>((resolve, reject) => {
    const look = (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes('editors may attach')) resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.on('exit', () => {
      reject(new Error(text));
    });
  });
}
async function stopService(): Promise<void> {
  const child = service;
  service = null;
  if (child?.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

describe('an agent with bridge: acp in the service', () => {
  it('P-155 serves editors that start the command with the same file, and the command takes over when it ends', async () => {
    await startService();
    const acp = new AcpCommand({ cwd: folder });
    try {
      await acp.initialize();
      await acp.until(() => acp.stderr.includes('attached to the process'), 'attaching');
      const session = await acp.newSession();
      expect((await acp.prompt(session, 'through the service')).result).toMatchObject({ stopReason: 'end_turn' });
      expect(acp.said()).toEqual(['echo: through the service']);
      await stopService();
      await acp.until(() => acp.stderr.includes('editors may attach'), 'taking over');
      expect((await acp.prompt(session, 'by myself')).result).toMatchObject({ stopReason: 'end_turn' });
      expect(acp.said().at(-1)).toContain('echo: by myself');
      acp.checkOutput();
    } finally {
      await acp.kill();
    }
  });

  it('P-136 a restarted service still lists its sessions, from its store', async () => {
    await startService();
    const first = new AcpCommand({ cwd: folder });
    await first.initialize();
    const session = await first.newSession();
    await first.kill();
    await stopService();
    await startService();
    const second = new AcpCommand({ cwd: folder });
    try {
      await second.initialize();
      const { result } = await second.request('session/list', { cwd: '/projects/demo' });
      expect(result?.sessions.map(({ sessionId }) => sessionId)).toContain(session);
    } finally {
      await second.kill();
    }
  });
});
