import { pino } from 'pino';
import { A2AGatewayAdapter, type A2AOptionsInput, type A2APorts } from '../../../bridges/a2a/index.js';
import type { TaskEngine } from '../../../bridges/a2a/engine/engine.js';
import type { Metrics } from '../../../src/base/metrics.js';
import { createPlatformConnection } from '../../../src/core/platform-connection.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js';
import { a2aClient, type A2AClient, type CallOptions } from './client.js';
import { FakeRooms, GATEWAY, HELPER } from './fake-rooms.js';

export interface LabOptions {
  readonly options?: A2AOptionsInput;
  readonly rooms?: FakeRooms;
  readonly clock?: ManualClock;
  readonly store?: StateStore;
  readonly durable?: boolean;
  readonly client?: CallOptions;
  readonly ports?: Partial<A2APorts>;
  /** Waits until the peers were read; default true. */
  readonly ready?: boolean;
}

/** A gateway on a real port, a platform in memory and a clock that moves by hand. */
export interface A2ALab {
  readonly adapter: A2AGatewayAdapter;
  readonly client: A2AClient;
  readonly rooms: FakeRooms;
  readonly clock: ManualClock;
  readonly store: StateStore;
  readonly lines: Record<string, unknown>[];
  readonly counters: Map<string, number>;
  readonly engine: TaskEngine;
  /** The room that was opened last. */
  readonly roomId: string;
  /** A peer answers in a room: its text mentions the gateway. */
  reply(
    text: string,
    more?: { id?: string; roomId?: string; from?: string; name?: string; raw?: boolean; writtenAt?: number },
  ): Promise<string>;
  /** Waits until a condition holds, without time passing on the lab's clock. */
  until(condition: () => boolean | Promise<boolean>, what?: string): Promise<void>;
  /** Waits until so many texts stand in rooms. */
  posted(count: number): Promise<void>;
  /** Sends without waiting for the end. @returns the task's id */
  submit(text: string, fields?: Record<string, unknown>, peer?: string): Promise<string>;
  get(taskId: string, peer?: string): Promise<Awaited<ReturnType<A2AClient['rpc']>>['body']['result']>;
  /** The same store and platform behind a new gateway, as after a crash. */
  restarted(options?: Partial<LabOptions>): Promise<A2ALab>;
  close(): Promise<void>;
}

export const KEY = 'test-token-alpha';
export const OTHER_KEY = 'test-token-beta';

/** Settings with which tests run, unless they say otherwise: two principals, the first reply is the answer, no rates. */
export const LAB_OPTIONS = {
  port: 0,
  completion: 'first',
  auth: {
    apiKeys: [
      { name: 'alpha', key: KEY },
      { name: 'beta', key: OTHER_KEY },
    ],
  },
  limits: { ratePerMin: 0, ipRatePerMin: 0 },
} as const satisfies A2AOptionsInput;

/** Of the real clock: turns of the event loop say nothing about how long a busy machine needs. */
const UNTIL_MS = 8_000;

export async function a2aLab(lab: LabOptions = {}): Promise<A2ALab> {
  const clock = lab.clock ?? createManualClock();
  const rooms = lab.rooms ?? new FakeRooms();
  rooms.now = () => clock.now();
  const store = lab.store ?? createMemoryStore(clock);
  const lines: Record<string, unknown>[] = [];
  const counters = new Map<string, number>();
  const adapter = new A2AGatewayAdapter(
    { ...LAB_OPTIONS, ...lab.options, limits: { ...LAB_OPTIONS.limits, ...lab.options?.limits } },
    {
      clock,
      rest: rooms.rest,
      store: { state: store, durable: lab.durable ?? true },
      log: pino(
        { level: 'debug', base: null },
        { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) },
      ),
      metrics: countingMetrics(counters),
      random: () => 0.5,
      ...lab.ports,
    },
  );
  adapter.platform = createPlatformConnection({
    agentId: GATEWAY.id,
    apiKey: 'band_a_canary',
    restUrl: 'http://band.invalid',
    wsUrl: 'ws://band.invalid/socket',
  });
  await adapter.onStarted(GATEWAY.name, 'A gateway');
  const client = a2aClient(portOf(adapter), {
    headers: { 'x-api-key': KEY },
    ...lab.client,
  });

  const until: A2ALab['until'] = async (condition, what = 'a condition') => {
    const until = performance.now() + UNTIL_MS;
    do {
      if (await condition()) return;
      await new Promise((resolve) => setImmediate(resolve));
    } while (performance.now() < until);
    throw new Error(`waited in vain for ${what}`);
  };
  if (lab.ready !== false) await until(() => adapter.gateway.directory.ready, 'the peers');

  const self: A2ALab = {
    adapter,
    client,
    rooms,
    clock,
    store,
    lines,
    counters,
    get engine() {
      return adapter.gateway.engine;
    },
    get roomId() {
      return [...rooms.rooms.keys()].at(-1) ?? '';
    },
    async reply(text, more = {}) {
      const id = more.id ?? rooms.newId('ffffffff');
      await adapter.gateway.engine.reply({
        id,
        roomId: more.roomId ?? self.roomId,
        senderId: more.from ?? HELPER.id,
        senderName: more.name ?? 'Helper',
        content: more.raw ? text : `@[[${GATEWAY.id}]] ${text}`,
        mentions: [{ id: GATEWAY.id, handle: GATEWAY.handle }],
        writtenAt: more.writtenAt ?? clock.now(),
      });
      return id;
    },
    until,
    posted: (count) => until(() => rooms.posted.length >= count, `${count} posted texts`),
    async submit(text, fields = {}, peer = 'helper') {
      const answer = await client.rpc(peer, 'SendMessage', {
        message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...fields },
        configuration: { returnImmediately: true },
      });
      const { task } = (answer.body.result as typeof answer.body.result | undefined) ?? {};
      if (!task) throw new Error(`not accepted: ${answer.text}`);
      return task.id;
    },
    async get(taskId, peer = 'helper') {
      return (await client.rpc(peer, 'GetTask', { id: taskId })).body.result;
    },
    restarted: (again = {}) => a2aLab({ ...lab, rooms, clock, store, ...again }),
    close: () => adapter.cleanupAll(),
  };
  return self;
}

/** Counters by name and label values, for tests that look at them. */
function countingMetrics(counters: Map<string, number>): Metrics {
  return {
    counter: (name) => ({
      inc: (labels = {}, by = 1) => {
        for (const key of [name, `${name} ${Object.values(labels).join(' ')}`]) {
          counters.set(key, (counters.get(key) ?? 0) + by);
        }
      },
    }),
    gauge: (name) => ({
      set: (labels, value) => {
        for (const key of [name, `${name} ${Object.values(labels).join(' ')}`]) counters.set(key, value);
      },
    }),
    histogram: (name) => ({
      observe: (labels, value) => {
        counters.set(`${name} last`, value);
        for (const key of [name, `${name} ${Object.values(labels).join(' ')}`]) {
          counters.set(key, (counters.get(key) ?? 0) + 1);
        }
      },
    }),
  };
}

/** The address of the own listener, whatever cards say. */
function portOf(adapter: A2AGatewayAdapter): string {
  return `http://127.0.0.1:${adapter.gateway.port ?? 0}`;
}
