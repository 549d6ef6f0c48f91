import type { Json, World } from './world.js';

/** What Slack's composer makes of what a person typed. */
export interface Composed {
  /** mrkdwn with entities and control sequences. */
  readonly text: string;
  readonly blocks: Json[];
}

type Style = Record<string, true>;

const INLINE =
  /`([^`\n]+)`|\*([^*\n]+)\*|_([^_\n]+)_|~([^~\n]+)~|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>]+)|@([a-z0-9._-]+)|#([a-z0-9_-]+)|:([a-z0-9_+-]+):/;
const UNICODE: Readonly<Record<string, string>> = { wave: '1f44b', smile: '1f604', tada: '1f389', '+1': '1f44d' };

/** Composes as Slack's editor does: own code, so that the bridge's converter has something to be checked against. */
export function compose(world: World, teamId: string, typed: string): Composed {
  const blocks: Json[] = [];
  const texts: string[] = [];
  const elements: Json[] = [];
  const lines = typed.split('\n');
  let plain: string[] = [];
  const flush = () => {
    if (plain.length === 0) return;
    const { text, parts } = inline(world, teamId, plain.join('\n'));
    texts.push(text);
    elements.push({ type: 'rich_text_section', elements: parts });
    plain = [];
  };
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index]!;
    if (line.startsWith('```')) {
      flush();
      const code: string[] = [];
      for (index += 1; index < lines.length && !lines[index]!.startsWith('```'); index += 1) code.push(lines[index]!);
      texts.push(`\`\`\`\n${escape(code.join('\n'))}\n\`\`\``);
      elements.push({ type: 'rich_text_preformatted', elements: [{ type: 'text', text: code.join('\n') }], border: 0 });
    } else if (line.startsWith('> ')) {
      flush();
      const { text, parts } = inline(world, teamId, line.slice(2));
      texts.push(`&gt; ${text}`);
      elements.push({ type: 'rich_text_quote', elements: parts });
    } else if (line.startsWith('- ')) {
      flush();
      const { text, parts } = inline(world, teamId, line.slice(2));
      texts.push(`• ${text}`);
      const last = elements.at(-1);
      const item = { type: 'rich_text_section', elements: parts };
      if (last?.['type'] === 'rich_text_list') (last['elements'] as Json[]).push(item);
      else elements.push({ type: 'rich_text_list', style: 'bullet', indent: 0, border: 0, elements: [item] });
    } else plain.push(line);
  }
  flush();
  blocks.push({ type: 'rich_text', block_id: 'typed', elements });
  return { text: texts.join('\n'), blocks };
}

function inline(world: World, teamId: string, typed: string): { text: string; parts: Json[] } {
  const parts: Json[] = [];
  let text = '';
  let rest = typed;
  const literal = (value: string, style?: Style) => {
    if (value !== '') parts.push({ type: 'text', text: value, ...(style ? { style } : {}) });
  };
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    const before = rest.slice(0, match.index);
    literal(before);
    text += escape(before);
    rest = rest.slice(match.index + match[0].length);
    const [whole, code, bold, italic, strike, label, target, url, user, channel, emoji] = match;
    if (code !== undefined) {
      literal(code, { code: true });
      text += `\`${escape(code)}\``;
    } else if (bold !== undefined) {
      literal(bold, { bold: true });
      text += `*${escape(bold)}*`;
    } else if (italic !== undefined) {
      literal(italic, { italic: true });
      text += `_${escape(italic)}_`;
    } else if (strike !== undefined) {
      literal(strike, { strike: true });
      text += `~${escape(strike)}~`;
    } else if (target !== undefined) {
      parts.push({ type: 'link', url: target, text: label });
      text += `<${escape(target)}|${escape(label ?? '')}>`;
    } else if (url !== undefined) {
      parts.push({ type: 'link', url });
      text += `<${escape(url)}>`;
    } else if (user !== undefined) text += mention(world, teamId, user, whole, parts);
    else if (channel !== undefined) text += channelLink(world, teamId, channel, whole, parts);
    else if (emoji !== undefined) {
      parts.push({ type: 'emoji', name: emoji, ...(UNICODE[emoji] ? { unicode: UNICODE[emoji] } : {}) });
      text += whole;
    }
  }
  literal(rest);
  return { text: text + escape(rest), parts };
}

function mention(world: World, teamId: string, name: string, whole: string, parts: Json[]): string {
  if (['here', 'channel', 'everyone'].includes(name)) {
    parts.push({ type: 'broadcast', range: name });
    return `<!${name}>`;
  }
  const user = [...world.users.values()].find(
    (one) => one.name === name && (one.teamId === teamId || one.stranger || one.kind === 'bot'),
  );
  if (!user) {
    parts.push({ type: 'text', text: whole });
    return escape(whole);
  }
  parts.push({ type: 'user', user_id: user.id });
  return `<@${user.id}>`;
}

function channelLink(world: World, teamId: string, name: string, whole: string, parts: Json[]): string {
  const channel = [...world.channels.values()].find((one) => one.name === name && one.teamId === teamId);
  if (!channel) {
    parts.push({ type: 'text', text: whole });
    return escape(whole);
  }
  parts.push({ type: 'channel', channel_id: channel.id });
  return `<#${channel.id}|${name}>`;
}

export const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
