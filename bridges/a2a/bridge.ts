import type { Blocker, Bridge, BridgeModule, BridgePorts, BridgeReport, Finding } from '../../src/core/bridge.js';
import { toError } from '../../src/base/errors.js';
import type { Clock } from '../../src/base/clock.js';
import { A2AGatewayAdapter } from './adapter.js';
import { checkOptions } from './gateway.js';
import type { A2AOptions } from './settings.js';

/** Opens A2A entries for the service. */
export const a2aBridge: BridgeModule<A2AOptions> = {
  // eslint-disable-next-line @typescript-eslint/require-await -- rejects instead of throwing
  async open({ name, options }, ports) {
    checkOptions(options, isShared(options));
    const adapter = new A2AGatewayAdapter(options, {
      clock: ports.clock,
      log: ports.log,
      metrics: ports.metrics,
      http: ports.http,
      store: { state: ports.store, durable: true },
      name,
      ...(ports.dispatcher && { dispatcher: ports.dispatcher }),
    });
    return createBridge(adapter, ports);
  },

  reload({ adapter }, { options }) {
    if (!(adapter instanceof A2AGatewayAdapter)) throw new TypeError('this bridge is not an A2A gateway');
    return adapter.reload(options);
  },

  check: ({ options }) => Promise.resolve(findingsOf(options)),
};

function createBridge(adapter: A2AGatewayAdapter, { clock }: Pick<BridgePorts, 'clock'>): Bridge {
  const since = clock.now();
  return {
    adapter,
    deadLetters: null,
    report: () => reportOf(adapter, since),
    blockers: () => blockersOf(adapter, clock, since),
  };
}

function reportOf(adapter: A2AGatewayAdapter, since: number): BridgeReport {
  const gateway = adapter.url === null ? null : adapter.gateway;
  const isReady = gateway?.directory.ready ?? false;
  return {
    links: [{ name: 'peer directory', state: isReady ? 'read' : 'not read yet', since }],
    queues: [{ name: 'open tasks', depth: gateway?.engine.held.tasks ?? 0, dead: 0 }],
    lastErrors: [],
    recent: [],
  };
}

/** What keeps the gateway from being ready; nothing before it serves. */
export function blockersOf(adapter: A2AGatewayAdapter, clock: Pick<Clock, 'now'>, since: number): Blocker[] {
  if (adapter.url === null) return [];
  const { directory, health } = adapter.gateway;
  const blockers: Blocker[] = [];
  if (!directory.ready) {
    blockers.push({
      name: 'a2a.peers',
      message: 'The list of peers could not be read yet.',
      action: 'Look at the connection to Band; it is tried again by itself.',
      since,
    });
  }
  if (health.unauthorized) {
    blockers.push({
      name: 'a2a.credentials',
      message: 'Band refuses the key of this agent.',
      action: 'Set a valid api_key for this entry.',
      since: health.downSince ?? clock.now(),
    });
  } else if (health.refuses) {
    blockers.push({
      name: 'a2a.band',
      message: 'Band has been out of reach for more than 30 seconds; new requests are refused.',
      action: 'Look at the connection to Band; it is tried again by itself.',
      since: health.downSince ?? clock.now(),
    });
  }
  return blockers;
}

function isShared({ port }: A2AOptions): boolean {
  return port === undefined || port === 'shared';
}

function findingsOf(options: A2AOptions): Finding[] {
  try {
    checkOptions(options, isShared(options));
  } catch (error) {
    return [{ level: 'error', subject: 'a2a', message: toError(error).message }];
  }
  if (options.auth.anonymous === 'always') {
    return [
      {
        level: 'warning',
        subject: 'a2a.auth.anonymous',
        message: 'Whoever reaches the address may use every peer.',
        mend: 'Set a2a.auth.api_keys or a2a.auth.jwt, and a2a.auth.anonymous to never.',
      },
    ];
  }
  return [{ level: 'ok', subject: 'a2a', message: 'The settings fit together.' }];
}
