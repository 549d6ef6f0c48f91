import { GatewayError } from '../../src/base/errors.js';
import type { Metrics } from '../../src/base/metrics.js';
import { createBandLink, type BandLinkOptions } from '../../src/platform/link.js';
import type { LinkEvent, LinkEventKind, LinkState } from '../../src/platform/link-port.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { MemoryPlatform } from './phoenix-peer.js';

export const AGENT_ID = '6f0a1c52-3b7e-4c11-9a40-00000000a001';
export const API_KEY = 'band_a_secret_key_of_the_test';

/** A link, the scripted platform it talks to, and the clock of both. */
export function linkLab({ consume = true, ...options }: Partial<BandLinkOptions> & { consume?: boolean } = {}) {
  const platform = new MemoryPlatform();
  const clock = createManualClock();
  const counts = countingMetrics();
  const link = createBandLink({
    wsUrl: 'ws://platform.test/api/v1/socket/websocket',
    agentId: AGENT_ID,
    apiKey: API_KEY,
    onConflict: 'supersede',
    openWebSocket: platform.openWebSocket,
    clock,
    random: () => 0.5,
    metrics: counts.metrics,
    ...options,
  });
  const events: LinkEvent[] = [];
  const states: LinkState[] = [];
  link.onState((state) => states.push(state));
  const read = async () => {
    for await (const event of link.events) events.push(event);
  };
  const consuming = consume ? read() : Promise.resolve();
  return {
    platform,
    clock,
    link,
    events,
    states,
    counts,
    consuming,
    /** Reads to the end; for a lab that does not consume from the start. */
    read,
    kinds: (): LinkEventKind[] => events.map(({ kind }) => kind),
    /** Opens the link and joins `topics`. */
    up: async (...topics: string[]): Promise<void> => {
      await link.connect();
      await Promise.all(topics.map((topic) => link.join(topic)));
    },
    /** Lets everything that needs no time happen. */
    settle: () => clock.advance(0),
  };
}

/** Metrics that can be asked: `count('name', 'label value')`. */
export function countingMetrics() {
  const counts = new Map<string, number>();
  const counter = (name: string) => ({
    inc(labels: Readonly<Record<string, string>> = {}, by = 1) {
      const key = [name, ...Object.values(labels)].join(' ');
      counts.set(key, (counts.get(key) ?? 0) + by);
    },
  });
  const metrics: Metrics = {
    counter,
    gauge: () => ({ set: () => undefined }),
    histogram: () => ({ observe: () => undefined }),
  };
  return { metrics, count: (...name: string[]) => counts.get(name.join(' ')) ?? 0 };
}

/** The error a promise rejects with; fails when it resolves. */
export async function failure(promise: Promise<unknown>): Promise<GatewayError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error('it was expected to fail');
}

export function messageCreated(id: string, roomId: string, content = `text of ${id}`): Record<string, unknown> {
  return {
    id,
    content,
    message_type: 'text',
    metadata: { mentions: [{ id: AGENT_ID, handle: 'acme/gateway', name: 'Gateway' }], status: 'sent' },
    sender_id: '6f0a1c52-3b7e-4c11-9a40-00000000a002',
    sender_type: 'Agent',
    sender_name: 'Planner',
    chat_room_id: roomId,
    thread_id: null,
    inserted_at: '2026-11-29T10:00:00.000000Z',
    updated_at: '2026-11-29T10:00:00.000000Z',
  };
}
