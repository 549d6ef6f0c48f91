import { deliveryKey, eventKey } from '../delivery-key.js';
import { parseDelivery, type SlackDelivery } from '../parse.js';
import { isFields, laneOf, threadLane } from './records.js';

/** What the door must know of a delivery to take it in. */
export interface Sorting {
  readonly kind: SlackDelivery['kind'];
  /** The parser's own word for it, so that a label never holds what a sender made up. */
  readonly type: string;
  /** Under which it is remembered. */
  readonly key: string;
  readonly lane: string;
  /** `ts` of a message that may have a turn; null for everything else. */
  readonly messageTs: string | null;
}

export interface Challenge {
  readonly kind: 'challenge';
  readonly challenge: string;
}

/** Sorts a verified payload; what it means is looked at when its turn comes. Never throws. */
export function sortDelivery(slug: string, payload: unknown): Sorting | Challenge {
  return sortPlainMessage(slug, payload) ?? sortParsed(slug, payload);
}

/** By the parser, which knows every kind. */
export function sortParsed(slug: string, payload: unknown): Sorting | Challenge {
  const delivery = parseDelivery(payload);
  if (delivery.kind === 'url_verification') return { kind: 'challenge', challenge: delivery.challenge };
  const event = delivery.kind === 'event' ? delivery.event : null;
  return {
    kind: delivery.kind,
    type: event?.kind ?? delivery.kind,
    key: deliveryKey(slug, delivery, payload),
    lane: laneOf(slug, delivery),
    messageTs: event?.kind === 'message' ? event.message.ts : null,
  };
}

/**
 * The commonest delivery, a person's message in its usual shape, without the parser's checks and copies of what the
 * door does not read: a twentieth of their time, before the acknowledgement of every message. It answers what
 * {@link sortParsed} would, or null where that is not plain.
 */
function sortPlainMessage(slug: string, payload: unknown): Sorting | null {
  if (!isFields(payload) || payload['type'] !== 'event_callback') return null;
  const { event, event_id: eventId } = payload;
  if (typeof eventId !== 'string' || !isFields(event)) return null;
  const { type, subtype, channel, ts, thread_ts: threadTs } = event;
  if (type !== 'app_mention' && type !== 'message') return null;
  if (subtype === 'message_changed' || subtype === 'message_deleted') return null;
  if (typeof channel !== 'string' || channel === '' || typeof ts !== 'string') return null;
  const team = teamOfInstallation(payload['authorizations']);
  if (team === null) return null;
  const message = { ts, thread_ts: typeof threadTs === 'string' ? threadTs : null };
  return {
    kind: 'event',
    type: 'message',
    key: eventKey(slug, eventId),
    lane: threadLane(slug, team, channel, message),
    messageTs: ts,
  };
}

/** Slack names one installation, the one it delivers to; null where it does otherwise. */
function teamOfInstallation(authorizations: unknown): string | null {
  if (!Array.isArray(authorizations) || authorizations.length !== 1) return null;
  const only: unknown = authorizations[0];
  if (!isFields(only) || only['is_bot'] !== true) return null;
  const { team_id: team } = only;
  return typeof team === 'string' ? team : null;
}
