import type { SlackMessage } from '../messages.js';
import type { ChannelType } from '../parse-event.js';
import type { SlackIdentity } from '../web-methods.js';

/** Why a message makes no turn; each is a label of `slack_events_dropped_total`. */
export type DropReason =
  'own' | 'system' | 'empty' | 'bot' | 'bot_cap' | 'denied' | 'not_addressed' | 'for_somebody_else' | 'muted';

export type Verdict =
  | { readonly kind: 'turn' }
  /** `told` says whether the person is to be told why. */
  | { readonly kind: 'dropped'; readonly reason: DropReason; readonly told: boolean };

export interface GateSettings {
  readonly threadFollowUps: 'bound' | 'mention' | 'bound-unless-others';
  readonly mpim: 'mention' | 'always';
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly allowBots: 'none' | 'mentions' | readonly string[];
  readonly botTurnCap: number;
}

/** A message and what is known around it. */
export interface GateFacts {
  readonly message: SlackMessage;
  readonly channel: string;
  readonly channelType: ChannelType | null;
  /** It came as `app_mention`. */
  readonly mention: boolean;
  readonly own: SlackIdentity;
  readonly ownAppId: string | null;
  /** The author's workspace, where known. */
  readonly authorTeam: string | null;
  readonly isGuest: boolean;
  /** Somebody of another organization, by Slack Connect. */
  readonly isStranger: boolean;
  /** A room stands for the thread. */
  readonly isBound: boolean;
  readonly isMuted: boolean;
  /** Another bot, or a second person, has written in the thread. */
  readonly hasOthers: boolean;
  /** Bot messages in the thread since a person last wrote. */
  readonly botRun: number;
}

/** `metadata.event_type` of everything this bridge posts. */
export const OWN_EVENT_TYPE = 'band_gateway_message';

const USER_SUBTYPES: ReadonlySet<string> = new Set(['file_share', 'thread_broadcast', 'me_message']);

const GROUP_AND_CHANNEL = ['join', 'leave', 'topic', 'purpose', 'name', 'archive', 'unarchive'];
/** Messages that Slack itself writes into a channel. One that is not listed here and has content counts as a person's. */
const SYSTEM_SUBTYPES: ReadonlySet<string> = new Set([
  ...GROUP_AND_CHANNEL.flatMap((what) => [`channel_${what}`, `group_${what}`]),
  'pinned_item',
  'unpinned_item',
  'bot_add',
  'bot_remove',
  'reminder_add',
  'reply_broadcast',
  'tombstone',
  'ekm_access_denied',
  'assistant_app_thread',
]);

/** Whether a message is for the agent. The rules apply in this order, and the first that speaks decides. */
export function judge(facts: GateFacts, settings: GateSettings): Verdict {
  const { message } = facts;
  if (isOwn(message, facts.own, facts.ownAppId)) return drop('own');
  if (message.subtype && SYSTEM_SUBTYPES.has(message.subtype)) return drop('system');
  if (!hasContent(message)) return drop('empty');
  if (isBot(message)) {
    const refusal = judgeBot(facts, settings);
    if (refusal) return refusal;
  }
  if (isDenied({ ...facts, user: message.user ?? null }, settings)) return drop('denied', true);
  return judgeAddress(facts, settings);
}

/** Whether this bridge wrote it, by any of the marks Slack may leave. */
export function isOwn(message: SlackMessage, own: SlackIdentity, ownAppId: string | null): boolean {
  return (
    message.user === own.botUserId ||
    (own.botId !== null && message.bot_id === own.botId) ||
    (ownAppId !== null && message.app_id === ownAppId && isBot(message)) ||
    message.metadata?.event_type === OWN_EVENT_TYPE
  );
}

/** Slack marks a bot's post by its subtype, its bot id, or both. */
export function isBot(message: SlackMessage): boolean {
  return message.subtype === 'bot_message' || Boolean(message.bot_id);
}

/** A subtype that is not known here, from a person and with content, is a person's message: a new kind is not lost. */
export function isUnknownSubtype(message: SlackMessage): boolean {
  const { subtype } = message;
  return (
    Boolean(subtype) &&
    subtype !== 'bot_message' &&
    !USER_SUBTYPES.has(subtype ?? '') &&
    !SYSTEM_SUBTYPES.has(subtype ?? '')
  );
}

function hasContent({ text, files, blocks, attachments }: SlackMessage): boolean {
  return Boolean(text?.trim()) || [files, blocks, attachments].some((part) => (part?.length ?? 0) > 0);
}

function judgeBot(facts: GateFacts, { allowBots, botTurnCap }: GateSettings): Verdict | null {
  const { message, mention, own, botRun } = facts;
  const allowed =
    allowBots === 'mentions'
      ? mention || mentions(message, own.botUserId)
      : allowBots !== 'none' &&
        [message.user, message.bot_id, message.app_id].some((id) => id != null && allowBots.includes(id));
  if (!allowed) return drop('bot');
  // Said once, when the cap is met; afterwards there is silence until a person writes.
  return botRun >= botTurnCap ? drop('bot_cap', botRun === botTurnCap) : null;
}

/** Somebody in a place, as the lists of who may talk to the agent see them. */
export interface WhoWhere extends Pick<GateFacts, 'channel' | 'authorTeam' | 'isGuest' | 'isStranger'> {
  readonly user: string | null;
}

/** Whether the settings keep somebody from talking to the agent there; deny beats allow (S-068). */
export function isDenied(facts: WhoWhere, { allow, deny }: Pick<GateSettings, 'allow' | 'deny'>): boolean {
  const marks = [
    facts.channel,
    facts.user,
    facts.authorTeam,
    facts.isGuest ? 'guests' : null,
    facts.isStranger ? 'ext' : null,
  ].filter((mark) => mark !== null);
  if (marks.some((mark) => deny.includes(mark))) return true;
  return allow.length > 0 && !marks.some((mark) => allow.includes(mark));
}

function judgeAddress(facts: GateFacts, { threadFollowUps, mpim }: GateSettings): Verdict {
  const { message, channelType, mention, own, isBound, isMuted, hasOthers } = facts;
  const isMention = mention || mentions(message, own.botUserId);
  if (isMention) return TURN;
  if (isMuted) return drop('muted');
  if (channelType === 'im') return TURN;
  if (channelType === 'mpim' && mpim === 'always') return TURN;
  if (!isBound || threadFollowUps === 'mention') return drop('not_addressed');
  if (threadFollowUps === 'bound-unless-others' && hasOthers) return drop('not_addressed');
  return opensWithSomebodyElse(message, own.botUserId) ? drop('for_somebody_else') : TURN;
}

export function mentions({ text }: Pick<SlackMessage, 'text'>, userId: string): boolean {
  return new RegExp(`<@${userId}(?:\\|[^>]*)?>`).test(text ?? '');
}

function opensWithSomebodyElse({ text }: SlackMessage, own: string): boolean {
  const [, first] = /^\s*<@([UWB][A-Z0-9]+)(?:\|[^>]*)?>/.exec(text ?? '') ?? [];
  return first !== undefined && first !== own;
}

const TURN: Verdict = { kind: 'turn' };
const drop = (reason: DropReason, told = false): Verdict => ({ kind: 'dropped', reason, told });
