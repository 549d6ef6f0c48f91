import { Agent as HttpAgent } from 'undici';
import { isGatewayError } from '../../../src/base/errors.js';
import { createRestClient } from '../../../src/platform/rest/rest-client.js';
import { platformFault } from '../errors.js';
import { isRejection, rejection } from '../rejection.js';
import type { Credentials } from './owner.js';

/**
 * Asks Band whether these credentials are good.
 *
 * @throws {AcpFault} `credentials_rejected`, or `platform_unavailable` when Band could not be asked
 */
export async function checkIdentity({ restUrl, apiKey }: Credentials, signal: AbortSignal): Promise<void> {
  const dispatcher = new HttpAgent();
  try {
    await createRestClient({ restUrl, apiKey, dispatcher, retries: 0 }).getMe({ signal });
  } catch (error) {
    if (isRejection(error)) throw rejection(error);
    throw isGatewayError(error) ? platformFault(error) : error;
  } finally {
    await dispatcher.close();
  }
}
