import { withDeadline } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { type GatewayError, isGatewayError, toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { isOutsideBrain } from '../../../src/core/outside.js';
import type { AgentToolsProtocol } from '../../../src/core/tools.js';
import { Turn } from '../../../src/core/turn.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SeenKeys } from '../../../src/store/seen.js';
import { messageIdentity, slackKey } from '../conversation.js';
import { messageToMarkdown } from '../convert/index.js';
import { personLabel } from '../directory.js';
import type { Installation } from '../installations.js';
import type { MentionRule, SlackOut, ThreadRef } from '../outbound/port.js';
import type { SlackEventDelivery } from '../parse.js';
import type { SlackEvent } from '../parse-event.js';
import type { SlackMessage } from '../messages.js';
import type { SlackOptions } from '../settings.js';
import type { SlackIdentity } from '../web-methods.js';
import type { Binding, Bindings } from './bindings.js';
import { contextNote, mirrorEvent, toBrainMessage, type SlackTurnFacts } from './brain-message.js';
import { withProgress, withSlackTools } from './brain-tools.js';
import type { PendingChanges } from './changes.js';
import type { Controls } from './controls.js';
import type { FilesIn } from './files-in.js';
import { isBot, judge } from './gate.js';
import { readThread } from './history.js';
import type { SlackRecord } from './records.js';
import type { ThreadState, Threads } from './threads.js';
import type { TurnRecords } from './turn-record.js';
import type { TurnEnd, TurnRunner } from './turn.js';

export interface MessageDeps {
  readonly options: SlackOptions;
  readonly inner: FrameworkAdapter;
  readonly agentName: () => string;
  readonly rest: BandRest;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly changes: PendingChanges;
  /** Messages that had, or are past, their turn. */
  readonly claims: SeenKeys;
  readonly turns: TurnRecords;
  readonly runner: TurnRunner;
  readonly controls: Controls;
  readonly out: SlackOut;
  readonly filesIn: (installation: Installation) => FilesIn;
  /** The room's own tools for one turn. */
  readonly roomTools: (roomId: string, turn: Turn) => AgentToolsProtocol;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly newReference: () => string;
}

export interface MessageAt {
  readonly installation: Installation;
  readonly identity: SlackIdentity;
  readonly delivery: SlackEventDelivery;
  readonly event: Extract<SlackEvent, { kind: 'message' }>;
}

type Record_ = QueueRecord<SlackRecord>;

const PAUSED_LOOK_MS = 3_600_000;
const BAND_LOOKS_MS = [2_000, 8_000, 30_000] as const;
const TELL_BAND_AFTER_MS = 30_000;
const TOLD_BUCKET_MS = 3_600_000;
const ROOM_CALL_MS = 30_000;

/**
 * One message record: seen? → changed meanwhile? → gate → paused? → room → what the brain is told → turn → its end.
 * Nothing is lost on the way: an outage makes the record wait, a crash makes it run again.
 */
export function createMessageHandler(
  deps: MessageDeps,
): (at: MessageAt, record: Record_, signal: AbortSignal) => Promise<Outcome> {
  const { options, inner, bindings, threads, changes, claims, turns, runner, controls, out, clock, log } = deps;
  const dropped = deps.metrics.counter('slack_events_dropped_total', 'Messages that made no turn', ['app', 'reason']);
  const relays = isOutsideBrain(inner);
  const bandTries = new Map<string, number>();

  const handle = async (at: MessageAt, record: Record_, signal: AbortSignal): Promise<Outcome> => {
    const { installation, identity, delivery, event } = at;
    const { slug } = installation.app;
    const team = delivery.teamId ?? identity.teamId;
    const claim = messageIdentity(slug, team, event.channel, event.message.ts);
    if (!record.body.again && (await claims.has(claim))) return drop(slug, 'seen');
    const message = await changes.latest(claim, event.message);
    if (!message) return drop(slug, 'deleted', [changes.forget(claim)]);

    const thread: ThreadRef = {
      slug,
      team,
      channel: event.channel,
      threadTs: message.thread_ts ?? message.ts,
      askerId: message.user ?? null,
    };
    const key = slackKey(thread);
    const state = await threads.get(key);
    const verdict = judge(await factsOf(at, message, state, bindings.find(thread) !== null), {
      ...options,
      allow: installation.app.allow,
      deny: installation.app.deny,
    });
    if (verdict.kind === 'dropped') {
      if (verdict.reason === 'not_addressed' || verdict.reason === 'for_somebody_else' || verdict.reason === 'bot') {
        if (bindings.find(thread)) await threads.note(key, noteOf(message), clock.now());
      }
      if (verdict.told) await tellRefused(thread, message, verdict.reason);
      return drop(slug, verdict.reason);
    }
    if (state.paused) return await holdPaused(thread, record);
    const known = await threads.note(key, noteOf(message), clock.now());

    let binding: Binding;
    let isNew: boolean;
    try {
      ({ binding, isNew } = await withDeadline(clock, ROOM_CALL_MS, signal, (within) =>
        bindings.open(
          {
            ...thread,
            enterpriseId: delivery.enterpriseId,
            channelType: event.channelType,
            userId: message.user ?? null,
          },
          within,
        ),
      ));
    } catch (error) {
      return await withoutRoom(error, thread, record, signal);
    }
    bandTries.delete(record.id);
    const outcome = await takeTurn({ at, message, thread, binding, isNew, people: known.people }, record, signal);
    if (outcome.kind !== 'done' && outcome.kind !== 'dead') return outcome;
    const marks = record.body.again ? [] : claims.mark(claim);
    return {
      ...outcome,
      changes: [...(outcome.changes ?? []), ...marks, changes.forget(claim)],
      committed: () => {
        claims.marked();
        void turns.forget(record.id).catch((error: unknown) => {
          log.warn({ err: error }, 'a finished turn could not be forgotten');
        });
      },
    };
  };

  const factsOf = async (at: MessageAt, message: SlackMessage, state: ThreadState, isBound: boolean) => {
    const { installation, identity, delivery, event } = at;
    const rules = [...installation.app.allow, ...installation.app.deny];
    const asksWho = rules.includes('guests') || rules.includes('ext');
    const person = asksWho && message.user ? await installation.directory.user(message.user) : null;
    return {
      message,
      channel: event.channel,
      channelType: event.channelType ?? (event.channel.startsWith('D') ? ('im' as const) : null),
      mention: event.mention,
      own: identity,
      ownAppId: delivery.appId,
      authorTeam: message.user_team ?? message.team ?? delivery.authorTeamId,
      isGuest: person?.isGuest ?? false,
      isStranger:
        person?.isStranger ?? (delivery.isExtShared && (message.user_team ?? identity.teamId) !== identity.teamId),
      isBound,
      isMuted: state.muted,
      hasOthers: state.otherBots || state.people.some((id) => id !== message.user),
      botRun: state.botRun,
    };
  };

  const drop = (slug: string, reason: string, ended: Extract<Outcome, { kind: 'done' }>['changes'] = []): Outcome => {
    dropped.inc({ app: slug, reason });
    log.debug({ app: slug, reason }, 'a Slack message made no turn');
    return { kind: 'done', changes: ended };
  };

  /** Once an hour for one person in one channel, as the settings say (S-068). */
  const tellRefused = async (thread: ThreadRef, message: SlackMessage, reason: string): Promise<void> => {
    const { user } = message;
    const id = `${reason}:${thread.channel}:${user ?? '-'}:${Math.floor(clock.now() / TOLD_BUCKET_MS)}`;
    if (reason === 'bot_cap') {
      const markdown = 'Other bots have written here many times in a row. I go on when a person writes.';
      await out.reply(thread, { id: `${reason}:${message.ts}`, markdown, kind: 'notice' });
    } else if (options.denyReply === 'reaction') await out.react(thread, message.ts, 'no_entry_sign', true);
    else if (options.denyReply === 'ephemeral' && user) {
      await out.ephemeral(thread, user, { id, text: 'I am not set up to answer you here.' });
    }
  };

  const holdPaused = async (thread: ThreadRef, record: Record_): Promise<Outcome> => {
    if (thread.askerId !== null) {
      await out.ephemeral(thread, thread.askerId, {
        id: `held:${record.id}`,
        text: 'This conversation is stopped. Your message waits until somebody resumes it.',
        buttons: [await controls.button('resume', thread)],
      });
    }
    return { kind: 'wait', afterMs: PAUSED_LOOK_MS };
  };

  /** Band does not give a room: the message waits for it, and the person hears of it after half a minute. */
  const withoutRoom = async (
    error: unknown,
    thread: ThreadRef,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    if (signal.aborted) throw error;
    if (!isGatewayError(error)) throw error;
    if (!isOutage(error)) {
      const markdown = `I could not open a conversation for this: ${error.message}`;
      await out.reply(thread, { id: `${record.id}:no-room`, markdown, kind: 'error' });
      return { kind: 'dead', code: error.code, reason: error.message };
    }
    const tries = (bandTries.get(record.id) ?? 0) + 1;
    bandTries.set(record.id, tries);
    log.warn({ err: error, tries }, 'Band gave no room for a Slack thread: the message waits');
    if (clock.now() - record.putAt >= TELL_BAND_AFTER_MS) {
      const markdown = 'I am having trouble reaching Band. Your message is kept and goes on as soon as that works.';
      await out.reply(thread, { id: `${record.id}:no-band`, markdown, kind: 'notice' });
    }
    return { kind: 'wait', afterMs: BAND_LOOKS_MS[Math.min(tries, BAND_LOOKS_MS.length) - 1] ?? BAND_LOOKS_MS[2] };
  };

  interface TurnAt {
    readonly at: MessageAt;
    readonly message: SlackMessage;
    readonly thread: ThreadRef;
    readonly binding: Binding;
    readonly isNew: boolean;
    readonly people: readonly string[];
  }

  const takeTurn = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<Outcome> => {
    const { thread, binding, message } = where;
    if (record.maybeDelivered && (await turns.hasShown(record.id))) {
      const markdown = 'I was interrupted while answering this.';
      const retry = await controls.button('retry', thread, record.body);
      await out.reply(thread, { id: `${record.id}:cut-off`, markdown, kind: 'error', buttons: [retry] });
      return { kind: 'done' };
    }
    const key = slackKey(thread);
    const running = runner.begin(key, { by: message.user ?? '', ts: message.ts }, signal);
    const { ackReaction } = options;
    try {
      if (ackReaction !== undefined) await out.react(thread, message.ts, ackReaction, true);
      const end = await runTurn(where, record, running.signal);
      return await settle(end, thread, binding, record, signal);
    } finally {
      running.end();
      if (ackReaction !== undefined) await out.react(thread, message.ts, ackReaction, false);
    }
  };

  const runTurn = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<TurnEnd> => {
    const { at, message, thread, binding, isNew, people } = where;
    const { installation, identity } = at;
    const facts = await brainFacts(where, record, signal);
    if (!relays && options.mirrorSlackContext) await mirror(facts, signal);
    const isFollowUp =
      message.thread_ts !== null && message.thread_ts !== undefined && message.thread_ts !== message.ts;
    const history =
      relays || !isFollowUp
        ? []
        : await readThread(
            installation,
            identity,
            deps.agentName(),
            { channel: thread.channel, threadTs: thread.threadTs, before: message.ts },
            log,
            signal,
          );
    const turn = new Turn({ signal, log });
    const withSlack = withSlackTools(deps.roomTools(binding.roomId, turn), {
      out,
      thread,
      turnId: record.id,
      mentions: mentionRule(options, thread, people),
      show: () => turns.show(record.id),
      readFile: async (fileId, offset) =>
        (await deps.filesIn(installation).read(fileId, offset)) ?? 'Error: this file was not taken, or is gone',
    });
    const progress =
      options.showToolProgress && !relays
        ? out.progress(thread, record.id, [
            await controls.button('stop', thread),
            await controls.button('interrupt', thread),
          ])
        : null;
    const status = relays ? null : out.status(thread);
    status?.set();
    try {
      return await runner.run({
        key: slackKey(thread),
        slug: thread.slug,
        message: toBrainMessage(facts, clock.now()),
        tools: progress ? withProgress(withSlack, progress) : withSlack,
        turn,
        history,
        note: contextNote(facts.channelLabel, facts.bandHandle),
        isNew,
        roomId: binding.roomId,
        signal,
      });
    } finally {
      status?.clear();
      await progress?.finish();
    }
  };

  const brainFacts = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<SlackTurnFacts> => {
    const { at, message, thread, binding } = where;
    const { directory } = at.installation;
    const own = { userId: at.identity.botUserId, teamId: at.identity.teamId };
    const [names, sender, channel, channelLabel, files] = await Promise.all([
      directory.namesFor(message, own),
      message.user ? directory.user(message.user) : null,
      directory.channel(thread.channel),
      directory.channelLabel(thread.channel),
      deps.filesIn(at.installation).take(message, signal),
    ]);
    return {
      binding,
      message,
      markdown: [messageToMarkdown(message, names), files.inline].filter(Boolean).join('\n\n'),
      sender,
      channelLabel,
      channelName: channel?.name ?? null,
      channelType: at.event.channelType ?? channel?.kind ?? null,
      retryNum: record.body.retryNum,
      files: files.listed.map((file) => ({ ...file })),
      bandHandle: message.user ? (options.identity.map[message.user] ?? null) : null,
      acceptedAt: record.putAt,
      maybeDelivered: record.maybeDelivered,
    };
  };

  /** The copy in the room is for people to read: its failure changes nothing. */
  const mirror = async (facts: SlackTurnFacts, signal: AbortSignal): Promise<void> => {
    const { content, metadata } = mirrorEvent(facts, personLabel(facts.sender));
    try {
      await deps.rest.postEvent(facts.binding.roomId, { content, messageType: 'thought', metadata }, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ err: error, roomId: facts.binding.roomId }, 'a Slack message could not be mirrored');
    }
  };

  /** What the end of a turn means for its record, its thread and its room. */
  const settle = async (
    end: TurnEnd,
    thread: ThreadRef,
    binding: Binding,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    switch (end.kind) {
      case 'replied':
      case 'no_reply':
      case 'settled':
        return { kind: 'done' };
      case 'silent':
        if (options.silentTurn === 'notice') {
          const markdown = 'I have nothing to add to this.';
          await out.reply(thread, { id: `${record.id}:silent`, markdown, kind: 'notice' });
        }
        return { kind: 'done' };
      case 'cut':
        return await settleCut(end, thread, record, signal);
      case 'failed':
        return await settleFailed(end.error, thread, binding, record);
    }
  };

  const settleCut = async (
    { cut }: Extract<TurnEnd, { kind: 'cut' }>,
    thread: ThreadRef,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    switch (cut.reason) {
      case 'shutdown':
        throw toError(signal.reason ?? cut);
      case 'timeout':
        return await giveUp('This took too long, so I stopped.', cut, thread, record);
      case 'stop':
        // Nothing of it was shown: it waits with the others and runs again on resume.
        if (!(await turns.hasShown(record.id))) return { kind: 'wait', afterMs: PAUSED_LOOK_MS };
        return { kind: 'done' };
      case 'interrupt':
      case 'deleted':
        return { kind: 'done' };
    }
  };

  const settleFailed = async (error: Error, thread: ThreadRef, binding: Binding, record: Record_): Promise<Outcome> => {
    if (isGatewayError(error, 'BAND_ROOM_STOPPED')) {
      await threads.change(slackKey(thread), (state) => ({ ...state, paused: true }));
      return await holdPaused(thread, record);
    }
    if (isGatewayError(error, 'BAND_NOT_FOUND')) {
      await bindings.forget(binding);
      const markdown = 'The room behind this conversation is gone. I go on in a new one.';
      await out.reply(thread, { id: `${record.id}:new-room`, markdown, kind: 'notice' });
      return { kind: 'wait', afterMs: 0 };
    }
    if (isGatewayError(error) && isOutage(error) && !(await turns.hasShown(record.id))) throw error;
    return await giveUp('I could not finish this.', error, thread, record, binding);
  };

  const giveUp = async (
    text: string,
    error: Error,
    thread: ThreadRef,
    record: Record_,
    binding: Binding | null = bindings.find(thread),
  ): Promise<Outcome> => {
    const reference = deps.newReference();
    log.error({ err: error, reference, app: thread.slug, roomId: binding?.roomId }, 'a Slack turn failed');
    await out.reply(thread, {
      id: `${record.id}:failed`,
      markdown: `${text} Reference: ${reference}`,
      kind: 'error',
      buttons: [await controls.button('retry', thread, record.body)],
    });
    if (binding) {
      const metadata = { slack_ref: reference, slack_error: isGatewayError(error) ? error.code : error.name };
      await deps.rest
        .postEvent(binding.roomId, { content: text, messageType: 'error', metadata })
        .catch((failure: unknown) => {
          log.warn({ err: failure, roomId: binding.roomId }, 'the room could not be told of a failed Slack turn');
        });
    }
    return { kind: 'dead', code: isGatewayError(error) ? error.code : 'BRAIN_FAILED', reason: error.message };
  };

  return handle;
}

/** Faults that pass by themselves, or once somebody mends the credentials: the message waits for that. */
function isOutage(error: GatewayError): boolean {
  return (
    (error.retryable && (error.code.startsWith('BAND_') || error.code === 'DEADLINE_EXCEEDED')) ||
    error.code === 'BAND_UNAUTHORIZED'
  );
}

function mentionRule(options: SlackOptions, thread: ThreadRef, people: readonly string[]): MentionRule {
  const { outbound, allowBroadcast, allowUserGroups } = options.mentions;
  return {
    users: outbound === 'thread' ? people : outbound,
    groups: allowUserGroups,
    broadcast: allowBroadcast,
    channels: [thread.channel],
  };
}

const noteOf = (message: SlackMessage) => ({ ts: message.ts, user: message.user ?? null, isBot: isBot(message) });
