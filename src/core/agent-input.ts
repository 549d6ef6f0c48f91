import type { PlatformMessage } from './platform-message.js';
import type { HistoryProvider } from './history.js';
import type { AgentToolsProtocol } from './tools.js';

/** One turn's input, frozen. */
export interface AgentInput {
  readonly msg: PlatformMessage;
  /** Bound to the message's room; refuses every post once the turn has ended. */
  readonly tools: AgentToolsProtocol;
  /** On a room session's first turn what was said before this message, afterwards empty. */
  readonly history: HistoryProvider;
  /** Who is in the room, when that changed since the last turn; else null. */
  readonly participantsMsg: string | null;
  /** Contact notices that wait to be shown; else null. */
  readonly contactsMsg: string | null;
  readonly isSessionBootstrap: boolean;
  readonly roomId: string;
  /** Called by the runtime after `onEvent` resolved, unless the adapter threw `InputNotAccepted`. */
  readonly commitContext?: (() => void) | null;
  /** Aborts on interrupt, stop, cycle timeout and shutdown. */
  readonly signal: AbortSignal;
}

/** A frozen input of the given parts. */
export function createAgentInput(parts: AgentInput): AgentInput {
  return Object.freeze({ ...parts });
}
