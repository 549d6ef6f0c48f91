import type { Change } from './change.js';
import { charactersIn } from './content.js';
import { badRequest, conflict, forbidden, invalid, limitReached, notFound } from './problem.js';
import * as shapes from './shapes.js';
import {
  principalByHandle,
  principalById,
  type Contact,
  type ContactRequest,
  type Principal,
  type World,
} from './world.js';

const MAX_REQUEST_MESSAGE_CHARS = 500;
const HANDLE = /^@?[a-z0-9._-]+(\/[a-z0-9._-]+)?$/i;

export type RequestAction = 'approve' | 'reject' | 'cancel';

/** @throws {Problem} 400 when the text cannot be a handle, 404 when nobody has it */
export function byHandle(world: World, handle: string): Principal {
  if (!HANDLE.test(handle.trim())) throw badRequest('Invalid handle format');
  const who = principalByHandle(world, handle);
  if (!who) throw notFound('Handle');
  return who;
}

/**
 * Asks for a contact. When the other side has asked already, this is its approval.
 *
 * @param pointer - where the request's text stands in the body
 * @throws {Problem} 409 for oneself, a contact or a request that is waiting; 422 for a text over 500 characters
 */
export function requestContact(
  change: Change,
  caller: Principal,
  recipient: Principal,
  message: string | null,
  pointer: string,
): ContactRequest {
  const { world } = change;
  if (message !== null && charactersIn(message) > MAX_REQUEST_MESSAGE_CHARS) {
    throw invalid(pointer, `should be at most ${MAX_REQUEST_MESSAGE_CHARS} character(s)`);
  }
  if (recipient.id === caller.id) throw conflict('You cannot add yourself as a contact');
  if (world.contacts.get(caller.id)?.has(recipient.id)) throw conflict('Already a contact');
  if (pendingBetween(world, caller.id, recipient.id)) throw conflict('A request is already pending');
  const asked = pendingBetween(world, recipient.id, caller.id);
  if (asked) return settle(change, asked, 'approve');

  if (world.requests.size >= world.limits.contactRequests) throw limitReached('contact requests');

  const request: ContactRequest = {
    id: world.newId(),
    requesterId: caller.id,
    recipientId: recipient.id,
    message,
    status: 'pending',
    insertedAt: world.timeline.next(),
    respondedAt: null,
  };
  change.add({ kind: 'request', request });
  change.push({
    to: [recipient.id],
    topic: contactsTopic(recipient),
    event: 'contact_request_received',
    payload: () => receivedPayload(world, recipient, request),
  });
  return request;
}

/**
 * Approves or rejects a request that was received, or cancels one that was sent.
 *
 * @throws {Problem} 403 on the wrong side of it, 409 when it is settled already
 */
export function respond(
  change: Change,
  caller: Principal,
  request: ContactRequest,
  action: RequestAction,
): ContactRequest {
  const rightful = action === 'cancel' ? request.requesterId : request.recipientId;
  if (rightful !== caller.id) throw forbidden('This request is not yours to answer in that way');
  if (request.status !== 'pending') throw conflict(`The request is already ${request.status}`);
  return settle(change, request, action);
}

/** @throws {Problem} 404 when they are no contacts */
export function removeContact(change: Change, caller: Principal, contact: Contact): void {
  for (const [holderId, contactId] of [
    [caller.id, contact.contactId],
    [contact.contactId, caller.id],
  ] as const) {
    const row = change.world.contacts.get(holderId)?.get(contactId);
    const holder = principalById(change.world, holderId);
    if (!row) continue;
    change.add({ kind: 'contact_gone', holderId, contactId });
    if (!holder) continue;
    change.push({
      to: [holderId],
      topic: contactsTopic(holder),
      event: 'contact_removed',
      payload: () => ({ id: row.id }),
    });
  }
}

/** Ends every contact of somebody who leaves the platform, and the requests that wait on either side. */
export function forgetContacts(change: Change, who: Principal): void {
  const { world } = change;
  for (const contact of [...(world.contacts.get(who.id)?.values() ?? [])]) removeContact(change, who, contact);
  for (const request of [...world.requests.values()]) {
    const isSide = request.requesterId === who.id || request.recipientId === who.id;
    if (isSide && request.status === 'pending') settle(change, request, 'cancel');
  }
}

/** @param id - of the contact's row, or of the user or agent in it */
export function contactById(world: World, caller: Principal, id: string): Contact {
  const contacts = world.contacts.get(caller.id);
  const found = contacts?.get(id) ?? [...(contacts?.values() ?? [])].find((contact) => contact.id === id);
  if (!found) throw notFound('Contact');
  return found;
}

export function contactByHandle(world: World, caller: Principal, handle: string): Contact {
  const found = world.contacts.get(caller.id)?.get(byHandle(world, handle).id);
  if (!found) throw notFound('Contact');
  return found;
}

/** A request that the caller is one side of; any other is hidden. */
export function requestById(world: World, caller: Principal, id: string): ContactRequest {
  const request = world.requests.get(id);
  if (!request || (request.requesterId !== caller.id && request.recipientId !== caller.id)) {
    throw notFound('Contact request');
  }
  return request;
}

/** The request that waits between the caller and a handle, on the side that the action is for. */
export function requestByHandle(
  world: World,
  caller: Principal,
  handle: string,
  action: RequestAction,
): ContactRequest {
  const other = byHandle(world, handle);
  const [from, to] = action === 'cancel' ? [caller.id, other.id] : [other.id, caller.id];
  const request = pendingBetween(world, from, to);
  if (!request) throw notFound('Contact request');
  return request;
}

/** Requests that wait for the caller, newest first. */
export function receivedRequests(world: World, callerId: string): ContactRequest[] {
  return [...world.requests.values()]
    .filter(({ recipientId, status }) => recipientId === callerId && status === 'pending')
    .reverse();
}

/** @param status - `all`, or one status */
export function sentRequests(world: World, callerId: string, status: string): ContactRequest[] {
  return [...world.requests.values()]
    .filter((request) => request.requesterId === callerId && (status === 'all' || request.status === status))
    .reverse();
}

function pendingBetween(world: World, requesterId: string, recipientId: string): ContactRequest | undefined {
  for (const request of world.requests.values()) {
    if (request.requesterId === requesterId && request.recipientId === recipientId && request.status === 'pending') {
      return request;
    }
  }
  return undefined;
}

const STATUS_AFTER = { approve: 'approved', reject: 'rejected', cancel: 'cancelled' } as const;

function settle(change: Change, request: ContactRequest, action: RequestAction): ContactRequest {
  const { world } = change;
  const at = world.timeline.next();
  const settled: ContactRequest = { ...request, status: STATUS_AFTER[action], respondedAt: at };
  change.add({ kind: 'request', request: settled });
  const sides = [request.requesterId, request.recipientId].map((id) => principalById(world, id));
  for (const side of sides) {
    if (!side) continue;
    change.push({
      to: [side.id],
      topic: contactsTopic(side),
      event: 'contact_request_updated',
      payload: () => ({ id: settled.id, status: settled.status }),
    });
  }
  if (action === 'approve') {
    connect(change, request.requesterId, request.recipientId, at);
    connect(change, request.recipientId, request.requesterId, at);
  }
  return settled;
}

function connect(change: Change, holderId: string, contactId: string, insertedAt: string): void {
  const { world } = change;
  const contact: Contact = { id: world.newId(), holderId, contactId, insertedAt };
  change.add({ kind: 'contact', contact });
  const holder = principalById(world, holderId);
  if (!holder) return;
  change.push({
    to: [holderId],
    topic: contactsTopic(holder),
    event: 'contact_added',
    payload: () => {
      const { id, handle, name, type, description, is_external, inserted_at } = shapes.agentContact(world, contact);
      return {
        id,
        handle,
        name,
        type,
        // Clients take a string here or nothing, not null.
        ...(description === null ? {} : { description }),
        is_external,
        is_remote: is_external,
        inserted_at,
      };
    },
  });
}

function receivedPayload(world: World, recipient: Principal, request: ContactRequest): object {
  if (recipient.kind === 'User') return shapes.contactRequest(world, request);
  const { message, ...rest } = shapes.receivedRequest(world, request);
  return message === null ? rest : { ...rest, message };
}

function contactsTopic({ kind, id }: Principal): string {
  return kind === 'Agent' ? `agent_contacts:${id}` : `user_contacts:${id}`;
}
