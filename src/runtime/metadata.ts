import { ValueError } from '../base/band-errors.js';
import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import type { BandRest } from '../platform/rest/band-rest.js';

/** Waits between two tries while the platform asks to slow down. */
const RATE_LIMIT_WAITS_MS = [1_000, 2_000, 4_000, 8_000, 16_000];

export interface AgentMetadata {
  readonly name: string;
  readonly description: string;
}

/**
 * Who this agent is, by the platform's word.
 *
 * @throws {GatewayError} of the wire, at once; `BAND_RATE_LIMITED` after six tries
 * @throws {ValueError} when the agent has no description
 */
export async function fetchMetadata(
  rest: Pick<BandRest, 'getMe'>,
  agentId: string,
  clock: Clock,
  signal?: AbortSignal,
): Promise<AgentMetadata> {
  for (let tries = 0; ; tries += 1) {
    try {
      const { name, description } = await rest.getMe({ retries: 0, signal });
      if (!description) throw new ValueError(`Agent ${agentId} has no description; give it one on the platform`);
      return { name, description };
    } catch (error) {
      const waitMs = RATE_LIMIT_WAITS_MS[tries];
      if (waitMs === undefined || !isGatewayError(error, 'BAND_RATE_LIMITED')) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}
