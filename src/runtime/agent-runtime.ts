import { createRedactor } from '../base/redact.js';
import { abortable, Background, deferred, type Deferred } from '../base/async.js';
import type { CancelTimer, Clock } from '../base/clock.js';
import type { Logger } from '../base/log.js';
import type { Metrics } from '../base/metrics.js';
import type { PlatformEvent } from '../core/events.js';
import type { CleanupReason } from '../core/framework-adapter.js';
import type { SessionConfigFields } from '../config/session-fields.js';
import type { BandLink } from '../platform/link-port.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { AgentControl } from '../platform/wire/socket-events.js';
import { BoundedMap } from '../base/bounded.js';
import { AttemptBook } from './attempts.js';
import { ControlRouter } from './control.js';
import { Deadlines } from './deadlines.js';
import { ExecutionContext } from './execution-context.js';
import { Gate } from './gate.js';
import { Ledger } from './ledger.js';
import { ReadTrouble } from './read-trouble.js';
import { RoomExecution } from './room-execution.js';
import { RoomPresence } from './room-presence.js';
import { roomCounters } from './room-counters.js';
import type { RoomEnvironment } from './room-state.js';
import { RoomTeardown } from './room-teardown.js';
import { resyncTimes } from './schedule.js';
import { WorkingIndicator } from './working-indicator.js';
import type { WireMessage } from './wire-message.js';

/** Rooms that ask the platform for work at the same time. */
const MAX_ASKING = 64;
/** Rooms that are remembered for having been left during a stop. */
const MAX_LEFT_PAUSED = 1_000;
/** How long marks may go on once work was cancelled. */
const MARKS_GRACE_MS = 5_000;

/** What an Agent does with its rooms' events. */
export interface AgentRuntimeHandlers {
  readonly preprocess: RoomEnvironment['preprocess'];
  readonly handle: RoomEnvironment['handle'];
  readonly openTools: RoomEnvironment['openTools'];
  /** Never rejects. */
  readonly participantChanged: RoomEnvironment['participantChanged'];
  /** False where a message takes a moment only, so that its room need not be told. */
  readonly reportsWorkingState: boolean;
  /** A control signal, once, for a room or (null) for all of them. */
  readonly controlled: (roomId: string | null, mode: AgentControl['mode']) => void;
  /** The connection came up or went down. Left out where nobody listens. */
  readonly connectionChanged?: (isConnected: boolean) => void;
  /** The adapter drops what it holds for the room. A rejection is met again at the next attempt. */
  readonly cleanUpRoom: (roomId: string, reason: CleanupReason) => Promise<void>;
}

export interface AgentRuntimeDeps {
  readonly agentId: string;
  readonly link: Pick<BandLink, 'join' | 'leave'>;
  readonly rest: BandRest;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly settings: SessionConfigFields;
  readonly handlers: AgentRuntimeHandlers;
  readonly redact?: (text: string) => string;
}

/**
 * All rooms of one Agent: which there are (presence), what each does (executions), and what they share. Link events
 * come in by {@link dispatch} and control signals by {@link control}; nothing of them waits here.
 */
export class AgentRuntime {
  readonly presence: RoomPresence;
  readonly #env: RoomEnvironment;
  readonly #handlers: AgentRuntimeHandlers;
  readonly #deadlines: Deadlines;
  readonly #indicator: WorkingIndicator | null;
  readonly #rooms = new Map<string, RoomExecution>();
  /** Sessions that ended, until the adapter dropped what it held for them. */
  readonly #ending = new Map<string, { readonly room: RoomExecution; readonly teardown: RoomTeardown }>();
  /** Those who wait for a room to become live. */
  readonly #waiting = new Map<string, Deferred>();
  /** Rooms whose last session ended while a stop held it. */
  readonly #leftPaused = new BoundedMap<string, true>(MAX_LEFT_PAUSED);
  readonly #control = new ControlRouter();
  readonly #lastResort = new AbortController();
  readonly #background: Background;
  #hubRoomId: string | null = null;
  #stopping = false;
  #cancelled = false;

  constructor(deps: AgentRuntimeDeps) {
    const { agentId, link, rest, clock, random, log, metrics, settings, handlers } = deps;
    this.#handlers = handlers;
    this.#background = new Background((error) => {
      log.error({ err: error }, 'background work of the runtime failed');
    });
    this.#deadlines = new Deadlines(clock);
    this.#indicator =
      settings.enableWorkingState && handlers.reportsWorkingState
        ? new WorkingIndicator({
            rest,
            clock,
            log,
            keepAliveSeconds: settings.workingKeepAliveSeconds,
            requestTimeoutSeconds: settings.workingRequestTimeoutSeconds,
            maxSeconds: settings.maxWorkingStateSeconds,
          })
        : null;
    const ledger = new Ledger(settings.maxMessageRetries);
    this.#env = {
      agentId,
      rest,
      clock,
      log,
      random,
      times: resyncTimes(settings),
      maxCycleSeconds: settings.maxCycleSeconds,
      reportTurnFailuresToRoom: settings.reportTurnFailuresToRoom,
      ledger,
      attempts: new AttemptBook(settings.maxMessageRetries),
      gate: new Gate(MAX_ASKING),
      deadlines: this.#deadlines,
      indicator: this.#indicator,
      trouble: new ReadTrouble(log),
      roomNotFound: (roomId) => {
        this.#background.run(() => this.presence.doubt(roomId));
      },
      lastResort: this.#lastResort.signal,
      redact: deps.redact ?? createRedactor(),
      counters: roomCounters(metrics),
      openContext: (roomId) =>
        new ExecutionContext(
          roomId,
          {
            agentId,
            rest,
            clock,
            log,
            enableContextHydration: settings.enableContextHydration,
            contextCacheTtlSeconds: settings.contextCacheTtlSeconds,
            onProcessed: (id, messageId) => {
              ledger.complete(id, messageId);
            },
          },
          { isHubRoom: roomId === this.#hubRoomId },
        ),
      openTools: handlers.openTools,
      preprocess: handlers.preprocess,
      handle: handlers.handle,
      participantChanged: handlers.participantChanged,
    };
    this.presence = new RoomPresence({
      agentId,
      link,
      rest,
      clock,
      random,
      log,
      deadlines: this.#deadlines,
      hooks: {
        previousEnded: async (roomId) => this.#ending.get(roomId)?.teardown.run(),
        joined: (roomId) => {
          this.#open(roomId);
        },
        rejoined: (roomId) => {
          this.#rooms.get(roomId)?.requestPass();
        },
        left: (roomId, reason) => {
          this.#leave(roomId, reason);
        },
      },
    });
  }

  /** Rooms with a live session. */
  get rooms(): ReadonlyMap<string, RoomExecution> {
    return this.#rooms;
  }

  /** The room that collects contact events; it has tools of its own and no working state. */
  get hubRoomId(): string | null {
    return this.#hubRoomId;
  }

  set hubRoomId(roomId: string | null) {
    this.#hubRoomId = roomId;
  }

  /** One event of the link, in order. Room events of rooms that are not live are ignored. */
  dispatch(event: PlatformEvent): void {
    if (this.#stopping) return;
    switch (event.kind) {
      case 'message_created':
        this.#room(event.roomId, event.kind)?.push(event.message);
        return;
      case 'participant_added':
      case 'participant_removed':
        this.#room(event.roomId, event.kind)?.participantChanged(event);
        return;
      case 'room_added':
        this.#background.run(() => this.presence.add(event.roomId));
        return;
      case 'room_removed':
      case 'room_deleted':
        this.presence.remove(event.roomId, event.kind);
        return;
      case 'disconnected':
        for (const room of this.#rooms.values()) room.hold();
        return;
      case 'reconnected':
        this.#catchUpEverywhere();
        return;
      case 'resync':
        if (event.roomId === null) this.#catchUpEverywhere();
        else this.#rooms.get(event.roomId)?.catchUp();
        return;
      case 'topic_lost':
        if (event.roomId !== null) this.presence.channelLost(event.roomId);
        return;
      case 'contact_request_received':
      case 'contact_request_updated':
      case 'contact_added':
      case 'contact_removed':
        return;
    }
  }

  control(control: AgentControl): void {
    if (this.#stopping) return;
    const target = this.#control.route(control);
    switch (target.kind) {
      case 'room':
        this.#rooms.get(target.roomId)?.control(control.mode);
        this.#handlers.controlled(target.roomId, control.mode);
        return;
      case 'all':
        for (const room of this.#rooms.values()) room.control(control.mode);
        this.#handlers.controlled(null, control.mode);
        return;
      case 'nobody':
        this.#env.log.warn({ mode: control.mode }, 'a control signal for a room names no room; ignored');
        return;
      case 'repeat':
        return;
    }
  }

  /** A message that only this process knows, for a live room. */
  pushSynthetic(roomId: string, message: WireMessage): void {
    this.#rooms.get(roomId)?.push(message);
  }

  /** Resolves once the room has a session. */
  async whenLive(roomId: string, signal: AbortSignal): Promise<void> {
    if (this.#rooms.has(roomId)) return;
    const waiting = this.#waiting.get(roomId) ?? deferred();
    this.#waiting.set(roomId, waiting);
    await abortable(waiting.promise, signal);
  }

  /** A line for the next turn of every live room. */
  addNotice(notice: string): void {
    for (const room of this.#rooms.values()) room.addNotice(notice);
  }

  /** Takes no new work from now on; running cycles go on. */
  closeIntake(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.presence.close();
    this.#deadlines.close();
    for (const room of this.#rooms.values()) room.close('shutdown');
  }

  /**
   * Ends every room side by side: no new work from now on, running cycles go on until `hurry` aborts and are then
   * cancelled, each room is cleaned up. A second call takes up what failed.
   *
   * @returns false when a cycle was cancelled
   * @throws {AggregateError} the failed clean-ups
   */
  async stop(hurry: AbortSignal): Promise<boolean> {
    this.closeIntake();
    for (const [roomId, room] of [...this.#rooms]) this.#retire(roomId, room, 'shutdown');
    let cancelTimer: CancelTimer | null = null;
    const cancel = () => {
      for (const { room } of this.#ending.values()) if (room.cancel('shutdown')) this.#cancelled = true;
      cancelTimer = this.#env.clock.after(MARKS_GRACE_MS, () => {
        this.#lastResort.abort(new Error('The runtime is stopping.'));
      });
    };
    if (hurry.aborted) cancel();
    else hurry.addEventListener('abort', cancel, { once: true });
    try {
      const endings = [...this.#ending.values()].map(({ teardown }) => teardown.run());
      const failures = (await Promise.allSettled(endings)).flatMap((ending): unknown[] =>
        ending.status === 'rejected' ? [ending.reason] : [],
      );
      await this.#background.drain();
      await this.#indicator?.drain();
      if (failures.length > 0) throw new AggregateError(failures, 'Rooms could not be cleaned up');
      return !this.#cancelled;
    } finally {
      hurry.removeEventListener('abort', cancel);
      (cancelTimer as CancelTimer | null)?.();
    }
  }

  /** The link was down, or lost events: every room looks for itself, and the rooms are listed again. */
  #catchUpEverywhere(): void {
    for (const room of this.#rooms.values()) room.catchUp();
    this.#background.run(() => this.presence.synchronise());
  }

  #room(roomId: string, kind: string): RoomExecution | undefined {
    const room = this.#rooms.get(roomId);
    if (!room) this.#env.log.debug({ roomId, kind }, 'an event of a room that is not live was ignored');
    return room;
  }

  #open(roomId: string): void {
    if (this.#stopping) return;
    const leftPaused = this.#leftPaused.delete(roomId);
    const room = new RoomExecution(roomId, this.#env, { leftPaused });
    this.#rooms.set(roomId, room);
    room.start();
    this.#waiting.get(roomId)?.resolve();
    this.#waiting.delete(roomId);
  }

  /** The platform took the agent out of the room: whatever runs there ends now. */
  #leave(roomId: string, reason: CleanupReason): void {
    const room = this.#rooms.get(roomId);
    if (!room) return;
    room.close('room_left');
    room.cancel('room_left');
    const teardown = this.#retire(roomId, room, reason);
    this.#background.run(() => teardown.run());
  }

  /** From here on the room only ends; it is remembered until it has. */
  #retire(roomId: string, room: RoomExecution, reason: CleanupReason): RoomTeardown {
    this.#rooms.delete(roomId);
    if (room.paused) this.#leftPaused.set(roomId, true);
    const teardown = new RoomTeardown({
      stopped: async () => {
        await room.settled();
        this.#env.ledger.forgetCompleted(roomId);
      },
      cleanUp: async () => {
        await this.#handlers.cleanUpRoom(roomId, reason);
        this.#ending.delete(roomId);
      },
    });
    this.#ending.set(roomId, { room, teardown });
    return teardown;
  }
}
