import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { GenericAdapter, type GenericTurn } from '../../../src/adapters/generic.js';
import type { Agent } from '../../../src/agent.js';
import type { Clock } from '../../../src/base/clock.js';
import { silentLogger, type Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { DEMO, startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { SlackAdapter } from '../../../bridges/slack/adapter.js';
import type { SlackOptionsInput } from '../../../bridges/slack/settings.js';
import { sandboxAgent } from '../sandbox-agent.js';
import { callRest } from '../rest-call.js';
import { tempFolder } from '../temp-folder.js';
import { startAcme, type Acme } from './acme.js';
import type { Json } from './world.js';

export type SlackTurn = GenericTurn;

export interface BridgeLabOptions {
  /** What the brain does; default: answers `echo: …`. */
  readonly onTurn?: (turn: SlackTurn) => Promise<void>;
  /** Takes the place of the brain above. */
  readonly inner?: FrameworkAdapter;
  readonly settings?: SlackOptionsInput;
  readonly transport?: 'http' | 'socket';
  readonly acme?: Parameters<typeof startAcme>[0];
  /** Reused by a second start, as a disk would be. */
  readonly store?: StateStore;
  readonly world?: Acme;
  readonly sandbox?: Sandbox;
  readonly dataDir?: string;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  /** The bridge's own clock; default the system's. */
  readonly clock?: Clock;
  /** Limits are counted and refused; default false, since real seconds would pass. */
  readonly rates?: boolean;
}

/** The whole bridge between the double and the sandbox, with a brain that a test writes. */
export interface BridgeLab extends Acme {
  readonly sandbox: Sandbox;
  readonly agent: Agent;
  readonly adapter: SlackAdapter;
  readonly store: StateStore;
  readonly dataDir: string;
  /** Texts that the brain got, in order. */
  readonly heard: string[];
  readonly turns: SlackTurn[];
  /** The helpdesk agent's rooms, newest first. */
  rooms_(): Promise<Json[]>;
  /** Everything that stands in a room, oldest first. */
  roomRows(roomId: string): Promise<Json[]>;
  /** Texts of the bot in a thread. */
  answers(said: { channel: string; threadTs: string }): string[];
  /** Waits for that many bot messages in the thread. */
  answered(said: { channel: string; threadTs: string }, count?: number): Promise<string[]>;
  /** Resolves when all is done that was begun: nothing is on its way, and nothing waits in the bridge. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export const say = (turn: SlackTurn, content: string): Promise<unknown> =>
  turn.tools.executeToolCall('slack_send_message', { content });

export async function startBridge(options: BridgeLabOptions = {}): Promise<BridgeLab> {
  const transport = options.transport ?? 'http';
  const world =
    options.world ??
    (await startAcme({
      rates: options.rates ?? false,
      ...options.acme,
      app: { socketMode: transport === 'socket', ...options.acme?.app },
    }));
  if (!options.world) onTestFinished(() => world.slack.stop());
  const sandbox = options.sandbox ?? (await startSandbox({ port: 0 }));
  if (!options.sandbox) onTestFinished(() => sandbox.close());
  const store = options.store ?? createMemoryStore();
  const dataDir = options.dataDir ?? (await tempFolder());
  const heard: string[] = [];
  const turns: SlackTurn[] = [];
  const inner =
    options.inner ??
    new GenericAdapter(async (turn) => {
      heard.push(turn.message.content);
      turns.push(turn);
      if (options.onTurn) await options.onTurn(turn);
      else await say(turn, `echo: ${turn.message.content}`);
    });
  const { slack, app, botToken } = world;
  const tokens = transport === 'http' ? { signingSecret: app.signingSecret } : { appToken: app.appToken };
  const adapter = new SlackAdapter(
    { inner, botToken, ...tokens, slackApiUrl: slack.apiUrl, ...options.settings },
    {
      store,
      dataDir,
      prefix: 'slack/lab',
      log: options.log ?? silentLogger,
      ...(options.metrics ? { metrics: options.metrics } : {}),
      ...(options.clock ? { clock: options.clock } : {}),
    },
  );
  const agent = sandboxAgent(sandbox, { adapter, agentId: DEMO.helpdesk.id, apiKey: DEMO.helpdesk.apiKey });
  await agent.start();
  const closers: (() => Promise<void>)[] = [];
  if (transport === 'http') closers.push(await serveHttp(adapter, world));
  else await slack.until(() => slack.sockets.open(app).filter((socket) => socket.saidHello).length >= 1, 'a socket');
  await slack.until(() => slack.calls('auth.test').some((call) => call.outcome === 'ok'), 'auth.test');

  let stopped = false;
  const stop = async () => {
    if (stopped) return;
    stopped = true;
    for (const close of closers) await close();
    await agent.stop();
  };
  onTestFinished(stop);
  const get = async (path: string): Promise<Json[]> => {
    const answer = await callRest(sandbox.restUrl, 'GET', `/api/v1/agent${path}`, DEMO.helpdesk.apiKey);
    return (answer.body as { data?: Json[] }).data ?? [];
  };
  const answers = (said: { channel: string; threadTs: string }) =>
    slack.botMessages(said.channel, said.threadTs).map((one) => one.shown);
  return {
    ...world,
    sandbox,
    agent,
    adapter,
    store,
    dataDir,
    heard,
    turns,
    rooms_: () => get('/chats?page_size=100'),
    roomRows: (roomId) => get(`/chats/${roomId}/context?limit=100`),
    answers,
    async answered(said, count = 1) {
      await slack.until(() => answers(said).length >= count, `${count} answers in the thread`);
      return answers(said);
    },
    async idle() {
      const isEmpty = () => adapter.report().queues.every(({ depth }) => depth === 0);
      await slack.settled(() => expect.poll(isEmpty, { interval: 5, timeout: 8_000 }).toBe(true));
    },
    stop,
  };
}

async function serveHttp(adapter: SlackAdapter, world: Acme): Promise<() => Promise<void>> {
  const server = createServer(adapter.requestListener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/main`;
  world.app.urls = { events: `${url}/events`, interactions: `${url}/interactions`, commands: `${url}/commands` };
  return () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => {
        resolve();
      });
    });
}
