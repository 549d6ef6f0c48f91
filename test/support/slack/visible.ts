import { buttonsOf } from './people.js';
import { str, type Json, type Message, type World } from './world.js';

/** A message as a person sees it. */
export interface VisibleMessage {
  readonly ts: string;
  readonly threadTs: string | null;
  /** `@handle` of a person, or the bot's shown name. */
  readonly who: string;
  readonly fromBot: boolean;
  readonly text: string;
  /** What is read on screen: Markdown blocks, section texts, else `text`. */
  readonly shown: string;
  readonly blocks: readonly Json[] | null;
  readonly buttons: readonly string[];
  readonly files: readonly string[];
  readonly metadata: Message['metadata'];
  readonly ephemeralTo: string | null;
  readonly edited: boolean;
  readonly at: number;
}

export function visibleMessage(world: World, message: Message): VisibleMessage {
  const user = world.users.get(message.user);
  return {
    ts: message.ts,
    threadTs: message.threadTs,
    who: message.username ?? (user?.kind === 'human' ? `@${user.name}` : (user?.name ?? message.user)),
    fromBot: message.botId !== null,
    text: message.text,
    shown: shownText(message),
    blocks: message.blocks,
    buttons: buttonsOf(message).map(({ button }) => str((button['text'] as Json | undefined)?.['text'])),
    files: message.files.map((id) => world.files.get(id)?.name ?? id),
    metadata: message.metadata,
    ephemeralTo: message.ephemeralTo,
    edited: message.edited !== null,
    at: message.at,
  };
}

function shownText(message: Message): string {
  const shown: string[] = [];
  const text = (value: unknown): string => str((value as Json | undefined)?.['text']);
  for (const block of message.blocks ?? []) {
    if (block['block_id'] === 'auto' || block['type'] === 'rich_text') continue;
    if (block['type'] === 'markdown') shown.push(str(block['text']));
    else if (block['type'] === 'section' || block['type'] === 'header') shown.push(text(block['text']));
    else if (block['type'] === 'context')
      shown.push((block['elements'] as Json[]).map((element) => str(element['text'])).join(' '));
  }
  return shown.length > 0 ? shown.join('\n') : message.text;
}
