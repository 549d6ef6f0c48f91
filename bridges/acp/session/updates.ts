import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import { shownText, splitText, typedText, type HandleOf } from '../convert.js';
import { hasVisibleText } from '../../../src/core/visible-text.js';
import type { Person } from '../roster.js';

/** Where everything of ours stands inside `_meta`. */
export const META_KEY = 'band.ai';

export const meta = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> => ({ [META_KEY]: fields });

export interface RowContext {
  readonly self: Person;
  readonly handleOf: HandleOf;
  /** Puts the sender's name in front. */
  readonly attribute: boolean;
  readonly replay?: boolean;
  readonly late?: boolean;
}

/** A message of somebody else as updates: one message id, pieces of bounded size. */
export function replyUpdates(row: ChatMessage, context: RowContext): SessionUpdate[] {
  const handle = context.handleOf(row.sender_id.toLowerCase());
  const name = row.sender_name ?? handle ?? row.sender_type;
  const shown = shownText(row, context.self, context.handleOf);
  const warned = row.message_type === 'error' ? `⚠ ${shown}` : shown;
  const text = context.attribute ? `**@${handle ?? name}:** ${warned}` : warned;
  const about = meta({
    ...(context.replay ? { replay: true } : {}),
    ...(context.late ? { late: true } : {}),
    sender: { id: row.sender_id, type: row.sender_type, ...(handle === null ? {} : { handle }), name },
  });
  return splitText(text).map((piece) => ({
    sessionUpdate: 'agent_message_chunk',
    messageId: row.id,
    content: { type: 'text', text: piece },
    _meta: about,
  }));
}

/** A prompt that the bridge posted, as the person typed it. */
export function promptUpdates(row: ChatMessage, handleOf: HandleOf): SessionUpdate[] {
  const text = typedText(row, handleOf);
  if (!hasVisibleText(text)) return [];
  return userUpdates(text, row.id, { replay: true });
}

export function userUpdates(
  text: string,
  messageId: string,
  about: Readonly<Record<string, unknown>>,
): SessionUpdate[] {
  return splitText(text).map((piece) => ({
    sessionUpdate: 'user_message_chunk',
    messageId,
    content: { type: 'text', text: piece },
    _meta: meta(about),
  }));
}

/** Something the bridge itself says in the thread. */
export function sayUpdate(text: string, about: Readonly<Record<string, unknown>> = {}): SessionUpdate {
  return {
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text },
    _meta: meta({ local: true, ...about }),
  };
}

export function thoughtUpdate(text: string): SessionUpdate {
  return { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text }, _meta: meta({ local: true }) };
}
