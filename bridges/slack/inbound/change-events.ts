import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SeenKeys } from '../../../src/store/seen.js';
import { messageIdentity, slackKey, type SlackThread } from '../conversation.js';
import { messageToMarkdown } from '../convert/index.js';
import { personLabel } from '../directory.js';
import type { Installation } from '../installations.js';
import type { SlackMessage } from '../messages.js';
import type { SlackEventDelivery } from '../parse.js';
import type { SlackEvent } from '../parse-event.js';
import type { SlackOptions } from '../settings.js';
import type { SlackIdentity } from '../web-methods.js';
import type { Accept } from './accept.js';
import type { Bindings } from './bindings.js';
import { mirrorEvent } from './brain-message.js';
import { isRealEdit, type PendingChanges } from './changes.js';
import { isBot, isOwn, mentions } from './gate.js';
import type { SlackRecord } from './records.js';
import type { ThreadPast } from './thread-past.js';
import { TurnCut, type TurnRunner } from './turn.js';

export interface ChangeAt {
  readonly installation: Installation;
  readonly identity: SlackIdentity;
  readonly delivery: SlackEventDelivery;
  readonly event: Extract<SlackEvent, { kind: 'edited' | 'deleted' }>;
}

export interface ChangeDeps {
  readonly options: SlackOptions;
  readonly rest: BandRest;
  readonly bindings: Bindings;
  readonly changes: PendingChanges;
  readonly past: ThreadPast;
  readonly claims: SeenKeys;
  readonly runner: TurnRunner;
  readonly accept: Accept;
  /** Messages that wait in a thread, the one that runs included. */
  readonly waiting: (thread: SlackThread) => number;
  readonly clock: Clock;
  readonly log: Logger;
}

export type ChangeHandler = (at: ChangeAt, record: QueueRecord<SlackRecord>, signal: AbortSignal) => Promise<Outcome>;

const DONE: Outcome = { kind: 'done' };
/** How long an edit waits for the message it is an edit of, when the two came in the wrong order. */
const MESSAGE_WAIT_MS = 10_000;

/** Edits and deletions by people: what waits is taken as it now stands, what runs is cut where that is set (S-150 to S-153). */
export function createChangeHandler(deps: ChangeDeps): ChangeHandler {
  const { options, changes, claims, runner, bindings } = deps;

  return async (at, record, signal) => {
    const { installation, identity, delivery, event } = at;
    const { slug } = installation.app;
    const team = delivery.teamId ?? identity.teamId;
    const author = event.kind === 'edited' ? event.message : event.previous;
    const changedTs = event.kind === 'edited' ? event.message.ts : event.ts;
    // Our own progress message is edited all the time, and is no part of the past.
    const own = author !== null && isOwn(author, identity, delivery.appId);
    if (!own)
      deps.past.forget(slackKey({ slug, team, channel: event.channel, threadTs: author?.thread_ts ?? changedTs }));
    if (own || (author && isBot(author))) return DONE;

    const claim = messageIdentity(slug, team, event.channel, changedTs);
    const thread: SlackThread = {
      slug,
      team,
      channel: event.channel,
      threadTs: author?.thread_ts ?? changedTs,
    };
    return event.kind === 'edited'
      ? await edited(at, event, claim, thread, record, signal)
      : await deleted(at, event, claim, thread, signal);
  };

  async function edited(
    at: ChangeAt,
    event: Extract<SlackEvent, { kind: 'edited' }>,
    claim: string,
    thread: SlackThread,
    record: QueueRecord<SlackRecord>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { message, previous } = event;
    if (!isRealEdit(message, previous)) return DONE;
    if (await claims.has(claim)) {
      await mirrorChange(at, message, thread, { slack_edited: true }, signal);
      if (options.edits === 'rerun') await handIn(at, message, event, true);
      return DONE;
    }
    const own = at.identity.botUserId;
    const mentionAdded = mentions(message, own) && !(previous && mentions(previous, own));
    // Whether it had its turn is forgotten by now; it is not answered a second time for an edit.
    if (!mentionAdded && Number(message.ts) * 1_000 < deps.clock.now() - options.dedupTtlHours * 3_600_000) {
      await mirrorChange(at, message, thread, { slack_edited: true }, signal);
      return DONE;
    }
    await changes.put(claim, message);
    if (runner.runsMessage(slackKey(thread), message.ts)) {
      if (options.edits === 'rerun') {
        runner.cut(slackKey(thread), new TurnCut('interrupt'));
        await handIn(at, message, event, true);
      }
      return DONE;
    }
    if (deps.waiting(thread) > 0) return DONE;
    // Neither waiting nor answered: it was not for us, or has not come yet. A mention that the edit added counts now.
    if (!mentionAdded && record.putAt + MESSAGE_WAIT_MS > deps.clock.now()) {
      return { kind: 'wait', afterMs: MESSAGE_WAIT_MS };
    }
    await handIn(at, message, event, false);
    return DONE;
  }

  async function deleted(
    at: ChangeAt,
    event: Extract<SlackEvent, { kind: 'deleted' }>,
    claim: string,
    thread: SlackThread,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (await claims.has(claim)) {
      if (event.previous) await mirrorChange(at, event.previous, thread, { slack_deleted: true }, signal);
      return DONE;
    }
    // Noted also where nothing waits: the message itself may still be on its way, and is not to be answered then.
    await changes.put(claim, null);
    // A turn of another message of the thread goes on: only the one that answers this message is cut.
    const key = slackKey(thread);
    if (options.deletes === 'cancel' && runner.runsMessage(key, event.ts)) runner.cut(key, new TurnCut('deleted'));
    return DONE;
  }

  /** Hands the message in as if it had just been written. */
  async function handIn(
    { installation, delivery, event: { channel, channelType } }: ChangeAt,
    message: SlackMessage,
    { eventTs }: { readonly eventTs: string },
    again: boolean,
  ): Promise<void> {
    await deps.accept({
      slug: installation.app.slug,
      transport: 'catch-up',
      key: `${installation.app.slug}:edit:${channel}:${message.ts}:${eventTs}`,
      again,
      payload: {
        type: 'event_callback',
        team_id: delivery.teamId,
        api_app_id: delivery.appId,
        event: { ...message, type: 'message', subtype: null, channel, channel_type: channelType },
      },
    });
  }

  async function mirrorChange(
    { installation, identity }: ChangeAt,
    message: SlackMessage,
    thread: SlackThread,
    extra: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const binding = bindings.find(thread);
    if (!binding || !options.mirrorSlackContext) return;
    const { directory } = installation;
    const names = await directory.namesFor(message, { userId: identity.botUserId, teamId: identity.teamId });
    const sender = message.user ? await directory.user(message.user) : null;
    const facts = {
      binding,
      message,
      markdown: messageToMarkdown(message, names),
      sender,
      channelLabel: await directory.channelLabel(thread.channel),
    };
    const { content, metadata } = mirrorEvent(facts, personLabel(sender), extra);
    try {
      await deps.rest.postEvent(binding.roomId, { content, messageType: 'thought', metadata }, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
      deps.log.warn({ err: error, roomId: binding.roomId }, 'a change in Slack could not be mirrored');
    }
  }
}
