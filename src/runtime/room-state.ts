import type { Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { AgentInput } from '../core/agent-input.js';
import type { AgentToolsProtocol } from '../core/tools.js';
import type { ParticipantAddedEvent, ParticipantRemovedEvent, PlatformEvent } from '../core/events.js';
import type { Turn } from '../core/turn.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { AttemptBook } from './attempts.js';
import type { Cycle } from './cycle.js';
import type { Deadlines } from './deadlines.js';
import type { ExecutionContext } from './execution-context.js';
import type { Gate } from './gate.js';
import type { Ledger } from './ledger.js';
import type { ReadTrouble } from './read-trouble.js';
import type { RoomCounters } from './room-counters.js';
import type { ResyncTimes } from './schedule.js';
import type { WorkingIndicator } from './working-indicator.js';

/** Somebody came into a room or left it. */
export type ParticipantEvent = ParticipantAddedEvent | ParticipantRemovedEvent;

/** What a turn's tools need to know of it. */
export interface TurnAbout {
  /** The message that the turn is for; null for one that the platform does not know. */
  readonly messageId: string | null;
  /** The platform refused a post because the agent is stopped in the room. */
  readonly onStopped: () => void;
}

/** What all rooms of an Agent share. */
export interface RoomEnvironment {
  readonly agentId: string;
  readonly rest: BandRest;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly times: ResyncTimes;
  readonly maxCycleSeconds: number | null;
  readonly reportTurnFailuresToRoom: boolean;
  readonly ledger: Ledger;
  readonly attempts: AttemptBook;
  /** Bounds how many rooms ask the platform for work at the same time. */
  readonly gate: Gate;
  readonly deadlines: Deadlines;
  /** Null where the working state is not reported. */
  readonly indicator: WorkingIndicator | null;
  readonly trouble: ReadTrouble;
  /** The platform does not know the room, or no longer shows it to this agent. */
  readonly roomNotFound: (roomId: string) => void;
  /** Ends the marks that outlive a stop. */
  readonly lastResort: AbortSignal;
  readonly counters: RoomCounters;
  /** Hides secrets in text that leaves the process. */
  readonly redact: (text: string) => string;
  readonly openContext: (roomId: string) => ExecutionContext;
  readonly openTools: (context: ExecutionContext, turn: Turn, about: TurnAbout) => AgentToolsProtocol;
  readonly preprocess: (context: ExecutionContext, event: PlatformEvent) => Promise<AgentInput | null>;
  /** Hands the input to the adapter. */
  readonly handle: (input: AgentInput) => Promise<void>;
  /** Tells those who asked to be told. Never rejects. */
  readonly participantChanged: (roomId: string, change: ParticipantEvent) => Promise<void>;
}

/** One room as the parts of its execution see it. */
export interface RoomState {
  readonly roomId: string;
  /** A received or noticed stop holds the room. */
  paused: boolean;
  /** Control signals received so far: tells whether one came during a call. */
  readonly controls: number;
  /** The room takes no new work. */
  readonly ended: boolean;
  /** The message in hand, from its claim to the end of its cycle. */
  cycle: Cycle | null;
  /** A message was worked off. @param insertedAt - by the platform's clock, in ISO 8601 */
  noteDone(insertedAt: string): void;
  /** Whether a message of this time is, or may be, older than what is done already. */
  isLate(insertedAt: string): boolean;
  /** Ends calls that only look for work. */
  readonly reads: AbortSignal;
  /** Made at the first message. */
  openContext(): ExecutionContext;
  /** New work came over the socket. */
  sawWork(): void;
  /**
   * The platform refused a call because the agent is stopped here.
   *
   * @param controls - {@link RoomState.controls} before the call: a newer signal knows better
   */
  stoppedByPlatform(controls: number): void;
}
