import type { LinkEvent } from '../platform/link-port.js';

/** What an agent hears from the platform. Payloads keep the wire's spelling. */
export type PlatformEvent = LinkEvent;

type EventOf<Kind extends PlatformEvent['kind']> = Extract<PlatformEvent, { readonly kind: Kind }>;

export type MessageCreatedEvent = EventOf<'message_created'>;
export type ParticipantAddedEvent = EventOf<'participant_added'>;
export type ParticipantRemovedEvent = EventOf<'participant_removed'>;
/** A contact request came or changed, or a contact came or went. */
export type ContactEvent = EventOf<
  'contact_request_received' | 'contact_request_updated' | 'contact_added' | 'contact_removed'
>;
