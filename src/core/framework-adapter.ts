import type { AgentInput } from './agent-input.js';
import type { PlatformConnection } from './platform-connection.js';

/** Why a room's session ended. */
export type CleanupReason = 'room_removed' | 'room_deleted' | 'shutdown';

/**
 * What runs inside an Agent. `SimpleAdapter` is the usual way to make one; any object with
 * these members will do.
 */
export interface FrameworkAdapter {
  /** Takes one message. Resolving means done; throwing means the attempt failed. */
  onEvent(input: AgentInput): Promise<void>;
  /** A room's session ended. */
  onCleanup(roomId: string, context?: { readonly reason: CleanupReason }): Promise<void>;
  /** Called once the platform told who the agent is, before any message. */
  onStarted(agentName: string, agentDescription: string): Promise<void>;
  /** Ends what the adapter holds for all rooms. */
  cleanupAll?(): Promise<void>;
  /** A participant came, went or changed; optional. */
  onParticipants?(
    roomId: string,
    change: { readonly kind: 'added' | 'removed'; readonly id: string; readonly name: string; readonly type: string },
  ): Promise<void>;
  /**
   * The platform asked to interrupt, stop or resume the agent, in one room or (null) in all of them; optional, for an
   * adapter that works beside the room's own turns. The runtime has already told its rooms. Must not throw.
   */
  onControl?(roomId: string | null, mode: 'interrupt' | 'stop' | 'play'): void;
  /**
   * The connection to the platform came up or went down; optional, for an adapter that takes work from elsewhere or
   * has people outside to tell. Must not throw.
   */
  onConnection?(isConnected: boolean): void;
  /**
   * False for an adapter whose `onEvent` lasts a moment, such as a bridge: the rooms are not told that it is at work.
   * Left out means true.
   */
  readonly reportsWorkingState?: boolean;
  /** Set by the runtime before `onStarted`. */
  platform?: PlatformConnection | null;
}
