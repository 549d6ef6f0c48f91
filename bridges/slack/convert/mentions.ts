/** Whom a text may mention. Channels notify nobody: `channel` only says whether the bridge knows it. */
export interface MentionPolicy {
  user(id: string): boolean;
  group(id: string): boolean;
  channel(id: string): boolean;
  /** `here`, `channel` and `everyone`. */
  readonly broadcast: boolean;
}

/** Nobody is mentioned. */
export const NO_MENTIONS: MentionPolicy = {
  user: () => false,
  group: () => false,
  channel: () => false,
  broadcast: false,
};

/** One of Slack's control sequences, or the link that stands for it in Markdown. */
export type Mention =
  | { readonly kind: 'user' | 'group' | 'channel'; readonly id: string; readonly label: string | null }
  | { readonly kind: 'broadcast'; readonly range: string }
  | { readonly kind: 'date'; readonly label: string };

/**
 * Control sequences with or without a label. Narrow enough that code is not hit by accident; `group` is an old name
 * of `channel`.
 */
export const CONTROL_SEQUENCE =
  /<(?:@(?<user>[UWB][A-Z0-9]+)|#(?<channel>[CDG][A-Z0-9]+)|!(?<range>here|channel|everyone|group)|!subteam\^(?<group>S[A-Z0-9]+)|!date\^(?<date>[^<>|\n]*))(?:\|(?<label>[^<>\n]*))?>/g;

/** @param groups - of a match of {@link CONTROL_SEQUENCE} */
export function mentionOf(groups: Readonly<Record<string, string | undefined>>): Mention {
  const { user, channel, range, group, date, label } = groups;
  const shown = label === undefined || label === '' ? null : label;
  if (user !== undefined) return { kind: 'user', id: user, label: shown };
  if (channel !== undefined) return { kind: 'channel', id: channel, label: shown };
  if (group !== undefined) return { kind: 'group', id: group, label: shown };
  if (range !== undefined) return { kind: 'broadcast', range };
  return { kind: 'date', label: shown ?? dateText(date ?? '') };
}

/** The moment that a date sequence without a label stands for. */
function dateText(body: string): string {
  const seconds = Number(/^\d{1,11}/.exec(body)?.[0] ?? Number.NaN);
  const moment = new Date(seconds * 1_000);
  return Number.isNaN(moment.getTime()) ? 'date' : moment.toISOString().slice(0, 16).replace('T', ' ');
}

const MENTION_URL = /^slack:\/\/(user|channel|usergroup)\?(.*)$/i;

/** @returns null for a link that stands for no mention */
export function mentionFromUrl(url: string, label: string): Mention | null {
  const [, place, query] = MENTION_URL.exec(url) ?? [];
  if (place === undefined || query === undefined) return null;
  const id = /(?:^|&)id=([A-Z0-9]+)/.exec(query)?.[1];
  if (id === undefined) return null;
  const kind = place.toLowerCase() === 'usergroup' ? 'group' : (place.toLowerCase() as 'user' | 'channel');
  return { kind, id, label: label === '' ? null : label };
}

/** Is this a deep link to somebody, whether or not it is well formed? */
export const isMentionUrl = (url: string): boolean => MENTION_URL.test(url);

/** What a person reads where no live mention stands. */
export function visibleName(mention: Mention): string {
  switch (mention.kind) {
    case 'broadcast':
      return `@${mention.range}`;
    case 'date':
      return mention.label;
    case 'channel':
      return withSign('#', mention.label ?? mention.id);
    case 'user':
    case 'group':
      return withSign('@', mention.label ?? mention.id);
  }
}

const withSign = (sign: string, name: string): string => (name.startsWith(sign) ? name : `${sign}${name}`);

/** The live form, or null when the policy forbids it. */
export function liveMention(mention: Mention, policy: MentionPolicy): string | null {
  switch (mention.kind) {
    case 'user':
      return policy.user(mention.id) ? `<@${mention.id}>` : null;
    case 'group':
      return policy.group(mention.id) ? `<!subteam^${mention.id}>` : null;
    case 'channel':
      return policy.channel(mention.id) ? `<#${mention.id}>` : null;
    case 'broadcast':
      return policy.broadcast ? `<!${mention.range}>` : null;
    case 'date':
      return null;
  }
}

const STRAY_MENTION_URL = /slack:\/\/(?=(?:user|usergroup)\?)/gi;

/** Addresses of people that stand as text or inside other links lead nowhere. */
export const disarmMentionUrls = (text: string): string => text.replace(STRAY_MENTION_URL, 'slack:\u200b//');
