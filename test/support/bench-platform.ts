import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Socket } from 'phoenix';
import { WebSocket } from 'ws';
import { createBandLink } from '../../src/platform/link.js';
import type { PlatformOrder } from './programs/phoenix-platform.js';

/** Starts the platform of the benches in another process. */
export async function startBenchPlatform() {
  const child = fork(fileURLToPath(new URL('./programs/phoenix-platform.ts', import.meta.url)), {
    execArgv: ['--import', 'tsx'],
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return {
    url: `ws://127.0.0.1:${port}/socket`,
    order: (order: PlatformOrder) => child.send(order),
    async stop(): Promise<void> {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/** A client with two channels a room, reduced to what the figures ask of it. */
export interface BenchClient {
  join(rooms: readonly string[]): Promise<void>;
  /** Resolves when `count` more messages were received. */
  received(count: number): Promise<void>;
  /**
   * Resolves when the next socket has been opened and every join on it answered, with the milliseconds from the one
   * to the other.
   */
  recovered(): Promise<number>;
  close(): Promise<void>;
}

export const roomIds = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `cccccccc-cccc-4ccc-8ccc-${String(from + i).padStart(12, '0')}`);

class Countdown {
  #left = 0;
  #done: () => void = () => undefined;

  start(count: number): Promise<void> {
    this.#left = count;
    return new Promise((resolve) => (this.#done = resolve));
  }
  hit(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#done();
  }
}

export async function connectOurs(url: string): Promise<BenchClient> {
  const link = createBandLink({ wsUrl: url, agentId: 'bench', apiKey: 'bench', onConflict: 'supersede' });
  const messages = new Countdown();
  let openedAt = 0;
  let recovered: (ms: number) => void = () => undefined;
  link.onState(({ kind }) => {
    if (kind === 'connected') openedAt = performance.now();
  });
  const consuming = (async () => {
    for await (const event of link.events) {
      if (event.kind === 'message_created') messages.hit();
      else if (event.kind === 'reconnected') recovered(performance.now() - openedAt);
    }
  })();
  await link.connect();
  return {
    join: async (rooms) => {
      await Promise.all(
        rooms.flatMap((room) => [link.join(`chat_room:${room}`), link.join(`room_participants:${room}`)]),
      );
    },
    received: (count) => messages.start(count),
    recovered: () => new Promise((resolve) => (recovered = resolve)),
    close: async () => {
      await link.close();
      await consuming;
    },
  };
}

export async function connectOfficial(url: string): Promise<BenchClient> {
  const socket = new Socket(url, { transport: WebSocket, params: { api_key: 'bench' } });
  const messages = new Countdown();
  const joins = new Countdown();
  let openedAt = 0;
  socket.onOpen(() => {
    openedAt = performance.now();
  });
  let topics = 0;
  const opened = new Promise<void>((resolve) => {
    socket.onOpen(resolve);
  });
  socket.connect();
  await opened;

  const join = (topic: string, events: readonly string[]) => {
    topics += 1;
    const channel = socket.channel(topic);
    for (const event of events) {
      channel.on(event, () => {
        messages.hit();
      });
    }
    channel.join().receive('ok', () => {
      joins.hit();
    });
  };
  return {
    join: async (rooms) => {
      // One room at a time: all at once is what the official client is slowest at, and not measured here.
      for (const room of rooms) {
        const answered = joins.start(2);
        join(`chat_room:${room}`, ['message_created']);
        join(`room_participants:${room}`, ['participant_added', 'participant_removed', 'room_deleted']);
        await answered;
      }
    },
    received: (count) => messages.start(count),
    recovered: async () => {
      await joins.start(topics);
      return performance.now() - openedAt;
    },
    close: () =>
      new Promise((resolve) => {
        socket.disconnect(resolve);
      }),
  };
}
