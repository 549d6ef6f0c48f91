import { escapeLabel, markdownLink } from './escape-markdown.js';

/** What the bridge knows about ids in a text; null where it does not. */
export interface SlackNames {
  /** The bot's own user id: its mention is taken out. */
  readonly ownUserId: string | null;
  readonly team: string;
  user(id: string): string | null;
  channel(id: string): string | null;
  group(id: string): string | null;
}

const PLACES = { user: ['user', '@'], channel: ['channel', '#'], group: ['usergroup', '@'] } as const;

/** A mention as the Markdown link that comes back to Slack as the same mention. */
export function mentionLink(kind: keyof typeof PLACES, id: string, label: string | null, names: SlackNames): string {
  const [place, sign] = PLACES[kind];
  const known = label ?? names[kind](id) ?? id;
  const name = known.replace(/^[@#]/, '').replace(/[[\]\\`<>]/g, '');
  return markdownLink(`${sign}${escapeLabel(name)}`, `slack://${place}?team=${names.team}&id=${id}`);
}

/** The same as plain text, for code. */
export function mentionText(kind: keyof typeof PLACES, id: string, label: string | null, names: SlackNames): string {
  const known = label ?? names[kind](id) ?? id;
  return `${PLACES[kind][1]}${known.replace(/^[@#]/, '')}`;
}
