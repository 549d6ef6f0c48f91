import type { ContactEvent } from '../core/events.js';
import type { BandContacts, WireRecord } from '../platform/rest/band-rest.js';
import { contactAddedSchema, contactRequestReceivedSchema } from '../platform/wire/socket-events.js';

const PAGE_ROWS = 100;
/** Bound of each list that is read. */
const MAX_PAGES = 10;

/** What the platform lists about an agent's contacts at one moment, by id. */
export interface ContactsListing {
  /** Requests of others that wait for an answer. */
  readonly received: ReadonlyMap<string, WireRecord>;
  /** The agent's own requests, whatever became of them. */
  readonly sent: ReadonlyMap<string, WireRecord>;
  readonly contacts: ReadonlyMap<string, WireRecord>;
  /** False when there are more contacts than are read. */
  readonly complete: boolean;
}

/** @throws what the platform's client throws */
export async function listContacts(rest: BandContacts, signal: AbortSignal): Promise<ContactsListing> {
  const received = new Map<string, WireRecord>();
  const sent = new Map<string, WireRecord>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { data } = await rest.requests({ page, pageSize: PAGE_ROWS, sentStatus: 'all', signal });
    const rows = [rowsOf(data['received']), rowsOf(data['sent'])] as const;
    note(rows[0], received);
    note(rows[1], sent);
    if (rows.every(({ length }) => length < PAGE_ROWS)) break;
  }
  const contacts = new Map<string, WireRecord>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { data, totalPages } = await rest.list({ page, pageSize: PAGE_ROWS, signal });
    note(data, contacts);
    if (page >= totalPages) return { received, sent, contacts, complete: true };
  }
  return { received, sent, contacts, complete: false };
}

/**
 * What a listing says that may not have been told: every request that waits, since nothing else shows it again, and
 * what differs from the listing before. A request of others that no longer waits is not among them: the platform does
 * not say what became of it.
 *
 * @param before - null where there is none, then only the waiting requests are named
 */
export function untoldEvents(before: ContactsListing | null, now: ContactsListing): readonly ContactEvent[] {
  const events: ContactEvent[] = [];
  for (const row of now.received.values()) {
    const request = contactRequestReceivedSchema.safeParse(row);
    if (request.success) events.push({ kind: 'contact_request_received', request: request.data });
  }
  if (!before) return events;
  for (const [id, { status }] of now.sent) {
    const earlier = before.sent.get(id);
    if (earlier && typeof status === 'string' && status !== earlier['status']) {
      events.push({ kind: 'contact_request_updated', request: { id, status } });
    }
  }
  for (const [id, row] of now.contacts) {
    const contact = contactAddedSchema.safeParse(row);
    if (contact.success && before.complete && !before.contacts.has(id)) {
      events.push({ kind: 'contact_added', contact: contact.data });
    }
  }
  for (const id of before.contacts.keys()) {
    if (now.complete && !now.contacts.has(id)) events.push({ kind: 'contact_removed', contact: { id } });
  }
  return events;
}

function note(rows: readonly WireRecord[], byId: Map<string, WireRecord>): void {
  for (const row of rows) if (typeof row['id'] === 'string') byId.set(row['id'], row);
}

/** The rows of a list inside an answer; anything else is an empty list. */
export function rowsOf(value: unknown): WireRecord[] {
  return Array.isArray(value) ? value.filter((row): row is WireRecord => typeof row === 'object' && row !== null) : [];
}
