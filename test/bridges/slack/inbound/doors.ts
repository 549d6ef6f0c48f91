import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { systemClock, type Clock } from '../../../../src/base/clock.js';
import { silentLogger, type Logger } from '../../../../src/base/log.js';
import { noMetrics, type Metrics } from '../../../../src/base/metrics.js';
import { Inbox } from '../../../../src/store/inbox.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';
import { createAccept } from '../../../../bridges/slack/inbound/accept.js';
import { slackRecords, type SlackRecord } from '../../../../bridges/slack/inbound/records.js';
import type { HttpListener } from '../../../../src/base/http-mount.js';

/** An inbox and its door, with what was handed on. */
export async function openDoor(
  options: { store?: StateStore; clock?: Clock; metrics?: Metrics; log?: Logger; deadlineMs?: number } = {},
) {
  const { store = createMemoryStore(), clock = systemClock, metrics = noMetrics, log = silentLogger } = options;
  const inbox = await Inbox.open<SlackRecord>({
    store,
    prefix: 'slack/test/inbox',
    ...slackRecords,
    clock,
    log,
    seenRetentionMs: 26 * 3_600_000,
  });
  const accept = createAccept({
    inbox,
    clock,
    metrics,
    deadlineMs: options.deadlineMs ?? 2_500,
    maxQueuedPerThread: 20,
  });
  const handled: SlackRecord[] = [];
  return {
    inbox,
    accept,
    handled,
    start: () => {
      inbox.queue.start(async ({ body }) => {
        handled.push(body);
        return { kind: 'done' };
      });
    },
  };
}

/** Serves a listener on a free loopback port until the test has finished. */
export async function serve(listener: HttpListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => {
          resolve();
        });
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
