import type { SessionConfig } from '../config/session-config.js';
import type { FrameworkAdapter } from '../core/framework-adapter.js';
import type { Preprocessor } from '../core/preprocessor.js';
import type { AgentConfigInit } from './agent-config.js';
import type { ParticipantAddedCallback, ParticipantRemovedCallback } from './callbacks.js';
import type { ContactEventConfig } from './contacts.js';
import type { PlatformRuntime } from './platform-runtime.js';

export interface AgentCreateOptions {
  /** Made by the caller. */
  readonly adapter: FrameworkAdapter;
  readonly agentId: string;
  /** Handed on as it is. */
  readonly apiKey: string;
  /** Default `BAND_WS_URL`, else Band Cloud. */
  readonly wsUrl?: string | null | undefined;
  /** Default `BAND_REST_URL`, else Band Cloud. */
  readonly restUrl?: string | null | undefined;
  readonly config?: AgentConfigInit | undefined;
  readonly sessionConfig?: SessionConfig | undefined;
  readonly contactConfig?: ContactEventConfig | undefined;
  readonly onParticipantAdded?: ParticipantAddedCallback | undefined;
  readonly onParticipantRemoved?: ParticipantRemovedCallback | undefined;
  /** Default: every message reaches the adapter. */
  readonly preprocessor?: Preprocessor | undefined;
}

export interface AgentFromConfigOptions extends Omit<AgentCreateOptions, 'agentId' | 'apiKey'> {
  /** Default `agent_config.yaml` in the working folder. */
  readonly configPath?: string | URL | null | undefined;
}

export interface AgentParts {
  readonly runtime: PlatformRuntime;
  readonly adapter: FrameworkAdapter;
  readonly preprocessor?: Preprocessor | undefined;
  readonly onParticipantAdded?: ParticipantAddedCallback | undefined;
  readonly onParticipantRemoved?: ParticipantRemovedCallback | undefined;
}

export interface RunOptions {
  /** Seconds that running work gets after an interruption; null cancels it at once. Default 30. */
  readonly shutdownTimeout?: number | null | undefined;
  /** SIGTERM and SIGINT stop the agent; default true. */
  readonly installSignalHandlers?: boolean | undefined;
}
