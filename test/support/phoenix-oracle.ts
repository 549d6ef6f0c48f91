import { type Channel, Socket } from 'phoenix';
import { vi } from 'vitest';
import type { Clock } from '../../src/base/clock.js';
import { createBandLink } from '../../src/platform/link.js';
import type { WebSocketLike } from '../../src/platform/socket/web-socket.js';
import { MemoryPlatform, type RawFrame } from './phoenix-peer.js';

/** One client of the same conversations: ours or the official one. Needs vitest's fake timers. */
export interface OracleClient {
  readonly platform: MemoryPlatform;
  /** What its user saw, in order. */
  readonly seen: string[];
  connect(): Promise<void>;
  join(topic: string): void;
  leave(topic: string): void;
  close(): Promise<void>;
}

export type OracleName = 'ours' | 'phoenix';

export const advance = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
};

/** A clock on the global timers, which the tests fake for both clients alike. */
const fakedClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal?.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    }),
  after: (ms, fn) => {
    const timer = setTimeout(fn, ms);
    return () => {
      clearTimeout(timer);
    };
  },
  every: (ms, fn) => {
    const timer = setInterval(fn, ms);
    return () => {
      clearInterval(timer);
    };
  },
};

export function createOracleClient(name: OracleName, random = () => 0.5): OracleClient {
  return name === 'ours' ? ours(random) : official();
}

/** Ours takes no event it does not know, so the conversations use `message_created`, whose id is what is seen. */
function ours(random: () => number): OracleClient {
  const platform = new MemoryPlatform();
  const seen: string[] = [];
  const link = createBandLink({
    wsUrl: 'ws://platform.test/socket',
    agentId: 'agent',
    apiKey: 'key',
    onConflict: 'supersede',
    openWebSocket: platform.openWebSocket,
    clock: fakedClock,
    random,
  });
  void (async () => {
    for await (const event of link.events) {
      if (event.kind === 'message_created') seen.push(`push ${event.roomId} ${event.message.id}`);
      if (event.kind === 'topic_lost') seen.push(`lost ${event.topic}`);
    }
  })();
  return {
    platform,
    seen,
    async connect() {
      void link.connect().catch(() => undefined);
      await advance(0);
    },
    join(topic) {
      link.join(topic).then(
        () => seen.push(`joined ${topic}`),
        () => seen.push(`not joined ${topic}`),
      );
    },
    leave(topic) {
      void link.leave(topic).then(() => seen.push(`left ${topic}`));
    },
    async close() {
      const closing = link.close();
      await advance(10_000);
      await closing;
    },
  };
}

function official(): OracleClient {
  const platform = new MemoryPlatform();
  const seen: string[] = [];
  const channels = new Map<string, Channel>();

  /** The browser's WebSocket, as far as the official client uses it. */
  class Transport {
    readyState = 0;
    onopen: () => void = () => undefined;
    onmessage: (event: { data: string }) => void = () => undefined;
    onerror: (error: unknown) => void = () => undefined;
    onclose: (event: { code: number; reason: string; wasClean: boolean }) => void = () => undefined;
    readonly bufferedAmount = 0;
    readonly #socket: WebSocketLike;

    constructor(url: string) {
      this.#socket = platform.openWebSocket(
        url,
        {},
        {
          opened: () => {
            this.readyState = 1;
            this.onopen();
          },
          message: (text) => {
            if (text !== null) this.onmessage({ data: text });
          },
          ended: (end) => {
            this.readyState = 3;
            const code = end.kind === 'closed' ? end.code : 1006;
            if (end.kind !== 'closed') this.onerror(end);
            this.onclose({ code, reason: '', wasClean: code === 1000 });
          },
        },
      );
    }
    send(text: string): void {
      this.#socket.send(text);
    }
    close(code = 1000, reason = ''): void {
      this.readyState = 2;
      this.#socket.close(code, reason);
    }
  }

  const socket = new Socket('ws://platform.test/socket', { transport: Transport, params: { api_key: 'key' } });
  return {
    platform,
    seen,
    async connect() {
      socket.connect();
      await advance(0);
    },
    join(topic) {
      const channel = socket.channel(topic);
      channels.set(topic, channel);
      let joinedBefore = false;
      let leaving = false;
      channel.on('message_created', (payload: { id: string }) => {
        seen.push(`push ${topic.slice(topic.indexOf(':') + 1)} ${payload.id}`);
      });
      channel.onClose((payload) => {
        leaving ||= payload === 'leave';
        if (!leaving) seen.push(`lost ${topic}`);
      });
      channel
        .join()
        .receive('ok', () => {
          if (!joinedBefore) seen.push(`joined ${topic}`);
          joinedBefore = true;
        })
        .receive('error', () => seen.push(`not joined ${topic}`))
        .receive('timeout', () => seen.push(`not joined ${topic}`));
    },
    leave(topic) {
      channels
        .get(topic)
        ?.leave()
        .receive('ok', () => seen.push(`left ${topic}`));
      channels.delete(topic);
    },
    async close() {
      socket.disconnect();
      await advance(10_000);
    },
  };
}

/**
 * Frames with their refs replaced by what they stand for: each join's own ref by `join#n of topic`, others by `ref`.
 * Two clients that number differently but mean the same give the same text.
 */
export function meaning(frames: readonly RawFrame[]): string[] {
  const joins = new Map<string, string>();
  const counts = new Map<string, number>();
  return frames.map(([joinRef, ref, topic, event, payload]) => {
    if (event === 'phx_join' && ref !== null) {
      const n = (counts.get(topic) ?? 0) + 1;
      counts.set(topic, n);
      joins.set(ref, `join#${n}`);
    }
    const joinName = joinRef === null ? 'none' : (joins.get(joinRef) ?? 'unknown');
    const refName = ref === null ? 'none' : (joins.get(ref) ?? 'ref');
    return `${joinName} ${refName} ${topic} ${event} ${JSON.stringify(payload)}`;
  });
}
