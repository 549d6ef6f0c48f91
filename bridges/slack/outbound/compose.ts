import type { SlackArguments } from '../client.js';
import {
  cutMrkdwn,
  fallbackText,
  MRKDWN_CHARS,
  renderMarkdown,
  SECTION_CHARS,
  type MentionPolicy,
} from '../convert/index.js';
import { CONTROL_ACTION_IDS, type ControlAction, type ControlButton, type Persona, type PostKind } from './port.js';

/** What our own posts are recognised by; visible to everyone in the workspace, so it holds nothing but key and kind. */
export const METADATA_TYPE = 'band_gateway_message';

export type MessageKind = PostKind | 'progress';

/** @param key - a digest, so that it says nothing about rooms, agents or turns (S-104) */
export function ownMetadata(key: string, kind: MessageKind): SlackArguments {
  return { event_type: METADATA_TYPE, event_payload: { k: key, t: kind } };
}

export type SlackBlockArgument = Readonly<Record<string, unknown>>;

const LABELS: Readonly<Record<ControlAction, string>> = {
  interrupt: 'Interrupt',
  stop: 'Stop',
  resume: 'Resume',
  retry: 'Retry',
  mute: 'Mute',
  unmute: 'Unmute',
  ask: 'Ask',
};

const STYLES: Readonly<Partial<Record<ControlAction, { readonly style: 'danger' | 'primary' }>>> = {
  stop: { style: 'danger' },
  resume: { style: 'primary' },
  retry: { style: 'primary' },
  ask: { style: 'primary' },
};

/** The row of control buttons; empty for none. */
export function controlBlocks(buttons: readonly ControlButton[]): readonly SlackBlockArgument[] {
  if (buttons.length === 0) return [];
  const elements = buttons.map(({ action, value, label }, index) => {
    // Within one row Slack wants every name once.
    const same = buttons.slice(0, index).filter((other) => other.action === action).length;
    return {
      type: 'button',
      action_id: same === 0 ? CONTROL_ACTION_IDS[action] : `${CONTROL_ACTION_IDS[action]}_${same + 1}`,
      text: { type: 'plain_text', text: label ?? LABELS[action], emoji: false },
      value,
      ...STYLES[action],
    };
  });
  return [{ type: 'actions', block_id: 'band_controls', elements }];
}

/** Text and blocks of a short message that is one block, as `chat.postMessage` and `chat.update` take them. */
export function shortMessage(
  markdown: string,
  policy: MentionPolicy,
  buttons: readonly ControlButton[],
): { readonly text: string; readonly blocks: readonly SlackBlockArgument[] } {
  const source = markdown.slice(0, MRKDWN_CHARS);
  return {
    text: fallbackText(source, policy),
    blocks: [{ type: 'markdown', text: renderMarkdown(source, policy) || ' ' }, ...controlBlocks(buttons)],
  };
}

/** The same as mrkdwn, the form of what only one person sees (S-115). */
export function mrkdwnMessage(
  markdown: string,
  policy: MentionPolicy,
  buttons: readonly ControlButton[],
): { readonly text: string; readonly blocks?: readonly SlackBlockArgument[] } {
  const text = fallbackText(markdown, policy);
  return buttons.length === 0 ? { text } : { text, blocks: withControls(text, buttons) };
}

/** mrkdwn with buttons needs a section, which holds less than a message. */
export function withControls(mrkdwn: string, buttons: readonly ControlButton[]): readonly SlackBlockArgument[] {
  return [
    { type: 'section', text: { type: 'mrkdwn', text: cutMrkdwn(mrkdwn, SECTION_CHARS), verbatim: true } },
    ...controlBlocks(buttons),
  ];
}

const LONGEST_NAME_CHARS = 80;

/** Name and icon as arguments of `chat.postMessage`. */
export function personaArguments({ name, icon }: Persona): SlackArguments {
  const shown = plainName(name);
  return {
    ...(shown === '' ? {} : { username: shown }),
    ...(icon === null ? {} : iconArguments(icon)),
  };
}

function iconArguments(icon: string): SlackArguments {
  if (/^:[^:\s]{1,100}:$/.test(icon)) return { icon_emoji: icon };
  return /^https:\/\/\S{1,1000}$/.test(icon) ? { icon_url: icon } : {};
}

/** A name on one line, without what Slack reads as a sequence. */
export function plainName(name: string): string {
  return name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/[<>]/g, '')
    .trim()
    .slice(0, LONGEST_NAME_CHARS)
    .replace(/[\ud800-\udbff]$/, '');
}

/** A name inside a Markdown text, as it is. */
export const markdownName = (name: string): string => plainName(name).replace(/[\\`*_~[\]()#|!&]/g, '\\$&');

/** `**Name:** text`, where the speaker's name cannot stand above the message. */
export function namedMarkdown(speaker: Persona, markdown: string): string {
  const name = markdownName(speaker.name);
  if (name === '') return markdown;
  // A block that opens with its first mark must stay at the start of its line.
  return /^\s*(?:[-+*>#|]|\d{1,9}[.)]|`{3}|~{3})/.test(markdown)
    ? `**${name}:**\n\n${markdown}`
    : `**${name}:** ${markdown}`;
}

/** The address of a message, made of what is known, without a call. */
export function permalinkOf(teamUrl: string, channel: string, ts: string, threadTs: string | null): string | null {
  if (!/^https?:\/\//.test(teamUrl) || isPersonId(channel)) return null;
  const thread = threadTs === null || threadTs === ts ? '' : `?thread_ts=${threadTs}&cid=${channel}`;
  return `${teamUrl.replace(/\/?$/, '/')}archives/${channel}/p${ts.replace('.', '')}${thread}`;
}

const isPersonId = (channel: string): boolean => /^[UW]/.test(channel);
