import type { ConversationKey } from '../../src/base/ids.js';

/** A Slack thread as this bridge names it. */
export interface SlackThread {
  /** The app's slug. */
  readonly slug: string;
  /** The workspace that installed the app, or {@link ANY_TEAM} for a binding the Python reference wrote. */
  readonly team: string;
  readonly channel: string;
  /** `ts` of the thread's first message. */
  readonly threadTs: string;
}

/** The reference writes no team into its bindings: they match every team of their slug. */
export const ANY_TEAM = '-';

/** `{slug}:{team}:{channel}:{thread_ts}`; Slack's ids and our slugs hold no colon. */
export function slackKey({ slug, team, channel, threadTs }: SlackThread): ConversationKey {
  return `${slug}:${team}:${channel}:${threadTs}` as ConversationKey;
}

/** The same key without a team, under which a binding of the Python reference is found. */
export function teamlessKey(thread: SlackThread): ConversationKey {
  return slackKey({ ...thread, team: ANY_TEAM });
}

const KEY = /^([a-z0-9][a-z0-9-]{0,62}):([^:]+):([^:]+):([^:]+)$/;

/** @returns null for anything that {@link slackKey} does not make */
export function parseSlackKey(key: string): SlackThread | null {
  const [, slug, team, channel, threadTs] = KEY.exec(key) ?? [];
  if (slug === undefined || team === undefined || channel === undefined || threadTs === undefined) return null;
  return { slug, team, channel, threadTs };
}

/** What a message is, across `app_mention` and `message.*`: the second guard against a second turn (S-037). */
export function messageIdentity(slug: string, team: string, channel: string, ts: string): string {
  return `${slug}:${team}:${channel}:${ts}`;
}
