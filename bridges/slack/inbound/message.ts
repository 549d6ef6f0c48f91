import { withDeadline } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, type GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import type { StoreChange } from '../../../src/store/port.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SeenKeys } from '../../../src/store/seen.js';
import { messageIdentity, slackKey } from '../conversation.js';
import type { Installation } from '../installations.js';
import type { SlackOut, ThreadRef } from '../outbound/port.js';
import type { SlackEventDelivery } from '../parse.js';
import type { SlackEvent } from '../parse-event.js';
import type { SlackMessage } from '../messages.js';
import type { SlackOptions } from '../settings.js';
import type { SlackIdentity } from '../web-methods.js';
import type { Binding, Bindings } from './bindings.js';
import type { PendingChanges } from './changes.js';
import { isBot, isUnknownSubtype, judge, mentions } from './gate.js';
import { historyEntry } from './history.js';
import type { SlackRecord } from './records.js';
import type { ThreadPast } from './thread-past.js';
import { botRunBefore, type ThreadState, type Threads } from './threads.js';
import { OnceAnHour } from './once-an-hour.js';
import { isOutage, isRefusal, type Outages } from './outage.js';
import type { TurnFlow } from './turn-flow.js';
import type { TurnRecords } from './turn-record.js';

export interface MessageDeps {
  readonly options: SlackOptions;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly past: ThreadPast;
  readonly agentName: () => string;
  readonly changes: PendingChanges;
  /** Messages that had, or are past, their turn. */
  readonly claims: SeenKeys;
  readonly turns: TurnRecords;
  readonly flow: TurnFlow;
  readonly outages: Outages;
  readonly out: SlackOut;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface MessageAt {
  readonly installation: Installation;
  readonly identity: SlackIdentity;
  readonly delivery: SlackEventDelivery;
  readonly event: Extract<SlackEvent, { kind: 'message' }>;
}

type Record_ = QueueRecord<SlackRecord>;

export interface MessageHandler {
  take(at: MessageAt, record: QueueRecord<SlackRecord>, signal: AbortSignal): Promise<Outcome>;
  /** The outcome of a message that was given up elsewhere, with the mark that it had its turn. */
  ended(at: MessageAt, outcome: Outcome, record: QueueRecord<SlackRecord>): Outcome;
}

/** Drops after which it is still remembered that somebody wrote. */
const NOTED: ReadonlySet<string> = new Set(['not_addressed', 'for_somebody_else', 'bot', 'bot_cap']);
const ROOM_CALL_MS = 30_000;

/**
 * One message record: seen? → changed meanwhile? → gate → paused? → room → what the brain is told → turn → its end.
 * Nothing is lost on the way: an outage makes the record wait, a crash makes it run again.
 */
export function createMessageHandler(deps: MessageDeps): MessageHandler {
  const { options, bindings, threads, changes, claims, turns, out, outages, clock, log } = deps;
  const dropped = deps.metrics.counter('slack_events_dropped_total', 'Messages that made no turn', ['app', 'reason']);
  const unknownKinds = deps.metrics.counter('slack_unknown_subtypes_total', 'Messages of a kind not known here', [
    'app',
  ]);

  const refusals = new OnceAnHour(clock);

  const handle = async (at: MessageAt, record: Record_, signal: AbortSignal): Promise<Outcome> => {
    const { installation, identity, delivery, event } = at;
    const { slug } = installation.app;
    const team = delivery.teamId ?? identity.teamId;
    const claim = messageIdentity(slug, team, event.channel, event.message.ts);
    await notePast(at, team);
    if (!record.body.again && (await claims.has(claim))) return droppedWith(slug, 'seen', [changes.forget(claim)]);
    // A mention comes as two events, and the other one is to see the message as it now stands too.
    const hasTwin = mentions(event.message, identity.botUserId);
    const drop = (reason: string) => droppedWith(slug, reason, hasTwin ? [] : [changes.forget(claim)]);
    const message = await changes.latest(claim, event.message);
    if (!message) return drop('deleted');

    const thread: ThreadRef = {
      slug,
      team,
      channel: event.channel,
      threadTs: message.thread_ts ?? message.ts,
      askerId: message.user ?? null,
    };
    const key = slackKey(thread);
    const state = await threads.get(key);
    let isBound = bindings.isBound(thread);
    // A reply that names nobody is for the agent where the thread has a room, which a fresh store does not know yet.
    if (!isBound && message.thread_ts && !event.mention) {
      try {
        isBound = (await bindings.look(thread, signal)) !== null;
      } catch (error) {
        if (signal.aborted || !isGatewayError(error) || !mayPass(error)) throw error;
        return await outages.wait(error, thread, record);
      }
    }
    const verdict = judge(await factsOf(at, message, state, isBound), {
      ...options,
      allow: installation.app.allow,
      deny: installation.app.deny,
    });
    if (verdict.kind === 'dropped') {
      if (NOTED.has(verdict.reason) && bindings.find(thread)) await threads.note(key, noteOf(message), clock.now());
      if (verdict.told) await tellRefused(thread, message, verdict.reason);
      return drop(verdict.reason);
    }
    await bindings.markReached(thread);
    if (isUnknownSubtype(message)) unknownKinds.inc({ app: slug });
    if (record.body.tooMany) {
      await tellFull(thread, claim);
      return ended(droppedWith(slug, 'thread_full', []), claim, record);
    }
    if (state.paused) return await deps.flow.hold(thread, record);
    const known = await threads.note(key, noteOf(message), clock.now());
    const held = await outages.held(thread);
    if (held) return held;

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
            askedAt: Number(message.ts) * 1_000,
          },
          within,
        ),
      ));
    } catch (error) {
      return ended(await withoutRoom(error, thread, record, signal), claim, record);
    }
    const latest = () => changes.latest(claim, message);
    const where = { at, message, latest, thread, binding, isNew, people: known.people };
    return ended(await deps.flow.take(where, record, signal), claim, record);
  };

  /** With the end of its record a message has had its turn. */
  const ended = (outcome: Outcome, claim: string, record: Record_): Outcome => {
    if (outcome.kind !== 'done' && outcome.kind !== 'dead') return outcome;
    outages.over(record);
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

  /** What is written in a thread whose past is kept becomes part of it. */
  const notePast = async ({ installation, identity, event }: MessageAt, team: string): Promise<void> => {
    const { channel, message, mention } = event;
    const threadTs = message.thread_ts ?? message.ts;
    const key = slackKey({ slug: installation.app.slug, team, channel, threadTs });
    if (!deps.past.has(key)) return;
    const entry = await historyEntry(message, installation, identity, deps.agentName(), { channel, threadTs });
    deps.past.note(key, entry, !mention);
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
      botRun: botRunBefore(state, message.ts),
    };
  };

  const droppedWith = (slug: string, reason: string, changesWithIt: readonly StoreChange[]): Outcome => {
    dropped.inc({ app: slug, reason });
    log.debug({ app: slug, reason }, 'a Slack message made no turn');
    return { kind: 'done', changes: changesWithIt };
  };

  const tellRefused = async (thread: ThreadRef, message: SlackMessage, reason: string): Promise<void> => {
    if (reason === 'bot_cap') {
      const markdown = 'Other bots have written here many times in a row. I go on when a person writes.';
      await out.reply(thread, { id: `${reason}:${message.ts}`, markdown, kind: 'notice' });
      return;
    }
    // Once an hour for one person in one channel, as the settings say (S-068).
    const { user } = message;
    const id = refusals.next([reason, thread.slug, thread.team, thread.channel, user ?? '-'].join(':'));
    if (id === null) return;
    if (options.denyReply === 'reaction') await out.react(thread, message.ts, 'no_entry_sign', true);
    else if (options.denyReply === 'ephemeral' && user) {
      await out.ephemeral(thread, user, { id, text: 'I am not set up to answer you here.' });
    }
  };

  const tellFull = async (thread: ThreadRef, claim: string): Promise<void> => {
    if (thread.askerId === null) return;
    const text =
      'Too many messages wait in this thread already, so I did not take this one. Please send it again later.';
    await out.ephemeral(thread, thread.askerId, { id: `full:${claim}`, text });
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
    if (!mayPass(error)) {
      const markdown = `I could not open a conversation for this: ${error.message}`;
      await out.reply(thread, { id: `${record.id}:no-room`, markdown, kind: 'error' });
      return { kind: 'dead', code: error.code, reason: error.message };
    }
    return await outages.wait(error, thread, record);
  };

  return {
    take: handle,
    ended({ installation, identity, delivery, event }, outcome, record) {
      const team = delivery.teamId ?? identity.teamId;
      return ended(outcome, messageIdentity(installation.app.slug, team, event.channel, event.message.ts), record);
    },
  };
}

/** Without a room nothing of the message is anywhere yet, so it can wait for whatever keeps it from one. */
const mayPass = (error: GatewayError): boolean => isOutage(error) || isRefusal(error);

const noteOf = (message: SlackMessage) => ({ ts: message.ts, user: message.user ?? null, isBot: isBot(message) });
