import { createHash } from 'node:crypto';
import type { SlackDelivery } from './parse.js';

/**
 * The key under which a delivery is remembered, so that the same thing arriving again, on any transport, is known.
 * The slug stands in front: one event id on two apps is two events (S-034).
 *
 * @param body - as it came, for payloads that carry no id of their own
 */
export function deliveryKey(slug: string, delivery: SlackDelivery, body: unknown): string {
  return `${slug}:${withinApp(delivery, body)}`;
}

/** The key of an event that carries its id. */
export function eventKey(slug: string, eventId: string): string {
  return `${slug}:ev:${eventId}`;
}

function withinApp(delivery: SlackDelivery, body: unknown): string {
  switch (delivery.kind) {
    case 'event':
      return delivery.eventId === null ? `ev:${digest(body)}:${delivery.eventTime ?? 0}` : `ev:${delivery.eventId}`;
    case 'action': {
      const { triggerId, actionTs, messageTs, userId, actionId } = delivery;
      return `act:${triggerId ?? `${actionTs ?? '-'}:${messageTs ?? '-'}:${userId}:${actionId}`}`;
    }
    case 'view':
      return `view:${delivery.viewId}:${delivery.hash}:${delivery.closed ? 'view_closed' : 'view_submission'}`;
    case 'command':
      return `cmd:${delivery.triggerId ?? digest(body)}`;
    case 'shortcut':
      return `sc:${delivery.triggerId}`;
    case 'rate_limited':
    case 'unknown':
    case 'url_verification':
      return `ev:${digest(body)}`;
  }
}

/** The key of a message that catch-up found. */
export function catchUpKey(slug: string, team: string, channel: string, ts: string): string {
  return `${slug}:bf:${team}:${channel}:${ts}`;
}

function digest(body: unknown): string {
  return createHash('sha256').update(canonical(body)).digest('hex').slice(0, 32);
}

/** JSON with sorted keys, so that two spellings of one payload have one digest. */
function canonical(value: unknown): string {
  return JSON.stringify([value], (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
