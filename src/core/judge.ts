import {
  DeliveryFailedError,
  RoomExecutionStoppedError,
  TurnEndedError,
  TurnResultAlreadyReported,
} from '../base/band-errors.js';
import { isSynthetic } from './synthetic.js';
import type { AgentToolsProtocol, Mention, MessageSent } from './tools.js';
import { hasVisibleText } from './visible-text.js';

/** `metadata.failure.provider` of failures that this runtime reports. */
export const RUNTIME_PROVIDER = 'band-runtime';

/** R-275, word for word. */
const MISSING_REPLY_TEXT =
  'The agent ended its turn without replying or calling band_no_reply, so nothing reached the room.';

/** What the room reads when a message failed for good; why it failed is for `failed` marks and logs only. */
export const UNFINISHED_TEXT = 'The agent could not finish this message.';

/**
 * The verdict on a turn whose adapter just returned. Complete, cancelled, detached and synthetic turns pass; a missing
 * reply is logged, told to the room once where that is wanted, and thrown.
 *
 * @throws {TurnResultAlreadyReported} final: the delivery is marked failed, whatever the retry budget.
 *   Whether the room knows is `tools.turn.reported`; where it is false and a report is wanted, the runtime's generic
 *   one follows.
 */
export async function judgeTurn(
  tools: AgentToolsProtocol,
  message: { readonly senderType: string; readonly senderId: string },
): Promise<void> {
  const { turn } = tools;
  if (isSynthetic(message) || turn.detached || turn.judged || turn.aborted) return;
  turn.noteJudged();
  if (turn.complete) return;
  await reportMissingReply(tools);
  throw new TurnResultAlreadyReported(MISSING_REPLY_TEXT, { final: true });
}

/**
 * The verdict on a turn that the adapter detached, called by the adapter at the turn's real end. The delivery
 * was marked processed long ago, so nothing is thrown; the turn's tools post nothing afterwards.
 *
 * @returns false when the reply is missing; a cancelled turn counts as complete and reports nothing
 */
export async function judgeDetachedTurn(tools: AgentToolsProtocol): Promise<boolean> {
  const { turn } = tools;
  if (turn.ended || turn.judged) return true;
  turn.noteJudged();
  const { complete } = turn;
  if (!complete) {
    await reportMissingReply(tools);
    if (turn.reportFailures && !turn.reported) await report(tools, UNFINISHED_TEXT);
  }
  turn.end();
  return complete;
}

async function reportMissingReply(tools: AgentToolsProtocol): Promise<void> {
  const { turn, roomId } = tools;
  turn.log.warn({ roomId }, MISSING_REPLY_TEXT);
  if (turn.reportFailures) await report(tools, MISSING_REPLY_TEXT);
}

async function report(tools: AgentToolsProtocol, message: string): Promise<void> {
  try {
    await tools.sendFailure({ provider: RUNTIME_PROVIDER, message });
  } catch (error) {
    // The verdict stands whether or not the room could be told.
    tools.turn.log.warn({ err: error, roomId: tools.roomId }, 'the failure of a turn could not be reported');
  }
}

/**
 * Posts the answer. A post that fails is a {@link DeliveryFailedError} with the failure as its cause, never to be
 * mistaken for a failure of the model; a stopped room and an ended turn keep their own errors.
 *
 * @returns null when `text` has nothing visible in it
 */
export async function deliverReply(
  tools: AgentToolsProtocol,
  text: string,
  mentions: readonly Mention[],
): Promise<MessageSent | null> {
  try {
    return await tools.sendMessage(text, mentions);
  } catch (error) {
    if (error instanceof RoomExecutionStoppedError || error instanceof TurnEndedError || tools.turn.aborted)
      throw error;
    throw new DeliveryFailedError('The reply could not be posted to the room', { cause: error });
  }
}

/**
 * Posts a model's closing text, unless a tool already replied or declined or the text has nothing visible in it.
 *
 * @returns whether it posted
 * @throws {DeliveryFailedError} as {@link deliverReply}
 */
export async function relayReply(
  tools: AgentToolsProtocol,
  text: string,
  mentions: readonly Mention[],
): Promise<boolean> {
  if (tools.turn.replied || !hasVisibleText(text)) return false;
  return (await deliverReply(tools, text, mentions)) !== null;
}
