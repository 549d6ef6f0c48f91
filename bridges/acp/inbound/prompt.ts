import type { PromptResponse } from '@agentclientprotocol/sdk';
import type { CancelTimer } from '../../../src/base/clock.js';
import { ApiError } from '../../../src/base/band-errors.js';
import { isGatewayError, type GatewayError } from '../../../src/base/errors.js';
import type { BandAccess } from '../band.js';
import { composePost, contextBlock, titleOf } from '../convert.js';
import { AcpFault, platformFault } from '../errors.js';
import { findPerson, spell, toPerson, type Person } from '../roster.js';
import { cancelledResponse, TurnCancelled, type Job } from '../session/prompt-queue.js';
import type { Session } from '../session/session.js';
import type { SessionDeps } from '../session/sessions.js';
import { meta, sayUpdate, userUpdates } from '../session/updates.js';
import { lookAtDelivery, watchDelivery } from './delivery.js';
import { listPeople, routePrompt, type LocalReason } from './route.js';
import type { Turn, TurnEnd } from './turn.js';

const FIRST_WAITING_NOTE_MS = 30_000;
const NEXT_WAITING_NOTE_MS = 60_000;
const LINK_CHECK_MS = 1_000;
const LINK_NOTE_MS = 10_000;

interface Progress {
  delivered: boolean;
  messageId?: string;
  recipients: string[];
  replied: string[];
  pending: string[];
}

/** A prompt that cannot be posted as routed: the person is told here. */
class AnsweredHere extends Error {
  readonly reason: LocalReason;
  constructor(reason: LocalReason, text: string) {
    super(text);
    this.reason = reason;
  }
}

/**
 * One prompt: wait for Band → decide whom it is for → invite who is missing → post → wait for answers → one response.
 *
 * @throws {AcpFault} for everything that ends a prompt with an error
 */
export async function runPrompt(session: Session, job: Job, deps: SessionDeps): Promise<PromptResponse> {
  const progress: Progress = { delivered: false, recipients: [], replied: [], pending: [] };
  const { signal } = job.cancel;
  try {
    const access = await deps.gate.ready(signal);
    await session.flushPushes(signal);
    const participants = await session.people.read(access, signal);
    const known = await deps.roster.list(access.rest, signal).catch(() => deps.roster.known);
    signal.throwIfAborted();
    const route = routePrompt({
      prompt: job.prompt,
      commands: session.commands(),
      participants,
      roster: known.filter(({ id }) => id !== access.self.id),
      target: session.choices.target,
      modePeer: session.modePeer,
      peers: deps.options.peers,
      fallback: deps.options.fallbackRouting,
    });
    switch (route.kind) {
      case 'local':
        throw new AnsweredHere(route.reason, route.text);
      case 'built-in':
        throw new AnsweredHere('command', await runBuiltIn(route.name, route.args, session, access, deps, signal));
      case 'post':
        return await postAndWait(session, job, deps, access, route.recipients, route.text, progress);
    }
  } catch (error) {
    if (error instanceof AnsweredHere) {
      job.attachment.send(sayUpdate(error.message));
      return { stopReason: 'end_turn', _meta: meta({ delivered: false, reason: error.reason }) };
    }
    if (signal.aborted) return cancelledResponse({ ...progress });
    if (isGatewayError(error, 'BAND_NOT_FOUND')) {
      throw new AcpFault('unknown_session', { sessionId: job.attachment.sessionId }, { cause: error });
    }
    throw error;
  }
}

async function postAndWait(
  session: Session,
  job: Job,
  deps: SessionDeps,
  access: BandAccess,
  recipients: readonly Person[],
  text: string,
  progress: Progress,
): Promise<PromptResponse> {
  const { signal } = job.cancel;
  await inviteMissing(session, access, recipients, deps, signal);
  progress.recipients = recipients.map(spell);
  progress.pending = progress.recipients;
  const turn = session.openTurn(recipients);
  const onCancel = () => {
    turn.finish({ kind: 'cancelled' });
  };
  signal.addEventListener('abort', onCancel, { once: true });
  let mayBePosted = false;
  try {
    const content = composePost({
      handles: recipients.flatMap(({ handle }) => (handle === null ? [] : [handle])),
      text,
      attachments: job.prompt.attachments,
      context: contextFor(session, deps),
    });
    signal.throwIfAborted();
    mayBePosted = true;
    const messageId = await post(session, access, recipients, content, deps, signal).catch((error: unknown) => {
      // Only what was certainly refused leaves no answers to come.
      mayBePosted = !isGatewayError(error) || !error.undelivered;
      throw error;
    });
    progress.delivered = true;
    progress.messageId = messageId;
    session.contextDue = false;
    deps.index.touch(session.roomId, { updatedAt: new Date(deps.clock.now()).toISOString() });
    echo(session, job, messageId);
    turn.posted();
    const end = await waitForEnd(session, deps, access, turn, messageId);
    progress.replied = turn.replied;
    progress.pending = turn.pending;
    mayBePosted = true;
    return answer(end, turn, progress, deps);
  } finally {
    signal.removeEventListener('abort', onCancel);
    session.closeTurn(turn);
    if (mayBePosted) {
      const expiresAt = deps.clock.now() + deps.options.turn.idleTimeoutMs;
      for (const { id } of turn.owing) session.debts.add(id, expiresAt);
    }
    if (progress.delivered && session.titleDue) retitle(session, text, access, deps);
    if (signal.aborted && progress.delivered && deps.options.cancelNotice === 'message') {
      noticeOfCancel(session, access, recipients, deps);
    }
  }
}

function answer(end: TurnEnd, turn: Turn, progress: Progress, deps: SessionDeps): PromptResponse {
  switch (end.kind) {
    case 'ended':
      return { stopReason: 'end_turn', _meta: meta({ ...progress }) };
    case 'cancelled':
      throw new TurnCancelled();
    case 'failed':
      throw new AcpFault('turn_failed', { recipients: progress.recipients });
    case 'broken':
      throw new AcpFault(end.reason, { recipients: progress.recipients });
    case 'timeout': {
      const seconds = Math.round(Math.max(deps.options.turn.idleTimeoutMs, end.waitedMs) / 1_000);
      throw new AcpFault(
        'turn_timeout',
        { waitingFor: turn.pending, waitedMs: end.waitedMs },
        {
          text: `Internal error: no reply from ${turn.pending.map((handle) => `@${handle}`).join(', ')} for ${seconds} s`,
        },
      );
    }
  }
}

/** Waits for the turn, looking at delivery states and telling the person now and then that nobody answered yet. */
async function waitForEnd(
  session: Session,
  deps: SessionDeps,
  access: BandAccess,
  turn: Turn,
  messageId: string,
): Promise<TurnEnd> {
  const looks = new AbortController();
  const watch =
    deps.options.deliveryPoll === 'off' || turn.isOver
      ? null
      : watchDelivery({
          clock: deps.clock,
          support: deps.deliverySupport,
          look: () => lookAtDelivery(access.rest, session.roomId, messageId, session.tail, looks.signal),
          // Peers may be known to have finished while their words are still on the way, as after a lost connection:
          // what the room holds is shown before the turn may end. The runtime's own delivery then finds it shown.
          onStates: async (states, texts) => {
            for (const row of texts) await session.receive(row, access.self, looks.signal);
            turn.delivery(states);
          },
          onError: (error) => {
            // A cursor that Band does not know any more: the next look reads from the beginning.
            if (isGatewayError(error, 'BAND_INVALID')) session.tail.cursor = undefined;
            deps.log.debug({ err: error, roomId: session.roomId }, 'delivery states could not be read');
          },
        });
  if (watch)
    turn.onText(() => {
      watch.hurry();
    });
  let cancelNote = deps.clock.after(FIRST_WAITING_NOTE_MS, function note() {
    if (turn.isOver || !turn.isSilent) return;
    session.notice('info', `Waiting for ${turn.pending.map((handle) => `@${handle}`).join(', ')}`);
    cancelNote = deps.clock.after(NEXT_WAITING_NOTE_MS, note);
  });
  const cancelLinkCheck = tellOfLostLink(session, deps);
  try {
    return await turn.end;
  } finally {
    cancelNote();
    cancelLinkCheck();
    watch?.stop();
    looks.abort();
  }
}

/** A turn outlives a lost connection; after a while the person hears why nothing comes. */
function tellOfLostLink(session: Session, deps: SessionDeps): CancelTimer {
  let told = false;
  return deps.clock.every(LINK_CHECK_MS, () => {
    const downForMs = deps.link.downForMs();
    if (downForMs === 0) told = false;
    if (told || downForMs < LINK_NOTE_MS) return;
    told = true;
    session.notice('warning', 'The connection to Band is down; answers will come once it is back.');
  });
}

function contextFor(session: Session, deps: SessionDeps): string | null {
  const wanted =
    deps.options.contextPreamble === 'always' || (deps.options.contextPreamble === 'first' && session.contextDue);
  return wanted ? contextBlock(session.client, session.cwd, session.mcpServers) : null;
}

/** @returns the message's id */
async function post(
  session: Session,
  access: BandAccess,
  recipients: readonly Person[],
  content: string,
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<string> {
  const mentions = recipients.map(({ id, handle, name }) => ({ id, ...(handle === null ? {} : { handle }), name }));
  const send = async () => (await access.rest.postMessage(session.roomId, { content, mentions }, { signal })).id;
  try {
    return await send();
  } catch (error) {
    if (isGatewayError(error, 'BAND_INVALID')) {
      // Somebody may have left since the room was last read; the refused message did not go out.
      const present = new Set((await session.people.read(access, signal, true)).map(({ id }) => id));
      if (recipients.some(({ id }) => !present.has(id))) {
        await inviteMissing(session, access, recipients, deps, signal);
        return send();
      }
    }
    if (isGatewayError(error) && isUnconfirmed(error)) {
      throw new AcpFault('post_unconfirmed', { recipients: recipients.map(spell) }, { cause: error });
    }
    throw error;
  }
}

/** 503 says that nothing happened, and was repeated already; behind any other error of the server the post may be. */
function isUnconfirmed({ code, cause }: GatewayError): boolean {
  if (code === 'BAND_UNAVAILABLE') return cause instanceof ApiError && cause.statusCode !== 503;
  return code === 'BAND_TIMEOUT' || code === 'BAND_CONNECTION_LOST' || code === 'BAND_BAD_ANSWER';
}

async function inviteMissing(
  session: Session,
  access: BandAccess,
  recipients: readonly Person[],
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<void> {
  const missing = recipients.filter(({ id }) => !session.people.here.some((one) => one.id === id));
  for (const person of missing) {
    if (!deps.options.autoInvite) {
      throw new AnsweredHere(
        'invite_refused',
        `@${spell(person)} is not in this room. /invite ${spell(person)} adds them.`,
      );
    }
    await invite(session, access, person, signal);
  }
}

/** Adds somebody to the room; somebody already there is fine. */
export async function invite(
  session: Session,
  access: BandAccess,
  person: Person,
  signal: AbortSignal | null,
): Promise<void> {
  try {
    const participantId = person.id;
    const added = await access.rest.addParticipant(
      session.roomId,
      { participantId, role: 'member' },
      { signal: signal ?? undefined },
    );
    session.people.joined({ ...person, ...pickKnown(toPerson(added)) });
  } catch (error) {
    if (isGatewayError(error, 'BAND_CONFLICT')) {
      session.people.joined(person);
      return;
    }
    if (isGatewayError(error, 'BAND_FORBIDDEN') || isGatewayError(error, 'BAND_NOT_FOUND')) {
      const why =
        platformFault(error).reason === 'plan_limit' ? 'the plan allows no more participants' : 'Band refused it';
      throw new AnsweredHere('invite_refused', `@${spell(person)} could not be added to the room: ${why}.`);
    }
    throw error;
  }
}

function pickKnown(person: Person): Partial<Person> {
  return Object.fromEntries(Object.entries(person).filter(([, value]) => value !== null));
}

/** The other editors of this session see what was asked here. */
function echo(session: Session, job: Job, messageId: string): void {
  for (const attachment of session.attachments) {
    if (attachment.editor === job.attachment.editor) continue;
    for (const update of userUpdates(job.prompt.text, messageId, { echo: true })) attachment.send(update);
  }
}

function retitle(session: Session, text: string, { rest }: BandAccess, deps: SessionDeps): void {
  session.titleDue = false;
  const title = titleOf(text);
  if (deps.options.titleMode !== 'first-prompt' || title === null) return;
  deps.background.run(async () => {
    // The answer to the prompt goes first.
    await new Promise((resolve) => setImmediate(resolve));
    await rest.renameChat(session.roomId, title);
    const updatedAt = new Date(deps.clock.now()).toISOString();
    deps.index.touch(session.roomId, { title, updatedAt });
    session.broadcast({ sessionUpdate: 'session_info_update', title, updatedAt });
  });
}

function noticeOfCancel(
  session: Session,
  { rest }: BandAccess,
  recipients: readonly Person[],
  deps: SessionDeps,
): void {
  const mentions = recipients.map(({ id, handle, name }) => ({ id, ...(handle === null ? {} : { handle }), name }));
  deps.background.run(async () => {
    await rest.postMessage(session.roomId, {
      content: `${recipients.map((person) => `@${spell(person)}`).join(' ')} The request above was cancelled; please stop.`,
      mentions,
    });
  });
}

async function runBuiltIn(
  name: 'peers' | 'invite' | 'room' | 'help',
  args: string,
  session: Session,
  access: BandAccess,
  deps: SessionDeps,
  signal: AbortSignal,
): Promise<string> {
  switch (name) {
    case 'peers': {
      const here = session.people.here;
      const away = deps.roster.known.filter(({ id }) => id !== access.self.id && !here.some((one) => one.id === id));
      return [
        `In this room:\n${listPeople(here) || '- nobody yet'}`,
        `You may invite:\n${listPeople(away) || '- nobody else'}`,
      ].join('\n\n');
    }
    case 'invite': {
      if (args === '') return 'Usage: /invite <peer> — a handle, slug or name. /peers lists them.';
      const found = findPerson(
        session.people.reachable.filter(({ id }) => id !== access.self.id),
        args,
      );
      if (found.kind === 'none')
        throw new AnsweredHere('peer_not_found', `There is no peer "${args}" that this agent knows.`);
      if (found.kind === 'many') {
        throw new AnsweredHere('peer_ambiguous', `"${args}" could be several peers:\n${listPeople(found.people)}`);
      }
      if (session.people.here.some(({ id }) => id === found.person.id))
        return `@${spell(found.person)} is already in the room.`;
      await invite(session, access, found.person, signal);
      return `@${spell(found.person)} was added to the room.`;
    }
    case 'room': {
      const room = await access.rest.getChat(session.roomId, { signal });
      return `Room ${session.roomId}\nTitle: ${room.title ?? 'none'}\nParticipants:\n${listPeople([access.self, ...session.people.here])}`;
    }
    case 'help':
      return [
        'A message goes to whom you name: a slash command of a peer at the start, or @peer anywhere in the text.',
        'Otherwise to the "Send to" option, the mode\'s peer, the configured peers, or everyone in the room.',
        'Commands: /peers, /invite <peer>, /room, /help.',
      ].join('\n');
  }
}
