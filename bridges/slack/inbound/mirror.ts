import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import { personLabel } from '../directory.js';
import { mirrorEvent, type SlackTurnFacts } from './brain-message.js';

/**
 * Copies what a person wrote into the room. It stands there for people to read: its failure changes nothing.
 *
 * @returns what says that the room is gone; else null
 */
export async function mirror(
  facts: SlackTurnFacts,
  { rest, log }: { readonly rest: BandRest; readonly log: Logger },
  signal: AbortSignal,
): Promise<Error | null> {
  const { roomId } = facts.binding;
  const { content, metadata } = mirrorEvent(facts, personLabel(facts.sender));
  try {
    await rest.postEvent(roomId, { content, messageType: 'thought', metadata }, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ err: error, roomId }, 'a Slack message could not be mirrored');
    if (isGatewayError(error, 'BAND_NOT_FOUND') && (await isGone(rest, roomId))) return error;
  }
  return null;
}

/** Not everything that Band does not know is the room. */
export async function isGone(rest: BandRest, roomId: string): Promise<boolean> {
  try {
    await rest.getChat(roomId);
    return false;
  } catch (error) {
    return isGatewayError(error, 'BAND_NOT_FOUND');
  }
}
