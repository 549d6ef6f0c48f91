import { spawn } from 'node:child_process';
import { appendFile, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DEMO, startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { callRest } from '../support/rest-call.js';
import { sandboxPerson } from '../support/sandbox-person.js';
import { tempFolder } from '../support/temp-folder.js';

const { echo: ECHO } = DEMO;
const PROGRAM = fileURLToPath(new URL('../support/programs/sandbox-server.ts', import.meta.url));

const agent = ({ restUrl }: { restUrl: string }, method: string, path: string, body?: unknown) =>
  callRest(restUrl, method, `/api/v1/agent${path}`, ECHO.apiKey, body);

const start = async (dataDir: string, options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startSandbox({ port: 0, dataDir, ...options });
  onTestFinished(() => sandbox.close());
  return sandbox;
};

/** What a sandbox knows, without who is connected at the moment. */
const lasting = ({ dev }: Sandbox) => {
  const { users, agents, rooms } = dev.state();
  return { users, agents, rooms };
};

describe('a sandbox with a data folder', () => {
  it('knows everything again after a restart: people, keys, rooms, messages, deliveries, stops, contacts', async () => {
    const folder = await tempFolder();
    const first = await start(folder);
    const bob = first.dev.addUser({ handle: 'bob', name: 'Bob' });
    const planner = first.dev.addAgent({ ownerHandle: 'bob', name: 'Planner', description: 'Plans' });
    const person = await sandboxPerson(first);
    const roomId = await person.createRoom([ECHO.id, DEMO.dice.id], 'Weather');
    const gone = await person.createRoom([ECHO.id]);
    await person.call('DELETE', `/chats/${gone}`);
    const messageId = await person.post(roomId, '@Echo one', [ECHO.id]);
    await person.post(roomId, '@Echo two', [ECHO.id]);
    await agent(first, 'POST', `/chats/${roomId}/messages/${messageId}/processing`);
    await agent(first, 'POST', `/chats/${roomId}/messages/${messageId}/failed`, { error: 'no luck' });
    await agent(first, 'POST', `/chats/${roomId}/events`, {
      event: { content: 'note', message_type: 'task', metadata: { slack_thread_ts: '1.2' } },
    });
    await person.remove(roomId, DEMO.dice.id);
    await person.stop(roomId);
    await agent(first, 'POST', '/contacts/add', { handle: planner.handle });
    await callRest(first.restUrl, 'POST', '/api/v1/agent/contacts/add', planner.apiKey, { handle: 'demo/echo' });
    const read = async (sandbox: Sandbox) => {
      return {
        state: lasting(sandbox),
        messages: (await callRest(sandbox.restUrl, 'GET', `/api/v1/me/chats/${roomId}/messages`, DEMO.user.apiKey))
          .body,
        room: (await callRest(sandbox.restUrl, 'GET', `/api/v1/me/chats/${roomId}`, DEMO.user.apiKey)).body,
        context: (await agent(sandbox, 'GET', `/chats/${roomId}/context`)).body,
        contacts: (await agent(sandbox, 'GET', '/contacts')).body,
        requests: (await agent(sandbox, 'GET', '/contacts/requests?sent_status=all')).body,
        executions: (
          await callRest(sandbox.restUrl, 'GET', `/api/v1/me/agents/${ECHO.id}/executions`, DEMO.user.apiKey)
        ).body,
      };
    };
    const before = await read(first);
    await first.close();

    const second = await start(folder, { seed: 'empty' });
    expect(await read(second)).toEqual(before);
    expect((await agent(second, 'GET', `/chats/${roomId}/messages/next`)).status).toBe(204);
    const again = await sandboxPerson(second, bob.apiKey);
    expect((await again.call('GET', '/profile')).status).toBe(200);
    const later = await sandboxPerson(second);
    await later.play(roomId);
    const next = await agent(second, 'GET', `/chats/${roomId}/messages/next`);
    expect(next.body).toMatchObject({ data: { id: messageId } });
  });

  it('goes on after the last moment it knows, even if the clock has gone back', async () => {
    const folder = await tempFolder();
    const first = await start(folder);
    const person = await sandboxPerson(first);
    const roomId = await person.createRoom([ECHO.id]);
    await person.post(roomId, 'one', [ECHO.id]);
    await first.close();
    const clock = {
      now: () => 0,
      sleep: () => Promise.resolve(),
      after: () => () => undefined,
      every: () => () => undefined,
    };
    const second = await start(folder, { clock });
    const later = await sandboxPerson(second);
    await later.post(roomId, 'two', [ECHO.id]);
    const times = (await later.messages(roomId)).map((message) => message.inserted_at);
    expect([...times].sort().reverse()).toEqual(times);
  });

  it('has lost nothing that was answered when it is killed in the middle of work', { timeout: 60_000 }, async () => {
    const folder = await tempFolder();
    const spawned = async () => {
      const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const restUrl = await new Promise<string>((resolve, reject) => {
        child.stdout.once('data', (chunk: Buffer) => {
          resolve(chunk.toString().trim());
        });
        child.once('close', () => {
          reject(new Error('the sandbox ended before it was ready'));
        });
      });
      const dead = new Promise((resolve) => child.once('close', resolve));
      return { restUrl, kill: () => (child.kill('SIGKILL'), dead) };
    };
    const answered: string[] = [];
    let roomId = '';
    for (let round = 0; round < 3; round += 1) {
      const server = await spawned();
      const call = (path: string, body: unknown) =>
        callRest(server.restUrl, 'POST', `/api/v1/me${path}`, DEMO.user.apiKey, body);
      if (round === 0) {
        const { data } = (await call('/chats', {})).body as { data: { id: string } };
        roomId = data.id;
        await call(`/chats/${roomId}/participants`, { participant: { participant_id: ECHO.id } });
      }
      let going = true;
      const poster = async () => {
        while (going) {
          try {
            const sent = await call(`/chats/${roomId}/messages`, {
              message: { content: 'hello', mentions: [{ id: ECHO.id }] },
            });
            answered.push((sent.body as { data: { id: string } }).data.id);
          } catch {
            // The connection broke: whether this one was kept is open, and nobody was told.
            return;
          }
        }
      };
      const posters = Array.from({ length: 8 }, poster);
      const enough = answered.length + 100;
      while (answered.length < enough) await new Promise((resolve) => setImmediate(resolve));
      await server.kill();
      going = false;
      await Promise.all(posters);
    }
    const last = await start(folder);
    const kept = new Set(last.dev.state().rooms[0]?.messages.map(({ id }) => id));
    expect(answered.length).toBeGreaterThanOrEqual(300);
    expect(answered.filter((id) => !kept.has(id))).toEqual([]);
  });

  it('drops a line that was cut short, and refuses one that is damaged', async () => {
    const folder = await tempFolder();
    const file = join(folder, 'journal.jsonl');
    await (await start(folder)).close();
    const whole = await readFile(file);
    await appendFile(file, '[{"kind":"user","us');
    const second = await start(folder);
    expect(second.dev.state().users).toHaveLength(1);
    expect((await stat(file)).size).toBe(whole.length);
    await second.close();

    await writeFile(file, `not json\n${whole.toString()}`);
    await expect(startSandbox({ port: 0, dataDir: folder })).rejects.toMatchObject({ code: 'SANDBOX_DATA' });
  });

  it('has one owner at a time', async () => {
    const folder = await tempFolder();
    const first = await start(folder);
    await expect(startSandbox({ port: 0, dataDir: folder })).rejects.toMatchObject({ code: 'SANDBOX_DATA' });
    await first.close();
    await (await start(folder)).close();
  });

  it('cannot be a file', async () => {
    const file = join(await tempFolder(), 'file');
    await writeFile(file, '');
    await expect(startSandbox({ port: 0, dataDir: file })).rejects.toMatchObject({ code: 'SANDBOX_DATA' });
  });

  it('forgets everything on a reset, on disk as well', async () => {
    const folder = await tempFolder();
    const first = await start(folder);
    const person = await sandboxPerson(first);
    await person.createRoom([ECHO.id]);
    first.dev.reset();
    expect(first.dev.state().rooms).toEqual([]);
    await first.close();
    const second = await start(folder, { seed: 'empty' });
    expect(second.dev.state()).toMatchObject({ rooms: [], users: [{ handle: 'demo' }] });
  });

  it('rewrites its journal as the shortest history once it has grown', async () => {
    const folder = await tempFolder();
    const sandbox = await start(folder);
    const person = await sandboxPerson(sandbox);
    const roomId = await person.createRoom([ECHO.id]);
    const messageId = await person.post(roomId, 'hello', [ECHO.id]);
    const noise = { content: 'noise', message_type: 'task', metadata: { a: 'x'.repeat(60_000) } };
    const temporary = await person.createRoom([ECHO.id]);
    for (let n = 0; n < 320; n += 1) await agent(sandbox, 'POST', `/chats/${temporary}/events`, { event: noise });
    await person.call('DELETE', `/chats/${temporary}`);
    const kept = await person.createRoom([ECHO.id]);
    for (let n = 0; n < 280; n += 1) await agent(sandbox, 'POST', `/chats/${kept}/events`, { event: noise });
    expect((await stat(join(folder, 'journal.jsonl'))).size).toBeLessThan(20_000_000);
    const before = lasting(sandbox);
    await sandbox.close();
    const again = await start(folder);
    const after = lasting(again);
    expect(after).toEqual(before);
    expect(after.rooms[0]?.messages[0]?.id).toBe(messageId);
  });
});
