import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import {
  client,
  methods,
  ndJsonStream,
  type ClientContext,
  type SessionNotification,
  type Stream,
} from '@agentclientprotocol/sdk';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Agent } from '../../src/agent.js';
import { deferred } from '../../src/base/async.js';
import type { GenericCallback } from '../../src/adapters/generic.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { BandACPServerAdapter, type AcpPorts } from '../../bridges/acp/adapter.js';
import type { AcpServerOptions } from '../../bridges/acp/settings.js';
import { BIN } from '../support/acp/command.js';
import { echoes, ponders, startWorld, type World } from '../support/acp/world.js';

let world: World;
let folder: string;
const brains = new Map<string, GenericCallback>();
const CWD = '/projects/demo';
beforeAll(async () => {
  world = await startWorld();
  folder = await mkdtemp(join(tmpdir(), 'acp-'));
  await world.peer('Echo', echoes);
  await world.peer('Free', (turn) => (brains.get('free') ?? ponders)(turn));
});
afterAll(async () => {
  await world.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The bridge inside an Agent, as a program would host it. */
async function host(
  options: AcpServerOptions = {},
  ports: AcpPorts = {},
): Promise<{ adapter: BandACPServerAdapter; agent: Agent }> {
  const adapter = new BandACPServerAdapter(
    { peers: ['echo'], contextPreamble: 'never', ...options },
    { socketPath: null, ...ports },
  );
  const agent = Agent.create({
    adapter,
    agentId: world.editor.id,
    apiKey: world.editor.apiKey,
    restUrl: world.sandbox.restUrl,
    wsUrl: world.sandbox.wsUrl,
    config: { singleInstance: false },
  });
  await agent.start();
  onTestFinished(async () => {
    world.sandbox.dev.clearFaults();
    brains.clear();
    await agent.stop();
  });
  return { adapter, agent };
}

function pair(): [Stream, Stream] {
  const there = new TransformStream();
  const back = new TransformStream();
  return [
    { readable: there.readable, writable: back.writable },
    { readable: back.readable, writable: there.writable },
  ];
}

interface Client {
  readonly agent: ClientContext;
  readonly updates: SessionNotification[];
  texts(kind?: string): string[];
  heard(count: number): Promise<void>;
}
/** The SDK's own client, connected and initialized. */
async function connect(stream: Stream): Promise<Client> {
  const updates: SessionNotification[] = [];
  let tell: () => void = () => undefined;
  const app = client({ name: 'test' }).onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params);
    tell();
  });
  const connection = app.connect(stream);
  onTestFinished(() => {
    connection.close();
  });
  await connection.agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });
  const texts = (kind = 'agent_message_chunk') =>
    updates.flatMap(({ update }) =>
      update.sessionUpdate === kind && 'content' in update && update.content && 'text' in update.content
        ? [update.content.text]
        : [],
    );
  return {
    agent: connection.agent,
    updates,
    texts,
    async heard(count) {
      while (texts().length < count) {
        const next = deferred();
        tell = next.resolve;
        await next.promise;
      }
    },
  };
}
async function embedded(
  options: AcpServerOptions = {},
  ports: AcpPorts = {},
): Promise<Client & { adapter: BandACPServerAdapter; agentProcess: Agent }> {
  const { adapter, agent } = await host(options, ports);
  const [mine, theirs] = pair();
  await adapter.connect(mine);
  return { ...(await connect(theirs)), adapter, agentProcess: agent };
}
const open = async ({ agent }: Client) =>
  (await agent.request(methods.agent.session.new, { cwd: CWD, mcpServers: [] })).sessionId;
const ask = ({ agent }: Client, sessionId: string, text: string) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
const texts = (roomId: string) => world.room(roomId).messages.filter(({ messageType }) => messageType === 'text');

describe('the SDK client and the bridge inside an Agent', () => {
  it('P-070 asks a peer through a room and hears it', async () => {
    const one = await embedded();
    const session = await open(one);
    expect(await ask(one, session, 'hello')).toMatchObject({ stopReason: 'end_turn' });
    expect(one.texts()).toEqual(['echo: hello']);
    while (world.room(session).title !== 'hello') await new Promise((resolve) => setTimeout(resolve, 10));
  });

  it('P-071 hears two peers in one turn', async () => {
    brains.set('free', async ({ message, tools }) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await tools.sendMessage('later', [{ id: message.senderId }]);
    });
    const one = await embedded();
    const session = await open(one);
    const { _meta } = await ask(one, session, '@echo and @free: both');
    expect(_meta?.['band.ai']).toMatchObject({ replied: ['ana/echo', 'ana/free'], pending: [] });
    expect(one.texts()).toEqual([expect.stringContaining('**@ana/echo:** echo: '), '**@ana/free:** later']);
  });

  it.each([true, false])('P-080 with delivery states shown: %s, an interim message and a pause', async (shown) => {
    world.sandbox.dev.set({ deliveryStatusOnOwnRows: shown });
    onTestFinished(() => {
      world.sandbox.dev.set({ deliveryStatusOnOwnRows: true });
    });
    const go = deferred();
    brains.set('free', async ({ message, tools }) => {
      await tools.sendMessage('working on it', [{ id: message.senderId }]);
      await go.promise;
      await tools.sendMessage('done', [{ id: message.senderId }]);
    });
    const one = await embedded({ peers: ['free'] });
    const session = await open(one);
    const before = performance.now();
    let ended = false;
    const asked = ask(one, session, 'long job').then((answer) => {
      ended = true;
      return answer;
    });
    await one.heard(1);
    if (shown) {
      await new Promise((resolve) => setTimeout(resolve, 900));
      expect(ended, 'the peer is known to be working').toBe(false);
      go.resolve();
      await asked;
      expect(one.texts()).toEqual(['working on it', 'done']);
    } else {
      await asked;
      expect(performance.now() - before).toBeLessThan(3_000);
      go.resolve();
      await one.heard(2);
    }
  });

  it('P-058 a post that Band asks to repeat is repeated, and stands in the room once', async () => {
    const one = await embedded();
    const session = await open(one);
    const path = '*/messages';
    const { dev } = world.sandbox;
    dev.faultRest({
      method: 'POST',
      path,
      callerId: world.editor.id,
      status: 429,
      headers: { 'retry-after': '0' },
      times: 1,
    });
    dev.faultRest({ method: 'POST', path, callerId: world.editor.id, status: 503, times: 1 });
    expect(await ask(one, session, 'once')).toMatchObject({ stopReason: 'end_turn' });
    expect(texts(session).filter(({ content }) => content.includes('once') && !content.includes('echo'))).toHaveLength(
      1,
    );
  });

  it('P-058 a post whose answer is lost is not repeated, and its echo still appears', async () => {
    const one = await embedded();
    const session = await open(one);
    world.sandbox.dev.faultRest({
      method: 'POST',
      path: '*/messages',
      callerId: world.editor.id,
      drop: 'after',
      times: 1,
    });
    await expect(ask(one, session, 'maybe')).rejects.toMatchObject({
      code: -32_603,
      data: { reason: 'post_unconfirmed' },
    });
    await one.heard(1);
    expect(one.texts()).toEqual([expect.stringContaining('echo: maybe')]);
    expect(texts(session)).toHaveLength(2);
  });

  it('P-081 the socket drops in a turn: what was said meanwhile arrives once', async () => {
    const go = deferred();
    brains.set('free', async ({ message, tools }) => {
      await go.promise;
      await tools.sendMessage('said while away', [{ id: message.senderId }]);
    });
    const one = await embedded({ peers: ['free'] });
    const session = await open(one);
    const asked = ask(one, session, 'wait');
    while (texts(session).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    world.sandbox.dev.faultUpgrades({ mode: 'refuse', status: 503, principalId: world.editor.id });
    world.sandbox.dev.closeSockets(world.editor.id, 1_006);
    go.resolve();
    while (texts(session).length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    world.sandbox.dev.clearFaults();
    expect(await asked).toMatchObject({ stopReason: 'end_turn' });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(one.texts()).toEqual(['said while away']);
  });

  it('P-103 a push that comes twice is shown once', async () => {
    const one = await embedded();
    const session = await open(one);
    world.sandbox.dev.faultPushes({
      mode: 'duplicate',
      principalId: world.editor.id,
      event: 'message_created',
      times: 2,
    });
    await ask(one, session, 'hello');
    expect(one.texts()).toEqual(['echo: hello']);
  });

  it('P-164 a room that is deleted ends its turn and its session', async () => {
    const one = await embedded({ peers: ['free'] });
    const session = await open(one);
    const asked = ask(one, session, 'wait');
    while (texts(session).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    const owner = world.sandbox.dev.state().users[0];
    expect(owner).toBeDefined();
    await one.adapter.onCleanup(session, { reason: 'room_deleted' });
    expect(await asked).toMatchObject({ stopReason: 'cancelled' });
    await expect(ask(one, session, 'more')).rejects.toMatchObject({ code: -32_002 });
  });

  it('P-142 the session index survives in the store; records that cannot be read are found again', async () => {
    const store = createMemoryStore();
    const indexStore = { store, prefix: 'acp/ed/' };
    const first = await embedded({}, { indexStore });
    const session = await open(first);
    await ask(first, session, 'remember me');
    await first.agentProcess.stop();
    expect((await store.get(`acp/ed/${session}`))?.value.byteLength).toBeGreaterThan(0);
    await store.batch([{ kind: 'put', key: 'acp/ed/broken', value: new TextEncoder().encode('{"half":') }]);
    const second = await embedded({}, { indexStore });
    world.sandbox.dev.faultRest({ path: '*/chats', callerId: world.editor.id, status: 503, times: 50 });
    const listed = await second.agent.request(methods.agent.session.list, { cwd: CWD });
    expect(listed.sessions.map(({ sessionId }) => sessionId)).toContain(session);
  });

  it('several sessions side by side stay apart', async () => {
    const one = await embedded();
    const sessions = await Promise.all(Array.from({ length: 8 }, () => open(one)));
    await Promise.all(sessions.map((session, i) => ask(one, session, `to ${i}`)));
    for (const [i, session] of sessions.entries()) {
      const heard = one.updates.filter(
        ({ sessionId, update }) => sessionId === session && update.sessionUpdate === 'agent_message_chunk',
      );
      expect(JSON.stringify(heard)).toContain(`echo: to ${i}`);
      expect(heard).toHaveLength(1);
    }
  });

  it('the session helper of the SDK reads a turn to its end', async () => {
    const one = await embedded();
    const said = await one.agent.buildSession(CWD).withSession(async (session) => {
      const asked = session.prompt('hi');
      const text = await session.readText();
      await asked;
      return text;
    });
    expect(said).toBe('echo: hi');
  });
});

describe('the SDK client over a child process', () => {
  it('new, prompt, cancel, load: as an editor does it', async () => {
    const child = spawn(process.execPath, [BIN, 'acp', '--peer', 'echo', '--context', 'never'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, ...world.env },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    const one = await connect(
      ndJsonStream(
        Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      ),
    );
    const session = await open(one);
    expect(await ask(one, session, 'hello')).toMatchObject({ stopReason: 'end_turn' });
    expect(one.texts()).toEqual(['echo: hello']);
    const waiting = ask(one, session, '@free wait');
    while (texts(session).length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
    await one.agent.notify(methods.agent.session.cancel, { sessionId: session });
    expect(await waiting).toMatchObject({ stopReason: 'cancelled' });
    await one.agent.request(methods.agent.session.load, { sessionId: session, cwd: CWD, mcpServers: [] });
    expect(one.texts('user_message_chunk')).toEqual(['hello', '@free wait']);
    await one.agent.request(methods.agent.session.close, { sessionId: 'unknown' });
  });
});
