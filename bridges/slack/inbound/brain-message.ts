import type { Logger } from '../../../src/base/log.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import { PlatformMessage } from '../../../src/core/platform-message.js';
import type { OutsideOrigin } from '../../../src/core/outside.js';
import type { SlackMessage } from '../messages.js';
import type { SlackUser } from '../web-methods.js';
import type { Binding } from './bindings.js';

/** A Slack message with everything a brain is told about it. */
export interface SlackTurnFacts {
  readonly binding: Binding;
  readonly message: SlackMessage;
  /** The message as Markdown, the bot's own mention taken out. */
  readonly markdown: string;
  readonly sender: SlackUser | null;
  readonly channelLabel: string;
  readonly channelName: string | null;
  readonly channelType: string | null;
  readonly retryNum: number | null;
  readonly files: readonly Readonly<Record<string, unknown>>[];
  readonly bandHandle: string | null;
  /** What the author was looking at in Slack; null where Slack did not say. */
  readonly context: Readonly<Record<string, unknown>> | null;
  /** See {@link OutsideOrigin.delivery}. */
  readonly delivery: string;
  readonly acceptedAt: number;
  readonly maybeDelivered: boolean;
}

/** The message as the wrapped brain gets it (S-082): the reference's fields, ours beside them. */
export function toBrainMessage(facts: SlackTurnFacts, now: number): PlatformMessage {
  const { binding, message, markdown, sender } = facts;
  const { thread, roomId } = binding;
  const user = message.user ?? message.bot_id ?? 'slack-user';
  const outside: OutsideOrigin = {
    delivery: facts.delivery,
    world: 'Slack',
    place: thread.channel,
    acceptedAt: facts.acceptedAt,
    maybeDelivered: facts.maybeDelivered,
  };
  return new PlatformMessage({
    id: `slack:${message.ts}`,
    roomId,
    content: markdown,
    senderId: `slack:${user}`,
    senderType: 'user',
    senderName: sender?.name ?? user,
    messageType: 'text',
    createdAt: new Date(now),
    metadata: {
      outside,
      slack_app_slug: thread.slug,
      slack_team_id: thread.team,
      slack_channel_id: thread.channel,
      slack_thread_ts: thread.threadTs,
      slack_user_id: message.user ?? null,
      slack_ts: message.ts,
      slack_channel_type: facts.channelType,
      slack_channel_name: facts.channelName,
      slack_user_name: sender?.name ?? null,
      slack_user_handle: sender?.handle ?? null,
      ...(sender?.email ? { slack_user_email: sender.email } : {}),
      ...(facts.bandHandle === null ? {} : { slack_user_band_handle: facts.bandHandle }),
      ...(sender?.isStranger ? { external: true } : {}),
      ...(facts.context === null ? {} : { slack_context: facts.context }),
      slack_permalink: message.permalink ?? null,
      slack_files: facts.files,
      slack_edited: Boolean(message.edited),
      slack_retry_num: facts.retryNum,
      slack_raw_text: message.text ?? '',
    },
  });
}

/** What a brain is told of the place it answers in (S-082). */
export function contextNote(channelLabel: string, bandHandle: string | null = null, pastIsMissing = false): string {
  return [
    `[Slack] This message comes from a person in Slack (${channelLabel}), who is not a Band peer and cannot be mentioned.`,
    'Answer with slack_send_message(content=…); standard Markdown is rendered.',
    'To mention a person in Slack, repeat their mention link as it stands in a message.',
    'band_send_message(content, mentions=[…]) reaches Band peers only, never Slack.',
    ...(pastIsMissing ? ['Slack did not show what was said in this thread before, so it is missing here.'] : []),
    ...(bandHandle === null ? [] : [`On Band this person is @${bandHandle.replace(/^@/, '')}.`]),
  ].join(' ');
}

/** The copy of a Slack message that stands in the room for people to read (S-085). */
export function mirrorEvent(
  facts: Pick<SlackTurnFacts, 'binding' | 'message' | 'markdown' | 'sender' | 'channelLabel'>,
  who: string,
  extra: Readonly<Record<string, unknown>> = {},
): { content: string; metadata: Record<string, unknown> } {
  const { binding, message, markdown, sender, channelLabel } = facts;
  return {
    content: `💬 Slack · ${channelLabel} — ${who}: ${markdown}`,
    metadata: {
      slack_mirror: true,
      slack_app_slug: binding.thread.slug,
      slack_channel_id: binding.thread.channel,
      slack_channel_label: channelLabel,
      slack_thread_ts: binding.thread.threadTs,
      slack_user_id: message.user ?? null,
      slack_user_handle: sender?.handle ?? null,
      slack_user_name: sender?.name ?? null,
      slack_ts: message.ts,
      ...extra,
    },
  };
}

/** Copies an answer into the room, for people to read: its failure changes nothing. */
export async function copyReply(rest: BandRest, binding: Binding, markdown: string, log: Logger): Promise<void> {
  const { roomId, thread } = binding;
  const metadata = {
    slack_mirror: true,
    slack_direction: 'out',
    slack_app_slug: thread.slug,
    slack_channel_id: thread.channel,
    slack_thread_ts: thread.threadTs,
  };
  try {
    await rest.postEvent(roomId, { content: `💬 Slack · answered: ${markdown}`, messageType: 'thought', metadata });
  } catch (error) {
    log.warn({ err: error, roomId }, 'an answer in Slack could not be mirrored');
  }
}
