import type { ContactEvent } from '../core/events.js';

/** What is known about a request beside what an event says. */
export interface RequestFacts {
  readonly fromHandle: string | null;
  readonly fromName: string | null;
  readonly message: string | null;
}

export const NO_FACTS: RequestFacts = { fromHandle: null, fromName: null, message: null };

/** Told to the model once, in front of the first event of a hub room. */
export const HUB_INSTRUCTION = [
  'This room collects the contact events of this agent. Nobody else reads along.',
  'Answer contact requests with the contact tools (band_respond_contact_request and the other band_*contact* tools).',
  'Do not add participants to this room.',
  'Write down what you decided, and why, as a thought event.',
].join('\n');

/** A contact event in words, for the hub room. */
export function contactEventText(event: ContactEvent, facts: RequestFacts): string {
  switch (event.kind) {
    case 'contact_request_received': {
      const { id } = event.request;
      const message = facts.message ? `\nTheir message: ${facts.message}` : '';
      return `[Contact request]: ${nameOf(facts)} asks to become a contact.${message}\nRequest id: ${id}`;
    }
    case 'contact_request_updated': {
      const { id, status } = event.request;
      return `[Contact request]: the request of ${nameOf(facts)} is now ${status}.\nRequest id: ${id}`;
    }
    case 'contact_added':
      return `[Contact added]: ${contactName(event.contact)} (${event.contact.type}).\nContact id: ${event.contact.id}`;
    case 'contact_removed':
      return `[Contact removed]: ${event.contact.id}.`;
  }
}

/** The line that every room session gets to read, or null for an event that is nobody's business there. */
export function contactNotice(event: ContactEvent): string | null {
  switch (event.kind) {
    case 'contact_added':
      return `[Contacts]: ${contactName(event.contact)} is now a contact.`;
    case 'contact_removed':
      return `[Contacts]: the contact ${event.contact.id} was removed.`;
    case 'contact_request_received':
    case 'contact_request_updated':
      return null;
  }
}

/** Names an event, so that its repetition is recognised. */
export function contactEventKey(event: ContactEvent): string {
  switch (event.kind) {
    case 'contact_request_received':
      return `request_received:${event.request.id}`;
    case 'contact_request_updated':
      return `request_updated:${event.request.id}:${event.request.status}`;
    case 'contact_added':
      return `contact_added:${event.contact.id}`;
    case 'contact_removed':
      return `contact_removed:${event.contact.id}`;
  }
}

function nameOf({ fromHandle, fromName }: RequestFacts): string {
  if (fromName && fromHandle) return `${fromName} (${at(fromHandle)})`;
  if (fromHandle) return at(fromHandle);
  return fromName ?? 'somebody unknown';
}

function contactName({ handle, name }: { handle: string | null; name: string | null }): string {
  if (handle && name) return `${at(handle)} (${name})`;
  return handle ? at(handle) : (name ?? 'somebody unknown');
}

const at = (handle: string) => `@${handle.replace(/^@+/, '')}`;
