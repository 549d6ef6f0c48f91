/**
 * An A2A gateway on a durable store, whose platform answers every message at once, save `silence`, and remembers nothing:
 * `a2a-memory.ts <store folder>`. Says `{ url }`; `rss` on a message gives its anonymous memory in bytes.
 */
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { A2AGatewayAdapter } from '../../../bridges/a2a/index.js';
import type { BandCalls } from '../../../bridges/a2a/band.js';
import { createPlatformConnection } from '../../../src/core/platform-connection.js';

const PEER = { id: randomUUID(), name: 'Echo', handle: 'demo/echo', type: 'Agent' };
const SELF = randomUUID();
const page = <T>(data: T[]) => ({ data, page: 1, pageSize: 100, totalCount: data.length, totalPages: 1 });

const rest: BandCalls = {
  getMe: () => Promise.resolve({ id: SELF, name: 'Gateway', handle: 'demo/gateway' }),
  listPeers: () => Promise.resolve(page([PEER])),
  listChats: () => Promise.resolve(page([])),
  createChat: () => Promise.resolve({ id: randomUUID() }),
  listParticipants: () => Promise.resolve([]),
  addParticipant: (_room, { participantId }) => Promise.resolve({ id: participantId, type: 'Agent' }),
  postEvent: (_room, { messageType }) =>
    Promise.resolve({ id: randomUUID(), message_type: messageType, success: true }),
  postMessage: (roomId, { content }) => {
    if (!content.includes('silence'))
      setImmediate(() => {
        const reply = {
          id: randomUUID(),
          roomId,
          senderId: PEER.id,
          senderName: 'Echo',
          content: 'echo',
          mentions: [],
          writtenAt: Date.now(),
        };
        void adapter.gateway.engine.reply(reply);
      });
    return Promise.resolve({ id: randomUUID(), success: true });
  },
  getContext: () => Promise.resolve({ data: [], hasMore: false, nextCursor: null }),
};
const adapter = new A2AGatewayAdapter(
  {
    port: 0,
    store: process.argv[2] ?? '',
    completion: 'first',
    auth: { anonymous: 'loopback' },
    limits: { ratePerMin: 0, ipRatePerMin: 0, streamsPerPrincipal: 1_000, openTasksPerPrincipal: 1_000 },
  },
  { rest },
);
adapter.platform = createPlatformConnection({
  agentId: SELF,
  apiKey: 'x',
  restUrl: 'http://x.invalid',
  wsUrl: 'ws://x.invalid',
});
await adapter.onStarted('Gateway', 'x');
process.on('message', () => {
  globalThis.gc?.();
  setTimeout(() => {
    globalThis.gc?.();
    const kilobytes = /RssAnon:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 'NaN';
    process.send?.({ rss: Number(kilobytes) * 1_024 });
  }, 1_000);
});
process.send?.({ url: `http://127.0.0.1:${adapter.gateway.port ?? 0}` });
