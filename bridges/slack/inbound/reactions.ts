import type { Logger } from '../../../src/base/log.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { slackKey } from '../conversation.js';
import { personLabel } from '../directory.js';
import type { Installation } from '../installations.js';
import type { SlackMessage } from '../messages.js';
import type { ThreadRef } from '../outbound/port.js';
import type { SlackEvent } from '../parse-event.js';
import type { ReactionMeaning } from '../settings.js';
import { readMessages, type SlackIdentity } from '../web-methods.js';
import type { Accept } from './accept.js';
import type { Bindings } from './bindings.js';
import type { Controls } from './controls.js';
import { isBot, isOwn } from './gate.js';
import type { SlackRecord } from './records.js';
import type { TurnRunner } from './turn.js';

export interface ReactionDeps {
  /** What each emoji means, by its name without colons. */
  readonly meanings: Readonly<Record<string, ReactionMeaning>>;
  readonly bindings: Bindings;
  readonly controls: Controls;
  readonly runner: TurnRunner;
  readonly accept: Accept;
  readonly rest: BandRest;
  readonly log: Logger;
}

type Reaction = Extract<SlackEvent, { kind: 'reaction' }>;

/** Somebody put an emoji on a message: in a bound thread some of them steer, or say what an answer was worth (S-155). */
export type ReactionHandler = (
  event: Reaction,
  place: Pick<ThreadRef, 'slug' | 'team'>,
  installation: Installation,
  identity: SlackIdentity,
  record: QueueRecord<SlackRecord>,
  signal: AbortSignal,
) => Promise<void>;

const MAX_QUOTED_CHARS = 120;

export function createReactions({
  meanings,
  bindings,
  controls,
  runner,
  accept,
  rest,
  log,
}: ReactionDeps): ReactionHandler {
  const known = new Map(Object.entries(meanings));

  return async (event, { slug, team }, installation, identity, record, signal) => {
    // A hand of another colour means the same.
    const meaning = event.added ? known.get(event.name.replace(/::skin-tone-\d$/, '')) : undefined;
    if (meaning === undefined || event.user === identity.botUserId) return;
    const { channel, ts } = event;
    if (!standsFor(slug, channel)) return;
    const { messages } = await readMessages(
      installation.client,
      { channel, ts, limit: 1, includeMetadata: true },
      { signal },
    );
    const message = messages.find((one) => one.ts === ts) ?? null;
    const thread: ThreadRef = { slug, team, channel, threadTs: message?.thread_ts ?? ts, askerId: event.user };
    switch (meaning) {
      case 'stop':
      case 'resume':
      case 'interrupt':
        await controls.react(meaning, thread, event.user, installation, record.id);
        return;
      case 'retry':
        if (message) await retry(message, thread, event, installation, identity, record);
        return;
      case 'good':
      case 'bad':
        if (message) await feedback(message, thread, meaning, event, installation, identity, signal);
    }
  };

  /** Asking channels where nothing is bound would cost a call for every emoji in the workspace. */
  function standsFor(slug: string, channel: string): boolean {
    for (const { thread } of bindings.ofApp(slug)) if (thread.channel === channel) return true;
    return false;
  }

  /** The message is handed in once more, as its Retry button would. */
  async function retry(
    message: SlackMessage,
    thread: ThreadRef,
    { user }: Reaction,
    installation: Installation,
    identity: SlackIdentity,
    record: QueueRecord<SlackRecord>,
  ): Promise<void> {
    if (isBot(message) || isOwn(message, identity, null)) return;
    if (!bindings.find(thread) || runner.runsMessage(slackKey(thread), message.ts)) return;
    if (message.user !== user && !(await controls.maySteer(thread, user, installation))) return;
    await accept({
      slug: thread.slug,
      transport: record.body.transport,
      key: `retry:${record.id}`,
      again: true,
      payload: {
        type: 'event_callback',
        team_id: thread.team,
        event: { ...message, type: 'message', channel: thread.channel },
      },
    });
  }

  /** What an answer was worth, for whoever reads the room. */
  async function feedback(
    message: SlackMessage,
    thread: ThreadRef,
    meaning: 'good' | 'bad',
    { user, name }: Reaction,
    { directory }: Installation,
    identity: SlackIdentity,
    signal: AbortSignal,
  ): Promise<void> {
    const binding = bindings.find(thread);
    const kind = message.metadata?.event_payload?.['t'];
    if (!binding || !isOwn(message, identity, null) || (kind !== 'reply' && kind !== 'relay')) return;
    const person = await directory.user(user);
    const quoted = (message.text ?? '').replace(/\s+/g, ' ').slice(0, MAX_QUOTED_CHARS);
    const sign = meaning === 'good' ? '👍' : '👎';
    const label = await directory.channelLabel(thread.channel);
    const content = `💬 Slack · ${label} — ${personLabel(person)}: ${sign} ${quoted}`;
    const metadata = {
      slack_feedback: meaning === 'good' ? 'positive' : 'negative',
      slack_reaction: name,
      slack_app_slug: thread.slug,
      slack_channel_id: thread.channel,
      slack_thread_ts: thread.threadTs,
      slack_user_id: user,
      slack_user_handle: person?.handle ?? null,
      slack_user_name: person?.name ?? null,
      slack_ts: message.ts,
    };
    try {
      await rest.postEvent(binding.roomId, { content, messageType: 'thought', metadata }, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ err: error, roomId: binding.roomId }, 'what an answer was worth could not be noted');
    }
  }
}
