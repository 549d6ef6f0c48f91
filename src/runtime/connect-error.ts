import { AgentAlreadyRunningError, BandConnectionError, publicError } from '../base/band-errors.js';
import { isGatewayError, type GatewayError } from '../base/errors.js';

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host not found',
  ECONNRESET: 'connection reset',
  ETIMEDOUT: 'timed out',
  UND_ERR_CONNECT_TIMEOUT: 'timed out',
};

/**
 * Why an agent could not come online, as the public class that its host knows, with the address that was tried: the
 * platform's answer as ApiError, no answer as BandConnectionError, a taken identity as AgentAlreadyRunningError.
 */
export function connectError(error: unknown, agentId: string, url: string): unknown {
  if (!isGatewayError(error)) return error;
  if (error.code === 'BAND_ALREADY_CONNECTED') {
    return new AgentAlreadyRunningError(
      `Agent ${agentId} already has a live connection to the platform. ` +
        'Stop that instance, or take over with ConflictPolicy.SUPERSEDE.',
      { cause: error },
    );
  }
  const shown = publicError(error);
  if (shown !== error && !(shown instanceof BandConnectionError)) return shown;
  return new BandConnectionError(`${error.message} (${[...reasonsOf(error), originOf(url)].join(', ')})`, {
    cause: error,
  });
}

/** What the network said, in words where it is common. */
function reasonsOf(error: GatewayError): string[] {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = isGatewayError(at) ? at.details['reason'] : (at as NodeJS.ErrnoException).code;
    if (typeof code === 'string') return [WORDS[code] ?? code];
  }
  return [];
}

/** Scheme, host and port: a query may hold the key. */
function originOf(url: string): string {
  try {
    const { protocol, host } = new URL(url);
    return `${protocol}//${host}`;
  } catch {
    return 'not a URL';
  }
}
