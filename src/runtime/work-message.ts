import { abortable } from '../base/async.js';
import { InputNotAccepted, RoomExecutionStoppedError, TurnResultAlreadyReported } from '../base/band-errors.js';
import { isGatewayError, toError } from '../base/errors.js';
import type { AgentInput } from '../core/agent-input.js';
import { RUNTIME_PROVIDER, UNFINISHED_TEXT } from '../core/judge.js';
import { Turn } from '../core/turn.js';
import { isStoreFault } from '../store/store-fault.js';
import { acknowledge, markFailed, retryAck } from './acknowledge.js';
import { Cycle, type CycleResult } from './cycle.js';
import type { RoomEnvironment, RoomState } from './room-state.js';
import { deliveryStatus, isOwn, isSyntheticMessage, type WireMessage } from './wire-message.js';

/** Where a message came from: pushed by the socket, or handed out by the platform's work list. */
export type MessageSource = 'push' | 'work_list';

export type WorkOutcome =
  /** Worked off, for better or worse; the next message may run. */
  | 'done'
  /** Nothing to do here; the platform may still hold it as open. */
  | 'skipped'
  /** Cannot tell from here; the work list knows. */
  | 'unsure'
  /** Failed with attempts left; it runs again before anything newer. */
  | 'retry'
  /** Could not be claimed, or what came of it not be kept; it keeps its place. */
  | 'deferred'
  /** The work is done, the platform does not know yet. */
  | 'unacknowledged'
  /** Ended by a person, by the platform or by shutdown; the message stays as it is. */
  | 'halted';

/**
 * Takes one message through its whole life: known? → claim → attempt → mark. Every line may be the last one before a
 * crash, and each leads to the message again, never past it.
 */
export async function workMessage(
  env: RoomEnvironment,
  room: RoomState,
  message: WireMessage,
  source: MessageSource,
): Promise<WorkOutcome> {
  const { agentId, ledger, attempts } = env;
  const { roomId } = room;
  if (isOwn(message, agentId)) return 'skipped';
  if (isSyntheticMessage(message)) return workSynthetic(env, room, message);
  if (attempts.isExhausted(roomId, message.id)) return 'skipped';
  if (ledger.isCompleted(roomId, message.id)) {
    return source === 'push' || !(await retryAck(env, room, message.id, 'handed_out')) ? 'skipped' : 'done';
  }
  if (ledger.isAckPending(roomId, message.id)) {
    const state = source === 'push' ? 'unknown' : 'handed_out';
    return (await retryAck(env, room, message.id, state)) ? 'done' : 'unacknowledged';
  }
  if (source === 'push') {
    if (room.paused) return 'skipped';
    // The work list is in order of insertion, so a push from before what is done is late: done long ago, or missed.
    if (message.inserted_at && room.isLate(message.inserted_at)) return 'unsure';
    room.sawWork();
  }
  if (deliveryStatus(message, agentId) === 'processed') {
    ledger.complete(roomId, message.id);
    return 'skipped';
  }
  if (!ledger.claim(roomId, message.id)) return 'deferred';
  try {
    return await claimAndRun(env, room, message);
  } finally {
    ledger.release(roomId, message.id);
  }
}

async function claimAndRun(env: RoomEnvironment, room: RoomState, message: WireMessage): Promise<WorkOutcome> {
  const { rest, attempts, log } = env;
  const { roomId, controls } = room;
  const probing = room.paused;
  const cycle = openCycle(env, room);
  room.cycle = cycle;
  try {
    try {
      const claim = await rest.markProcessing(roomId, message.id, { signal: room.reads });
      if (claim.kind === 'stopped') {
        room.stoppedByPlatform(controls);
        return 'deferred';
      }
    } catch (error) {
      if (room.reads.aborted) return 'halted';
      log.warn({ err: error, roomId, messageId: message.id }, 'a message could not be claimed; it keeps its place');
      return 'deferred';
    }
    // An accepted claim is the only proof that a stop is over, unless another signal came meanwhile.
    if (probing && room.controls === controls) room.paused = false;
    attempts.charge(roomId, message.id);
    const { result, turn } = await runTurn(env, room, message, cycle);
    env.counters.attempts.inc({ outcome: result.kind === 'aborted' ? result.by : result.kind });
    return await settle(env, room, message, { result, turn, controls });
  } finally {
    room.cycle = null;
  }
}

/** Contact events made into messages: no claim, no marks, no attempts. */
async function workSynthetic(env: RoomEnvironment, room: RoomState, message: WireMessage): Promise<WorkOutcome> {
  const cycle = openCycle(env, room);
  room.cycle = cycle;
  try {
    const { result } = await runTurn(env, room, message, cycle);
    if (result.kind === 'failed' || result.kind === 'timed_out') {
      env.log.warn({ err: errorOf(result), roomId: room.roomId }, 'a contact event could not be handled');
    }
    return result.kind === 'aborted' && result.by !== 'interrupt' ? 'halted' : 'done';
  } finally {
    room.cycle = null;
  }
}

function openCycle(env: RoomEnvironment, room: RoomState): Cycle {
  return new Cycle({
    clock: env.clock,
    maxSeconds: env.maxCycleSeconds,
    onLateError: (error) => {
      env.log.warn({ err: error, roomId: room.roomId }, 'a cycle that was left behind failed later');
    },
  });
}

/** From an accepted claim to the adapter's verdict. Loading what the turn needs is outside of the cycle's limit. */
async function runTurn(
  env: RoomEnvironment,
  room: RoomState,
  message: WireMessage,
  cycle: Cycle,
): Promise<{ readonly result: CycleResult; readonly turn: Turn }> {
  const context = room.openContext();
  const controls = room.controls;
  const turn = new Turn({
    signal: cycle.signal,
    reportFailures: env.reportTurnFailuresToRoom,
    log: env.log,
  });
  const tools = env.openTools(context, turn, {
    messageId: isSyntheticMessage(message) ? null : message.id,
    onStopped: () => {
      room.stoppedByPlatform(controls);
      cycle.abort('room_stopped');
    },
  });
  context.beginTurn({ signal: cycle.signal, tools });
  try {
    const prepared = await prepare(env, room, message, cycle);
    if (prepared.kind === 'failed') return { result: prepared, turn };
    const { input } = prepared;
    if (input === null && cycle.endedBy === null) return { result: { kind: 'completed' }, turn };
    const endIndicator = cycle.endedBy === null && !context.isHubRoom ? env.indicator?.begin(room.roomId) : undefined;
    try {
      const result = await cycle.run(() => (input ? handleAndCommit(env, input) : Promise.resolve()));
      return { result, turn };
    } finally {
      endIndicator?.();
    }
  } finally {
    // A detached turn that was not cancelled is ended by its adapter.
    if (!turn.detached || cycle.endedBy !== null) turn.end();
    context.endTurn();
  }
}

async function prepare(
  env: RoomEnvironment,
  room: RoomState,
  message: WireMessage,
  cycle: Cycle,
): Promise<{ kind: 'ready'; input: AgentInput | null } | { kind: 'failed'; error: unknown }> {
  const context = room.openContext();
  try {
    const preparing = async () => {
      await context.load(cycle.signal);
      return env.preprocess(context, { kind: 'message_created', roomId: room.roomId, message: asPushed(message) });
    };
    return { kind: 'ready', input: await abortable(preparing(), cycle.signal) };
  } catch (error) {
    return cycle.endedBy === null ? { kind: 'failed', error } : { kind: 'ready', input: null };
  }
}

/** A row of the work list in the shape of a push; the platform leaves out nothing that a push has. */
function asPushed(message: WireMessage) {
  return { ...message, inserted_at: message.inserted_at ?? '', updated_at: message.updated_at ?? '' };
}

async function handleAndCommit(env: RoomEnvironment, input: AgentInput): Promise<void> {
  try {
    await env.handle(input);
  } catch (error) {
    // Any other failure came after the adapter had taken the input; repeating it would double the context.
    if (!(error instanceof InputNotAccepted)) input.commitContext?.();
    throw error;
  }
  input.commitContext?.();
}

interface Settled {
  readonly result: CycleResult;
  readonly turn: Turn;
  readonly controls: number;
}

async function settle(
  env: RoomEnvironment,
  room: RoomState,
  message: WireMessage,
  { result, turn, controls }: Settled,
): Promise<WorkOutcome> {
  const { attempts } = env;
  const { roomId } = room;
  switch (result.kind) {
    case 'completed':
      return finish(env, room, message);
    case 'aborted':
      attempts.refund(roomId, message.id);
      return result.by === 'interrupt' ? finish(env, room, message) : 'halted';
    case 'failed':
      if (result.error instanceof RoomExecutionStoppedError && result.error.roomId === roomId) {
        attempts.refund(roomId, message.id);
        room.stoppedByPlatform(controls);
        return 'halted';
      }
      if (cannotKeep(result.error)) {
        attempts.refund(roomId, message.id);
        env.log.warn({ err: result.error, roomId, messageId: message.id }, 'a message could not be kept; it waits');
        return 'deferred';
      }
      return fail(env, room, message, result, turn);
    case 'timed_out':
      return fail(env, room, message, result, turn);
  }
}

/** This process cannot store what came of the message for now: that is no attempt of the message's. */
const cannotKeep = (error: unknown): boolean => isStoreFault(error) || isGatewayError(error, 'QUEUE_FULL');

/** The message was consumed: the platform is told, and told again until it knows. */
async function finish(env: RoomEnvironment, room: RoomState, message: WireMessage): Promise<WorkOutcome> {
  if (message.inserted_at) room.noteDone(message.inserted_at);
  env.attempts.clear(room.roomId, message.id);
  return (await acknowledge(env, room, message.id)) ? 'done' : 'unacknowledged';
}

async function fail(
  env: RoomEnvironment,
  room: RoomState,
  message: WireMessage,
  result: Extract<CycleResult, { kind: 'failed' | 'timed_out' }>,
  turn: Turn,
): Promise<WorkOutcome> {
  const { attempts, log } = env;
  const { roomId } = room;
  const error = errorOf(result);
  if (error instanceof TurnResultAlreadyReported && error.final) attempts.exhaust(roomId, message.id);
  const final = attempts.isExhausted(roomId, message.id);
  log.warn({ err: error, roomId, messageId: message.id, final }, 'a message failed');
  if (final && env.reportTurnFailuresToRoom && !turn.reported) await reportFailure(env, room, message, error);
  const text = failureText(env, result);
  const marked = await markFailed(env, room, message.id, text);
  // Before another attempt the platform hears of it by the next claim.
  if (!final) return 'retry';
  if (!marked) env.ledger.intendFail(roomId, message.id, text);
  if (message.inserted_at) room.noteDone(message.inserted_at);
  return 'done';
}

/** Tells the room, in words for people; the error itself goes to the mark and the log. */
async function reportFailure(env: RoomEnvironment, room: RoomState, message: WireMessage, error: Error): Promise<void> {
  const failure = {
    provider: RUNTIME_PROVIDER,
    code: isGatewayError(error) ? error.code : null,
    message: UNFINISHED_TEXT,
    detail: null,
  };
  try {
    await env.rest.postEvent(
      room.roomId,
      { content: UNFINISHED_TEXT, messageType: 'error', metadata: { failure } },
      { signal: env.lastResort },
    );
  } catch (postError) {
    env.log.warn({ err: postError, roomId: room.roomId, messageId: message.id }, 'a failure could not be reported');
  }
}

const MAX_FAILURE_CHARS = 2_000;

function errorOf(result: Extract<CycleResult, { kind: 'failed' | 'timed_out' }>): Error {
  return result.kind === 'failed' ? toError(result.error) : new Error(timeoutText(result.seconds));
}

function timeoutText(seconds: number): string {
  const shown = Number.isInteger(seconds) ? seconds.toFixed(1) : String(seconds);
  return `The cycle took longer than allowed (max_cycle_seconds=${shown}).`;
}

function failureText(env: RoomEnvironment, result: Extract<CycleResult, { kind: 'failed' | 'timed_out' }>): string {
  const error = errorOf(result);
  const text = error.message.trim() || error.constructor.name || error.name;
  return env.redact(text).slice(0, MAX_FAILURE_CHARS);
}
