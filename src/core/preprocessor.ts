import type { AgentInput } from './agent-input.js';
import type { MessageCreatedEvent, PlatformEvent } from './events.js';
import type { Participant } from './participants.js';
import type { PlatformMessage } from './platform-message.js';

/** The room session that an event belongs to, as a preprocessor sees it. */
export interface ExecutionContext {
  readonly roomId: string;
  readonly agentId: string;
  /** True in the room that collects contact events. */
  readonly isHubRoom: boolean;
  readonly participants: readonly Participant[];
  /** True until the session's first input was committed. */
  readonly isSessionBootstrap: boolean;
  /** Aborts with the cycle in progress. */
  readonly signal: AbortSignal;
  /** The wire message of an event as adapters get it: mention tokens resolved, sender named. */
  toMessage(event: MessageCreatedEvent): PlatformMessage;
  /** A complete input around `msg`: history, notices, tools bound to this room and this turn. */
  createInput(msg: PlatformMessage): Promise<AgentInput>;
}

/** Decides what of a room's events reaches the adapter, and in which form. */
export interface Preprocessor {
  /** @returns the input for the adapter, or null when the adapter is not to run */
  process(ctx: ExecutionContext, event: PlatformEvent, agentId: string): Promise<AgentInput | null>;
}
