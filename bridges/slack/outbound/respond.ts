import { type Dispatcher, request } from 'undici';
import { GatewayError } from '../../../src/base/errors.js';
import type { SlackArguments } from '../client.js';
import { putOff, REQUEST_TIMEOUT_MS, withinTime } from '../slack-fetch.js';
import { isSlackHost } from './send-file.js';

export interface RespondDeps {
  readonly dispatcher: Dispatcher | undefined;
  /** The configured Web API address, whose host is trusted as well. */
  readonly slackApiUrl: string | undefined;
}

const METHOD = 'response_url';

/**
 * Answers an interaction at the address Slack gave for it. No token goes there: the address is the permission.
 *
 * @returns false where Slack takes nothing there (any more)
 * @throws {GatewayError} what a call to the Web API throws for the same trouble
 */
export async function respond(
  address: string,
  body: SlackArguments,
  { dispatcher, slackApiUrl }: RespondDeps,
  signal: AbortSignal,
): Promise<boolean> {
  const url = URL.parse(address);
  if (!url || !isSlackHost(url, slackApiUrl)) return false;
  return await withinTime({ method: METHOD, timeoutMs: REQUEST_TIMEOUT_MS }, signal, async (within) => {
    const answer = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: within,
      ...(dispatcher ? { dispatcher } : {}),
    });
    await answer.body.dump();
    const { statusCode: status, headers } = answer;
    if (status === 200) return true;
    if (status === 429) throw putOff(headers['retry-after'], { method: METHOD });
    if (status >= 500) throw new GatewayError('SLACK_UNAVAILABLE', { details: { method: METHOD, status } });
    return false;
  });
}
