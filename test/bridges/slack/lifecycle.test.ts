import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GenericAdapter } from '../../../src/adapters/generic.js';
import { Capability } from '../../../src/core/features.js';
import { createPlatformConnection } from '../../../src/core/platform-connection.js';
import { closeRestConnections, SimpleAdapter } from '../../../src/core/simple-adapter.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { openLevelStore } from '../../../src/store/leveldb.js';
import { SlackAdapter } from '../../../bridges/slack/adapter.js';
import { DEMO, startSandbox } from '../../../src/sandbox/index.js';
import { sandboxAgent } from '../../support/sandbox-agent.js';
import { createSkippingClock } from '../../support/skipping-clock.js';
import { startAcme } from '../../support/slack/acme.js';
import { startBridge, say, type SlackTurn } from '../../support/slack/bridge-lab.js';
import { tempFolder } from '../../support/temp-folder.js';

const brain = () => new GenericAdapter((turn) => say(turn, 'ok').then(() => undefined));
const ports = { store: createMemoryStore() };
const socketTokens = { botToken: 'xoxb-1', appToken: 'xapp-1' };
const httpTokens = { botToken: 'xoxb-1', signingSecret: 's' };

describe('making a Slack adapter', () => {
  it('S-219 the package names Node 20.19 as its floor, its image runs 24, and this suite runs on no less', async () => {
    const read = async (path: string) => await readFile(new URL(`../../../${path}`, import.meta.url), 'utf8');
    const { engines } = JSON.parse(await read('package.json')) as { engines: { node: string } };
    expect(engines.node).toBe('>=20.19');
    expect(await read('deploy/Dockerfile')).toContain('FROM node:24-');
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    expect(major > 20 || (major === 20 && minor >= 19)).toBe(true);
  });

  it('R-291 SlackAdapter asks Band at the injected address with the injected key, and nowhere else', async () => {
    const keys: unknown[] = [];
    const server = createServer((request, response) => {
      keys.push(request.headers['x-api-key']);
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"code":"unauthorized"}}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { slack, app, botToken, alice } = await startAcme({ rates: false });
    onTestFinished(() => slack.stop());
    const signed = { botToken, signingSecret: app.signingSecret, slackApiUrl: slack.apiUrl };
    const adapter = new SlackAdapter({ inner: brain(), ...signed }, { store: createMemoryStore() });
    adapter.platform = createPlatformConnection({
      agentId: 'a1',
      apiKey: 'key-of-a1',
      restUrl: `http://127.0.0.1:${port}`,
      wsUrl: 'ws://127.0.0.1:1',
    });
    await adapter.onStarted('name', 'description');
    const door = createServer(adapter.requestListener);
    await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void door.close());
    const url = `http://127.0.0.1:${(door.address() as AddressInfo).port}/slack`;
    app.urls = { events: `${url}/events`, interactions: `${url}/events`, commands: `${url}/events` };
    alice.says('dm', 'hello');
    await expect.poll(() => keys.length, { timeout: 8_000 }).toBeGreaterThan(0);
    await adapter.cleanupAll();
    await closeRestConnections(adapter);
    expect(new Set(keys)).toEqual(new Set(['key-of-a1']));
  });

  it('S-006 an option that nobody knows is a TypeError, as for every adapter', () => {
    expect(() => new SlackAdapter({ inner: brain(), ...httpTokens, colour: 'red' } as never, ports)).toThrow(
      new TypeError("SimpleAdapter._resolve_features() got an unexpected keyword argument 'colour'"),
    );
  });

  it('S-008 the HTTP door is the same on each access, and there is none with the socket alone', () => {
    const adapter = new SlackAdapter({ inner: brain(), ...httpTokens }, ports);
    expect(adapter.requestListener).toBe(adapter.requestListener);
    expect(adapter.router).toBe(adapter.requestListener);
    const other = new SlackAdapter({ inner: brain(), ...socketTokens }, ports);
    expect(() => other.requestListener).toThrow(/transport='http'/);
    expect(() => other.router).toThrow(/transport='http'/);
  });

  it('S-009 starting without a platform connection fails with the base class’s error', async () => {
    const adapter = new SlackAdapter({ inner: brain(), ...httpTokens }, ports);
    await expect(adapter.onStarted('name', 'description')).rejects.toThrow('platform connection');
  });

  it('S-011 features are the brain’s own when none are given, else these, seen by the brain as well', () => {
    const inner = new GenericAdapter(() => Promise.resolve(), {
      capabilities: [Capability.MEMORY],
      excludeTools: ['band_x'],
    });
    const before = inner.features;
    const kept = new SlackAdapter({ inner, ...httpTokens }, ports);
    expect(kept.features).toEqual(before);
    expect(inner.features).toEqual(before);
    const changed = new SlackAdapter({ inner, ...httpTokens, includeTools: ['band_send_message'] }, ports);
    expect(changed.features.includeTools).toEqual(inner.features.includeTools);
    expect(Array.from(inner.features.includeTools ?? [])).toEqual(['band_send_message']);
    expect(Array.from(inner.features.capabilities)).toEqual([Capability.MEMORY]);
    expect(Array.from(inner.features.excludeTools ?? [])).toEqual(['band_x']);
  });
});

/** A brain that notes what the bridge does with it. */
class Watched extends SimpleAdapter {
  readonly log: string[] = [];
  readonly stop: () => void;

  constructor(stop: () => void = () => undefined) {
    super();
    this.stop = stop;
  }

  override async onStarted(name: string, description: string): Promise<void> {
    this.log.push(
      `started ${name} with ${this.platform?.agentId === undefined ? 'nothing' : 'a connection'}: ${description}`,
    );
    await super.onStarted(name, description);
  }

  override async onCleanup(roomId: string, context?: { readonly reason: string }): Promise<void> {
    this.log.push(`cleanup ${context?.reason ?? ''}`);
    await super.onCleanup(roomId);
  }

  override async cleanupAll(): Promise<void> {
    this.log.push('cleanupAll');
    this.stop();
    await super.cleanupAll();
  }

  async onMessage(
    message: { content: string },
    tools: { executeToolCall: (name: string, args: Record<string, unknown>) => Promise<unknown> },
  ): Promise<void> {
    await tools.executeToolCall('slack_send_message', { content: `watched ${message.content}` });
  }
}

describe('starting and stopping', () => {
  it('S-010 the brain knows its connection, name and description when it starts', async () => {
    const inner = new Watched();
    const lab = await startBridge({ inner });
    expect(inner.log).toHaveLength(1);
    expect(inner.log[0]).toMatch(/^started .+ with a connection: .+/);
    await lab.stop();
  });

  it('S-012 S-055 stopping closes sockets and the brain, may be repeated, and one failing step stops no other', async () => {
    const inner = new Watched(() => {
      throw new Error('the brain does not want to');
    });
    const lab = await startBridge({ inner, transport: 'socket' });
    expect(lab.slack.sockets.open(lab.app).length).toBeGreaterThan(0);
    await lab.adapter.cleanupAll().catch(() => undefined);
    await lab.slack.until(() => lab.slack.sockets.open(lab.app).length === 0, 'closed sockets');
    await lab.adapter.cleanupAll();
    expect(inner.log.filter((line) => line === 'cleanupAll')).toHaveLength(1);
  });

  it('S-007 with a port the adapter listens there by itself, until it stops', async () => {
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const lab = await startBridge({ settings: { port } });
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/slack/events`, { method: 'POST', body: '{}', headers: { connection: 'close' } });
    expect((await ask()).status).toBe(401);
    await lab.stop();
    await expect(ask()).rejects.toThrow();
  });

  it('S-014 a second adapter on one data directory fails at once and names the folder’s owner', async () => {
    const folder = join(await tempFolder(), 'store');
    const store = await openLevelStore({ folder });
    onTestFinished(() => store.close());
    await expect(openLevelStore({ folder })).rejects.toMatchObject({ code: 'STORE_LOCKED' });
  });

  it('S-015 a failing auth.test is asked again, never taken for an answer', async () => {
    const lab = await startBridge({ acme: { install: {} } });
    await lab.stop();
    lab.slack.fault({ method: 'auth.test', times: 2, effect: { kind: 'status', status: 503 } });
    const next = await startBridge({ world: lab, sandbox: lab.sandbox });
    const said = next.alice.says('#general', '@gateway hello');
    await next.slack.until(() => next.answers(said).length === 1, 'an answer', 15_000);
    next.bob.replies(said, 'again');
    await next.answered(said, 2);
    expect(next.heard).toEqual(['hello', 'again']);
  });

  it('S-215 at the start missing scopes are listed, each with what it switches off', async () => {
    const lines: { scope?: string; feature?: string }[] = [];
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => lines.push(JSON.parse(line) as { scope?: string }) },
    );
    const lab = await startBridge({
      log,
      acme: {
        install: { scopes: ['chat:write', 'app_mentions:read', 'channels:history', 'channels:read', 'users:read'] },
      },
    });
    await expect
      .poll(() => lines.some((line) => line.scope === 'files:read' && String(line.feature).includes('files')))
      .toBe(true);
    expect(lines.some((line) => line.scope === 'chat:write')).toBe(false);
    await lab.stop();
  });

  it('S-213 an app without a connection blocks readiness after a minute, and its return frees it', async () => {
    const clock = createSkippingClock();
    const lab = await startBridge({ clock, transport: 'socket', settings: { socket: { connections: 1 } } });
    await expect.poll(() => lab.adapter.blockers()).toEqual([]);
    const down = lab.slack.fault({
      method: 'apps.connections.open',
      times: 1_000,
      effect: { kind: 'status', status: 500 },
    });
    for (const socket of lab.slack.sockets.open(lab.app)) lab.slack.sockets.sever(socket);
    const socketLink = () => lab.adapter.report().links.find(({ name }) => name === 'main: socket');
    await expect.poll(() => socketLink()?.state).toBe('0 open');
    clock.advance(58_000);
    expect(lab.adapter.blockers()).toEqual([]);
    clock.advance(3_000);
    expect(lab.adapter.blockers().map(({ name }) => name)).toEqual(['slack.main.socket']);
    await lab.slack.until(() => down.hits() > 0);
    down.disarm();
    await expect
      .poll(
        () => {
          clock.advance(5_000);
          return lab.adapter.blockers();
        },
        { timeout: 12_000 },
      )
      .toEqual([]);
  });

  it('S-213 an app that never had a connection blocks readiness from the start', async () => {
    const acme = await startAcme({ rates: false, app: { socketMode: true } });
    onTestFinished(() => acme.slack.stop());
    acme.slack.sockets.mute = true;
    const sandbox = await startSandbox({ port: 0 });
    onTestFinished(() => sandbox.close());
    const tokens = { botToken: acme.botToken, appToken: acme.app.appToken };
    const adapter = new SlackAdapter(
      { inner: brain(), ...tokens, slackApiUrl: acme.slack.apiUrl },
      { store: createMemoryStore() },
    );
    const agent = sandboxAgent(sandbox, { adapter, agentId: DEMO.helpdesk.id, apiKey: DEMO.helpdesk.apiKey });
    onTestFinished(async () => {
      await agent.stop();
    });
    await agent.start();
    await expect.poll(() => adapter.blockers().map(({ name }) => name)).toEqual(['slack.main.socket']);
  });
});

describe('after a restart', () => {
  it('S-072 a known thread goes on in its room', async () => {
    const store = createMemoryStore();
    const lab = await startBridge({ store });
    const said = lab.alice.says('#general', '@gateway before');
    await lab.answered(said);
    await lab.stop();
    const next = await startBridge({ store, world: lab, sandbox: lab.sandbox });
    next.bob.replies(said, 'after');
    await next.answered(said, 2);
    expect(next.turns[0]?.roomId).toBe(lab.turns[0]?.roomId);
    expect(await next.rooms_()).toHaveLength(1);
  });

  it('S-073 so it does when the disk is lost: the room is found by its bootstrap event', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway before');
    await lab.answered(said);
    await lab.stop();
    const next = await startBridge({ world: lab, sandbox: lab.sandbox });
    next.bob.replies(said, '@gateway after');
    await next.answered(said, 2);
    expect(next.turns[0]?.roomId).toBe(lab.turns[0]?.roomId);
    expect(await next.rooms_()).toHaveLength(1);
  });

  it('S-013 a room’s clean-up reaches the brain, and the thread still has its room', async () => {
    const inner = new Watched();
    const lab = await startBridge({ inner });
    const said = lab.alice.says('#general', '@gateway one');
    await lab.answered(said);
    const [room] = await lab.rooms_();
    await lab.adapter.onCleanup(String(room?.['id']), { reason: 'room_removed' });
    expect(inner.log).toContain('cleanup room_removed');
    lab.bob.replies(said, 'two');
    expect(await lab.answered(said, 2)).toEqual(['watched one', 'watched two']);
    expect(await lab.rooms_()).toHaveLength(1);
  });

  it('S-167 a button of before still works', async () => {
    const store = createMemoryStore();
    let fails = true;
    const onTurn = async (turn: SlackTurn) => {
      if (fails) throw new Error('not today');
      await say(turn, 'now it works');
    };
    const lab = await startBridge({ store, onTurn });
    const said = lab.alice.says('#general', '@gateway try');
    await lab.answered(said);
    await lab.stop();
    fails = false;
    const next = await startBridge({ store, onTurn, world: lab, sandbox: lab.sandbox });
    next.alice.clicks('Retry', { channel: lab.general.id, threadTs: said.ts });
    await next.slack.until(() => next.answers(said).includes('now it works'));
    expect(next.heard).toEqual(['try']);
  });

  it('S-216 what was accepted while it stopped is answered after the next start', async () => {
    const store = createMemoryStore();
    const lab = await startBridge({ store });
    const threads = Array.from({ length: 8 }, (_, index) =>
      lab.alice.says(index % 2 ? '#general' : '#rooms', `@gateway load ${index}`),
    );
    await lab.slack.until(() => lab.slack.deliveries().filter((delivery) => delivery.state === 'acked').length >= 6);
    await lab.stop();
    const acked = new Set(
      lab.slack
        .deliveries()
        .filter((delivery) => delivery.state === 'acked')
        .map((delivery) => delivery.body['event'] as { channel: string; ts: string })
        // Two channels may hold messages of one moment.
        .map(({ channel, ts }) => `${channel}:${ts}`),
    );
    const next = await startBridge({ store, world: lab, sandbox: lab.sandbox });
    const mine = threads.filter((said) => acked.has(`${said.channel}:${said.ts}`));
    await next.slack.until(
      () => mine.every((said) => next.answers(said).length >= 1),
      'an answer to all that was acknowledged',
      15_000,
    );
    for (const said of mine) expect(next.answers(said)).toHaveLength(1);
  });
});

describe('dead letters', () => {
  it('S-044 S-106 what Slack refuses for good is listed, told, and posted after a second chance', async () => {
    const lab = await startBridge();
    const fault = lab.slack.fault({
      method: 'chat.postMessage',
      channel: lab.general.id,
      times: 1,
      effect: { kind: 'error', error: 'restricted_action' },
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await expect.poll(async () => (await lab.adapter.deadLetters.list()).length, { timeout: 8_000 }).toBe(1);
    const [letter] = await lab.adapter.deadLetters.list();
    expect(letter).toMatchObject({ queue: 'outbox' });
    expect(fault.hits()).toBe(1);
    await expect
      .poll(async () => {
        const [room] = await lab.rooms_();
        return (await lab.roomRows(String(room?.['id']))).some((row) => row['message_type'] === 'error');
      })
      .toBe(true);
    expect(await lab.adapter.deadLetters.retry(letter!.id)).toBe(true);
    await lab.slack.until(() => lab.answers(said).includes('echo: hello'));
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
  });
});
