import type { Dispatcher } from 'undici';
import { systemClock, type Clock } from '../base/clock.js';
import { newUuid, type NewId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import { noMetrics, type Metrics } from '../base/metrics.js';
import type { Redactor } from '../base/redact.js';
import type { BandLink } from '../platform/link-port.js';
import { createBandLink, type BandLinkOptions } from '../platform/link.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { createRestClient, type RestClientOptions } from '../platform/rest/rest-client.js';
import { createInstanceLock, type InstanceLock } from './instance-lock.js';
import { bandLogger, libraryRedactor } from './logging.js';

/** The world as an Agent gets it. Everything has a default; tests and hosts replace what they need. */
export interface AgentPorts {
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly newId: NewId;
  /** A logger by name, e.g. `band.agent`. Default: what `configureLogging()` set up, silent until then. */
  readonly log: (name: string) => Logger;
  readonly metrics: Metrics;
  readonly redactor: Redactor;
  /** Connections for REST calls; left out, the Agent opens its own and closes them at stop. */
  readonly dispatcher: Dispatcher | null;
  readonly createRest: (options: RestClientOptions) => BandRest;
  readonly createLink: (options: BandLinkOptions) => BandLink;
  readonly createLock: (agentId: string) => InstanceLock;
  /** Where signal handlers are installed. */
  readonly process: Pick<NodeJS.EventEmitter, 'on' | 'off'>;
}

export function agentPorts(given: Partial<AgentPorts> = {}): AgentPorts {
  return {
    clock: systemClock,
    random: Math.random,
    newId: newUuid,
    log: bandLogger,
    metrics: noMetrics,
    redactor: libraryRedactor,
    dispatcher: null,
    createRest: createRestClient,
    createLink: createBandLink,
    createLock: (agentId) => createInstanceLock(agentId),
    process,
    ...given,
  };
}
