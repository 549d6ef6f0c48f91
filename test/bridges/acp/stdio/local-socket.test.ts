import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Stream } from '@agentclientprotocol/sdk';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deferred } from '../../../../src/base/async.js';
import { silentLogger } from '../../../../src/base/log.js';
import {
  connectToOwner,
  listenForEditors,
  localSocketPath,
  type LocalListener,
} from '../../../../bridges/acp/stdio/local-socket.js';

let folder: string;
let path: string;
const closers: (() => Promise<void> | void)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'acp-'));
  path = join(folder, 'a.sock');
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await rm(folder, { recursive: true, force: true });
});

/** A server that says back what it hears. */
function parrot(stream: Stream): { closed: Promise<void>; openRequests: number; close(): void } {
  const end = deferred();
  void stream.readable.pipeTo(stream.writable).then(end.resolve, () => {
    end.resolve();
  });
  return { closed: end.promise, openRequests: 0, close: end.resolve };
}
async function listen(maxMessageBytes = 100_000): Promise<LocalListener | null> {
  const listener = await listenForEditors({ path, agentId: 'a', log: silentLogger, maxMessageBytes, connect: parrot });
  if (listener) closers.push(() => listener.close());
  return listener;
}
async function attach(): Promise<{ socket: Socket; line: () => Promise<string>; closed: Promise<void> }> {
  const socket = await connectToOwner(path);
  if (!socket) throw new Error('nobody answers');
  closers.push(() => void socket.destroy());
  let text = '';
  let tell: () => void = () => undefined;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    tell();
  });
  const end = deferred();
  socket.on('end', () => {
    socket.destroy();
  });
  socket.on('close', () => {
    end.resolve();
  });
  return {
    socket,
    closed: end.promise,
    async line() {
      while (!text.includes('\n')) await new Promise<void>((resolve) => (tell = resolve));
      const [first = '', ...rest] = text.split('\n');
      text = rest.join('\n');
      return first;
    },
  };
}

describe('the local socket of an agent', () => {
  it('P-155 takes editors of this user only', async () => {
    expect(await listen()).not.toBeNull();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const one = await attach();
    one.socket.write('{"jsonrpc":"2.0","method":"hello"}\n');
    expect(await one.line()).toBe('{"jsonrpc":"2.0","method":"hello"}');
  });

  it('P-155 a socket that others may write to, or no socket at all, is not trusted', async () => {
    const trap: Server = createServer();
    await new Promise<void>((resolve) => trap.listen(path, resolve));
    closers.push(
      () =>
        new Promise((resolve) =>
          trap.close(() => {
            resolve();
          }),
        ),
    );
    await chmod(path, 0o666);
    expect(await connectToOwner(path)).toBeNull();
    const file = join(folder, 'file');
    await writeFile(file, '');
    expect(await connectToOwner(file)).toBeNull();
    expect(await connectToOwner(join(folder, 'none'))).toBeNull();
  });

  it('P-155 a leftover file is replaced, a live socket is left alone', async () => {
    await writeFile(path, 'left over');
    const first = await listen();
    expect(first).not.toBeNull();
    expect(await listen()).toBeNull();
    await first?.close();
    expect(await connectToOwner(path)).toBeNull();
    expect(await listen()).not.toBeNull();
  });

  it('broken and oversized lines are answered, and the connection stays', async () => {
    await listen(1_024);
    const one = await attach();
    one.socket.write(`nonsense\n{"jsonrpc":"2.0","id":4,"method":"x","params":"${'y'.repeat(2_000)}"}\n{"ok":true}\n`);
    expect(JSON.parse(await one.line())).toMatchObject({ id: null, error: { code: -32_700 } });
    expect(JSON.parse(await one.line())).toMatchObject({ id: 4, error: { data: { reason: 'frame_too_large' } } });
    expect(await one.line()).toBe('{"ok":true}');
  });

  it('an editor that ends its side is let go', async () => {
    await listen();
    const one = await attach();
    one.socket.end();
    await one.closed;
  });

  it('too many editors: the one too many is refused', async () => {
    await listen();
    const editors = await Promise.all(Array.from({ length: 64 }, attach));
    const last = await attach();
    await last.closed;
    const [first] = editors;
    first?.socket.write('{"still":1}\n');
    expect(await first?.line()).toBe('{"still":1}');
  });

  it('P-155 has a path of its own for each agent, short enough for the kernel', () => {
    const plain = localSocketPath('00000000-0000-4000-8000-000000000004', folder);
    expect(plain).toContain('00000000-0000-4000-8000-000000000004');
    const odd = ['../../etc', 'a/b', 'x'.repeat(200)].map((id) => localSocketPath(id, folder));
    expect(new Set(odd).size).toBe(3);
    for (const one of odd) expect(one.startsWith(join(folder, 'band-agent-'))).toBe(true);
    expect(
      Buffer.byteLength(localSocketPath('00000000-0000-4000-8000-000000000004', `/${'d'.repeat(48)}`)),
    ).toBeLessThan(104);
  });
});
