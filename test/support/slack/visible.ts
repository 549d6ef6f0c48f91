import { buttonsOf } from './people.js';
import { str, type Channel, type Json, type Message, type World } from './world.js';

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

/** A channel's top level, or a thread with its root, as a person sees it. */
export function visibleMessages(
  world: World,
  channel: Channel,
  threadTs: string | undefined,
  viewer: string | undefined,
): VisibleMessage[] {
  return channel.messages
    .filter((one) => !one.deleted && (one.ephemeralTo === null || one.ephemeralTo === viewer))
    .filter((one) =>
      threadTs === undefined
        ? one.threadTs === null || one.broadcast
        : one.ts === threadTs || one.threadTs === threadTs,
    )
    .map((one) => visibleMessage(world, one));
}

/** Everything that one person alone sees. */
export function visibleEphemerals(world: World, channel: Channel, viewer: string): VisibleMessage[] {
  return channel.messages
    .filter((one) => one.ephemeralTo === viewer && !one.deleted)
    .map((one) => visibleMessage(world, one));
}

export function openModals(world: World, user: string): Json[] {
  return [...world.views.values()]
    .filter((one) => one.user === user && one.open && one.view['type'] === 'modal')
    .map((one) => ({ ...one.view, id: one.id }));
}
