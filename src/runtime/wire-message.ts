import type { Roster } from '../core/participants.js';
import { isSynthetic } from '../core/synthetic.js';
import type { ChatMessage } from '../platform/wire/objects.js';
import type { MessageCreated } from '../platform/wire/socket-events.js';

/** A message as the platform spells it, whichever way it came. */
export type WireMessage = ChatMessage | MessageCreated;

/** True for what this agent wrote itself. */
export function isOwn(message: WireMessage, agentId: string): boolean {
  return message.sender_type === 'Agent' && message.sender_id === agentId;
}

/** True for what the runtime made of a contact event. */
export function isSyntheticMessage(message: WireMessage): boolean {
  return isSynthetic({ senderType: message.sender_type, senderId: message.sender_id });
}

/** The platform's own word on the delivery to this agent: `delivered`, `processing`, `processed`, `failed`. */
export function deliveryStatus(message: WireMessage, agentId: string): string | null {
  const states = record(record(message.metadata)?.['delivery_status']);
  const status = record(states?.[agentId])?.['status'];
  return typeof status === 'string' ? status : null;
}

/**
 * Whether a pushed message is work for this agent: a text that mentions it. Without a list of mentions the platform's
 * choice to push it is trusted; what is left out here by mistake is still handed out by the work list.
 */
export function isForAgent(message: WireMessage, agentId: string): boolean {
  if (message.message_type !== 'text') return false;
  const mentions = record(message.metadata)?.['mentions'];
  if (!Array.isArray(mentions)) return true;
  return mentions.some((mention) => {
    const facts = record(mention);
    return facts?.['id'] === agentId && facts['kind'] !== 'reference';
  });
}

/** The message's own name for its sender, else the roster's. */
export function senderName(message: WireMessage, roster: Pick<Roster, 'get'>): string | null {
  return [message.sender_name, roster.get(message.sender_id)?.name].find((name) => name) ?? null;
}

/** When the message was inserted; for one without a time, the beginning of time. */
export function createdAt(message: WireMessage): Date {
  const at = Date.parse(message.inserted_at ?? '');
  return new Date(Number.isNaN(at) ? 0 : at);
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
