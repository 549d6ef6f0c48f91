import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { AdapterFeatures } from '../core/features.js';
import type { FrameworkAdapter } from '../core/framework-adapter.js';
import type { Preprocessor } from '../core/preprocessor.js';
import type { AgentRuntimeHandlers } from './agent-runtime.js';
import type { ParticipantAddedCallback, ParticipantRemovedCallback } from './callbacks.js';
import type { PlatformRuntime } from './platform-runtime.js';
import type { ParticipantEvent } from './room-state.js';
import { AgentTools } from './tools/agent-tools.js';

export interface AgentHandlersDeps {
  readonly runtime: PlatformRuntime;
  readonly adapter: FrameworkAdapter;
  readonly clock: Clock;
  readonly preprocessor: Preprocessor;
  readonly onParticipantAdded: ParticipantAddedCallback | undefined;
  readonly onParticipantRemoved: ParticipantRemovedCallback | undefined;
  readonly redact: (text: string) => string;
  /** Asked anew each time, since logging may be set up later. */
  readonly log: () => Logger;
}

/** What the rooms of an Agent call: its preprocessor, its adapter, and the callbacks of its owner. */
export function agentHandlers(deps: AgentHandlersDeps): AgentRuntimeHandlers {
  const { runtime, adapter, clock, preprocessor, redact } = deps;
  const { agentId, rest } = runtime;
  return {
    preprocess: (context, event) => preprocessor.process(context, event, agentId),
    handle: (input) => adapter.onEvent(input),
    openTools: (context, turn, { messageId, onStopped }) => {
      const { features } = adapter as { features?: AdapterFeatures };
      return new AgentTools({
        rest,
        roomId: context.roomId,
        agentId,
        roster: context.roster,
        turn,
        isHubRoom: context.isHubRoom,
        redact,
        onRoomStopped: onStopped,
        lookBack: messageId === null ? null : { after: messageId, posted: context.posted, clock },
        ...(features ? { features } : {}),
      });
    },
    participantChanged: (roomId, change) => tellParticipants(deps, roomId, change),
    get reportsWorkingState() {
      return adapter.reportsWorkingState ?? true;
    },
    controlled: (roomId, mode) => {
      try {
        adapter.onControl?.(roomId, mode);
      } catch (error) {
        deps.log().error({ err: error, mode }, 'the adapter did not take a control signal');
      }
    },
    connectionChanged: (isConnected) => {
      try {
        adapter.onConnection?.(isConnected);
      } catch (error) {
        deps.log().error({ err: error, isConnected }, 'the adapter did not take a change of the connection');
      }
    },
    cleanUpRoom: (roomId, reason) => adapter.onCleanup(roomId, { reason }),
  };
}

/** Errors of the callbacks are logged, and the room goes on. */
async function tellParticipants(deps: AgentHandlersDeps, roomId: string, change: ParticipantEvent): Promise<void> {
  const { adapter, onParticipantAdded, onParticipantRemoved, log } = deps;
  const { id, name, type } = change.participant;
  const guarded = async (tell: () => Promise<void> | void) => {
    try {
      await tell();
    } catch (error) {
      log().error({ err: error, roomId }, 'a participant callback failed');
    }
  };
  await guarded(() =>
    change.kind === 'participant_added' ? onParticipantAdded?.(roomId, change) : onParticipantRemoved?.(roomId, change),
  );
  const kind = change.kind === 'participant_added' ? 'added' : 'removed';
  await guarded(() => adapter.onParticipants?.(roomId, { kind, id, name: name ?? '', type: type ?? '' }));
}
