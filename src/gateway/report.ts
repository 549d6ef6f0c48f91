import type { Blocker, BridgeReport, DeadLetter } from '../core/bridge.js';
import type { HostedAgent, HostedState } from './hosted-agent.js';

/** The service as the status page and `dead list` show it. Times are milliseconds since the epoch. */
export interface GatewayReport {
  readonly version: string;
  readonly now: number;
  readonly startedAt: number;
  readonly publicUrl: string | null;
  readonly platformUrl: string;
  readonly blockers: readonly Blocker[];
  /** What happened since the start that somebody should look into, although nothing is in the way. */
  readonly notices: readonly Notice[];
  readonly agents: readonly AgentReport[];
}

export interface Notice {
  readonly at: number;
  readonly text: string;
  /** What a person can do about it. */
  readonly action: string;
}

export interface AgentReport {
  readonly name: string;
  readonly agentName: string;
  readonly bridgeName: string;
  readonly state: HostedState;
  readonly since: number;
  readonly nextTryAt: number | null;
  readonly problem: { readonly code: string; readonly message: string; readonly action: string } | null;
  /** The link to the platform, where the Agent tells. */
  readonly link: { readonly state: string; readonly since: number; readonly why: string | null } | null;
  readonly bridge: BridgeReport | null;
  readonly deadLetters: readonly DeadLetter[];
}

/** Dead letters shown per agent. */
const MAX_LETTERS = 50;

/** Looks at one agent; a bridge that cannot be looked at is shown without its part. */
export async function reportAgent(hosted: HostedAgent, link: AgentReport['link']): Promise<AgentReport> {
  const { name, agentName, bridgeName, state, since, nextTryAt, verdict, bridge } = hosted;
  const problem = verdict && { code: verdict.code, message: verdict.message, action: verdict.action };
  const common = { name, agentName, bridgeName, state, since, nextTryAt, link };
  try {
    const deadLetters = (await bridge?.deadLetters?.list(MAX_LETTERS)) ?? [];
    return { ...common, problem, bridge: bridge?.report() ?? null, deadLetters };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const unreadable = { code: 'REPORT_FAILED', message, action: 'Look at the log.' };
    return { ...common, problem: problem ?? unreadable, bridge: null, deadLetters: [] };
  }
}
