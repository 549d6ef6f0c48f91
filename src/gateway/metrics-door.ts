import type { HttpListener } from '../base/http-mount.js';
import { sendError, sendMethodNotAllowed } from './http-errors.js';
import type { HostedAgent } from './hosted-agent.js';
import type { PromMetrics } from './metrics.js';

/** `/metrics`: all figures in the Prometheus text format. */
export function createMetricsDoor(metrics: PromMetrics, onError: (error: unknown) => void): HttpListener {
  return (request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      sendMethodNotAllowed(response, 'GET');
      return;
    }
    metrics.text().then(
      (text) => {
        response.writeHead(200, { 'content-type': metrics.contentType, 'cache-control': 'no-store' });
        response.end(text);
      },
      (error: unknown) => {
        onError(error);
        sendError(response, 500, 'internal_error', 'The figures could not be read; the log knows more.');
      },
    );
  };
}

const STATES = [
  'opening',
  'connecting',
  'running',
  'waiting',
  'credentials',
  'elsewhere',
  'superseded',
  'failed',
  'stopped',
] as const;

/** Figures about the service itself, read at scrape time. */
export function exposeStates(metrics: PromMetrics, agents: readonly HostedAgent[], countBlockers: () => number): void {
  const state = metrics.gauge('band_agent_state', 'One for the state an agent is in, zero for the others.', [
    'agent',
    'bridge',
    'state',
  ]);
  const ready = metrics.gauge('band_ready', 'One while nothing keeps the service from being ready.');
  const blockers = metrics.gauge('band_blockers', 'What keeps the service from being ready.');
  const depth = metrics.gauge('band_bridge_queue_depth', "Entries in a bridge's queues.", ['agent', 'queue', 'state']);
  const problems = metrics.gauge(
    'band_bridge_problems',
    'What a bridge cannot do at the moment, such as write with a token that is refused.',
    ['agent', 'bridge'],
  );
  metrics.onScrape(() => {
    const count = countBlockers();
    ready.set({}, count === 0 ? 1 : 0);
    blockers.set({}, count);
    for (const { name, bridgeName, state: current, bridge } of agents) {
      for (const one of STATES) state.set({ agent: name, bridge: bridgeName, state: one }, one === current ? 1 : 0);
      const report = bridge?.report();
      problems.set({ agent: name, bridge: bridgeName }, report?.lastErrors.length ?? 0);
      for (const queue of report?.queues ?? []) {
        depth.set({ agent: name, queue: queue.name, state: 'waiting' }, queue.depth);
        depth.set({ agent: name, queue: queue.name, state: 'dead' }, queue.dead);
      }
    }
  });
}
