import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isGatewayError } from '../../src/base/errors.js';
import type { DeadLetter, DeadLetters } from '../../src/core/bridge.js';
import { askControlSocket, controlSocketPath, createControlSocket } from '../../src/gateway/control-socket.js';

const letter: DeadLetter = { id: 'd1', queue: 'outbox', conversation: 'C1', code: 'X', reason: 'gone', at: 5 };

function letters(list: DeadLetter[]): DeadLetters {
  const take = async (id: string) => {
    const index = list.findIndex((one) => one.id === id);
    if (index !== -1) list.splice(index, 1);
    return index !== -1;
  };
  return { list: async (limit) => list.slice(0, limit), retry: take, drop: take };
}

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'gw-control-'));
});
afterEach(() => {
  rmSync(dataDir, { recursive: true, force: true });
});

async function serve(owners: Record<string, DeadLetters>) {
  const socket = createControlSocket(dataDir, () => new Map(Object.entries(owners)));
  await socket.start();
  return socket;
}

describe('the operator socket', () => {
  it('lists the dead letters of all agents, oldest first', async () => {
    const socket = await serve({ b: letters([{ ...letter, at: 9 }]), a: letters([letter]) });
    expect(await askControlSocket(dataDir, { verb: 'dead.list' })).toEqual({
      kind: 'letters',
      letters: [
        { agent: 'a', ...letter },
        { agent: 'b', ...letter, at: 9 },
      ],
    });
    await socket.stop();
  });

  it('retries and drops by agent and id, and says when there is no such letter', async () => {
    const list = [letter, { ...letter, id: 'd2' }];
    const socket = await serve({ a: letters(list) });
    const ask = (verb: 'dead.retry' | 'dead.drop', agent: string, id: string) =>
      askControlSocket(dataDir, { verb, agent, id });
    expect(await ask('dead.retry', 'a', 'd1')).toEqual({ kind: 'done' });
    expect(await ask('dead.drop', 'a', 'd2')).toEqual({ kind: 'done' });
    expect(list).toEqual([]);
    expect(await ask('dead.retry', 'a', 'd1')).toEqual({ kind: 'refused', message: 'a has no dead letter d1.' });
    expect(await ask('dead.drop', 'z', 'd1')).toMatchObject({ kind: 'refused' });
    await socket.stop();
  });

  it.each([
    ['no JSON', 'hello\n'],
    ['an unknown verb', '{"verb":"stop"}\n'],
    ['a key too many', '{"verb":"dead.list","x":1}\n'],
  ])('refuses %s and goes on', async (_, line) => {
    const socket = await serve({});
    const answer = await new Promise<string>((resolve) => {
      const client = connect(controlSocketPath(dataDir), () => client.write(line));
      let text = '';
      client.setEncoding('utf8');
      client.on('data', (chunk: string) => (text += chunk));
      client.on('close', () => {
        resolve(text);
      });
    });
    expect(JSON.parse(answer)).toMatchObject({ kind: 'refused' });
    expect(await askControlSocket(dataDir, { verb: 'dead.list' })).toMatchObject({ kind: 'letters' });
    await socket.stop();
  });

  it('may be opened by this user only, and takes the place of one left behind', async () => {
    const first = await serve({});
    expect(statSync(controlSocketPath(dataDir)).mode & 0o777).toBe(0o600);
    const second = await serve({});
    expect(await askControlSocket(dataDir, { verb: 'dead.list' })).toMatchObject({ kind: 'letters' });
    await second.stop();
    await first.stop();
  });

  it('without a running gateway the asker is told so', async () => {
    const error = await askControlSocket(dataDir, { verb: 'dead.list' }).catch((found: unknown) => found);
    expect(isGatewayError(error, 'CONTROL_UNREACHABLE')).toBe(true);
  });

  it('lies elsewhere when the data directory has too long a name for a socket', () => {
    expect(controlSocketPath(`/data/${'x'.repeat(200)}`).length).toBeLessThan(100);
    expect(controlSocketPath('/data')).toBe('/data/control.sock');
  });
});
