import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AgentAlreadyRunningError, BandConfigError } from '../../src/base/band-errors.js';
import { createInstanceLock, instanceLockPath } from '../../src/runtime/instance-lock.js';
import { agentLab } from '../support/agent-lab.js';
import { AGENT_ID } from '../support/fake-band.js';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('../support/programs/hold-lock.ts', import.meta.url));

/** Another process that tries to hold the lock. @returns its first words */
async function holder(agentId: string, folder: string): Promise<{ child: ChildProcess; said: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, agentId, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, said: chunk.toString().trim() };
}

describe('the single-instance lock', () => {
  it('R-091 R-092 R-093 R-096 keeps a second process out, and is free the moment its holder is killed', async () => {
    const folder = await tempFolder();
    const { child, said } = await holder(AGENT_ID, folder);
    expect(said).toBe('held');
    const lock = createInstanceLock(AGENT_ID, folder);
    const error: unknown = await lock.claim().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(AgentAlreadyRunningError);
    expect(error).toBeInstanceOf(BandConfigError);
    expect((error as Error).message).toContain(
      `Agent ${AGENT_ID} is already running on this host (lock: ${instanceLockPath(AGENT_ID, folder)})`,
    );
    child.kill('SIGKILL');
    await once(child, 'exit');
    await lock.claim();
    await lock.release();
  });

  it('R-095 keeps a second holder of the same process out; other ids do not contend', async () => {
    const folder = await tempFolder();
    const first = createInstanceLock('one', folder);
    await first.claim();
    await expect(createInstanceLock('one', folder).claim()).rejects.toBeInstanceOf(AgentAlreadyRunningError);
    const other = createInstanceLock('two', folder);
    await other.claim();
    await first.release();
    const second = createInstanceLock('one', folder);
    await second.claim();
    await Promise.all([second.release(), other.release()]);
  });

  it('claiming twice and releasing twice change nothing', async () => {
    const folder = await tempFolder();
    const lock = createInstanceLock('one', folder);
    await lock.claim();
    await lock.claim();
    await lock.release();
    await lock.release();
    const next = createInstanceLock('one', folder);
    await next.claim();
    await next.release();
  });

  it('R-098 a folder that cannot be used fails with the path and the way around', async () => {
    const folder = join(await tempFolder(), 'a-file');
    await writeFile(folder, 'no folder');
    const lock = createInstanceLock('one', folder);
    const error: unknown = await lock.claim().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BandConfigError);
    expect(error).not.toBeInstanceOf(AgentAlreadyRunningError);
    expect((error as Error).message).toContain(instanceLockPath('one', folder));
    expect((error as Error).message).toContain('single_instance');
  });

  it('a plain file that another implementation left at the place is harmless', async () => {
    const folder = await tempFolder();
    await writeFile(instanceLockPath('one', folder), '4711');
    const lock = createInstanceLock('one', folder);
    await lock.claim();
    expect((await stat(lock.path)).isDirectory()).toBe(true);
    await lock.release();
  });

  it('a folder that was damaged is mended', async () => {
    const folder = await tempFolder();
    const lock = createInstanceLock('one', folder);
    await lock.claim();
    await lock.release();
    await writeFile(join(lock.path, 'CURRENT'), 'garbage without end');
    await lock.claim();
    await lock.release();
  });

  it('names the folder after the agent, with odd characters encoded', () => {
    expect(instanceLockPath('a.b-c_1', '/locks')).toBe('/locks/band-agent-a.b-c_1.lock');
    expect(instanceLockPath('../ä b', '/locks')).toBe('/locks/band-agent-..%2F%C3%A4%20b.lock');
  });
});

describe('an Agent and its lock', () => {
  it('R-094 R-097 is refused before its adapter is touched, and starts where the guard is off', async () => {
    const folder = await tempFolder();
    const held = createInstanceLock(AGENT_ID, folder);
    await held.claim();
    const ports = { createLock: (agentId: string) => createInstanceLock(agentId, folder) };
    const guarded = agentLab({ agent: { config: { singleInstance: true } }, ports });
    await expect(guarded.agent.start()).rejects.toBeInstanceOf(AgentAlreadyRunningError);
    expect(guarded.adapter.platform).toBeNull();
    expect(guarded.band.calls).toEqual([]);
    const bypassing = agentLab({ agent: { config: { singleInstance: false } }, ports });
    await bypassing.agent.start();
    await bypassing.agent.stop();
    await held.release();
  });

  it('R-096 is free after stop, and after a failed start', async () => {
    const folder = await tempFolder();
    const ports = { createLock: (agentId: string) => createInstanceLock(agentId, folder) };
    const lab = agentLab({ agent: { config: { singleInstance: true } }, ports });
    await lab.agent.start();
    await expect(createInstanceLock(AGENT_ID, folder).claim()).rejects.toBeInstanceOf(AgentAlreadyRunningError);
    await lab.agent.stop();
    lab.band.fail('getMe');
    await expect(lab.agent.start()).rejects.toThrow();
    const next = createInstanceLock(AGENT_ID, folder);
    await next.claim();
    await next.release();
  });

  it('R-098 an unusable place fails the start and leaves nothing', async () => {
    const folder = join(await tempFolder(), 'a-file');
    await writeFile(folder, 'no folder');
    const lab = agentLab({
      agent: { config: { singleInstance: true } },
      ports: { createLock: (agentId: string) => createInstanceLock(agentId, folder) },
    });
    await expect(lab.agent.start()).rejects.toBeInstanceOf(BandConfigError);
    expect(lab.agent.isRunning).toBe(false);
    expect(lab.band.calls).toEqual([]);
  });
});
