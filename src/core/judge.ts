import {
  DeliveryFailedError,
  InputNotAccepted,
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
 * Runs one turn and gives the verdict on it, the one way for turns that the runtime hands over and for those that a
 * wrapping adapter starts by itself. Only with `judges`, and never for a contact event, does the turn owe an answer:
 * then a missing reply is logged, told to the room once where that is wanted, and thrown. A cancelled turn owes
 * nothing, a detached one is judged by {@link judgeDetachedTurn}.
 *
 * @throws what `work` throws
 * @throws {TurnResultAlreadyReported} final: the delivery is marked failed, whatever the retry budget.
 *   Whether the room knows is `tools.turn.reported`; where it is false and a report is wanted, the runtime's generic
 *   one follows.
 */
export async function runJudgedTurn({ tools, message, judges }: JudgedTurn, work: () => Promise<void>): Promise<void> {
  const { turn } = tools;
  turn.setJudged(judges && !isSynthetic(message));
  try {
    await work();
  } catch (error) {
    // A turn that was never taken owes nothing, not even when it was detached before.
    if (error instanceof InputNotAccepted) turn.setJudged(false);
    throw error;
  }
  if (!turn.judged || turn.detached || turn.aborted || !turn.claimVerdict() || turn.complete) return;
  await reportMissingReply(tools);
  throw new TurnResultAlreadyReported(MISSING_REPLY_TEXT, { final: true });
}

export interface JudgedTurn {
  readonly tools: AgentToolsProtocol;
  readonly message: { readonly senderType: string; readonly senderId: string };
  /** The adapter's own wish. */
  readonly judges: boolean;
}

/**
 * The verdict on a turn that the adapter detached, called by the adapter at the turn's real end. The delivery
 * was marked processed long ago, so nothing is thrown; the turn's tools post nothing afterwards.
 *
 * @returns false when the reply is missing; a cancelled turn, and one that is not judged, owe none
 */
export async function judgeDetachedTurn(tools: AgentToolsProtocol): Promise<boolean> {
  const { turn } = tools;
  if (!turn.detached || turn.ended) return true;
  const missing = turn.judged && turn.claimVerdict() && !turn.complete;
  if (missing) {
    await reportMissingReply(tools);
    if (turn.reportFailures && !turn.reported) await report(tools, UNFINISHED_TEXT);
  }
  turn.end();
  return !missing;
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
  text: string | null,
  mentions: readonly Mention[],
): Promise<boolean> {
  if (text === null || tools.turn.replied || !hasVisibleText(text)) return false;
  return (await deliverReply(tools, text, mentions)) !== null;
}
