import { z } from 'zod';
import { data, json } from '../answer.js';
import type { Platform } from '../platform.js';
import {
  byHandle,
  contactByHandle,
  contactById,
  receivedRequests,
  removeContact,
  requestByHandle,
  requestById,
  requestContact,
  respond,
  sentRequests,
} from '../world/contacts.js';
import { answerAsk, plainListing, readAsk } from '../world/paging.js';
import { badRequest } from '../world/problem.js';
import * as shapes from '../world/shapes.js';
import type { Contact, Principal } from '../world/world.js';
import { parseBody } from './body.js';
import { choice, requiredText, text, uuid } from './fields.js';
import { agentRoute, userRoute, type Call, type Route } from './router.js';

const ACTIONS = ['approve', 'reject', 'cancel'] as const;
const SENT_STATUSES = ['pending', 'approved', 'rejected', 'cancelled', 'all'] as const;

const agentAdd = z.object({ handle: requiredText, message: text.nullish() });
const removal = z.object({ handle: text.nullish(), contact_id: uuid.nullish() });
const response = z.object({
  action: z.enum(ACTIONS, { error: 'is invalid' }),
  handle: text.nullish(),
  request_id: uuid.nullish(),
});
const userRequest = z.object({
  contact_request: z.object(
    { recipient_handle: requiredText, message: text.nullish() },
    { error: 'must be an object' },
  ),
});
const resolution = z.object({ handle: requiredText });

/** Contacts on both surfaces. */
export function contactRoutes(platform: Platform): Route[] {
  const { world } = platform;

  const contactsOf = (caller: Principal): Contact[] => [...(world.contacts.get(caller.id)?.values() ?? [])];
  const remove = ({ caller, body }: Call<Principal>) => {
    const { handle, contact_id: contactId } = parseBody(removal, body);
    if (handle == null && contactId == null) throw badRequest('Either handle or contact_id is required');
    const contact =
      contactId == null ? contactByHandle(world, caller, handle ?? '') : contactById(world, caller, contactId);
    platform.run((change) => {
      removeContact(change, caller, contact);
    });
    return data({ status: 'removed' });
  };
  const paged = <Row>(query: URLSearchParams, rows: readonly Row[], shape: (row: Row) => object) => {
    const answered = answerAsk(readAsk(query, 'page', 'contacts'), plainListing(rows), 'contacts');
    return json(200, { data: answered.rows.map(shape), metadata: answered.pages });
  };

  return [
    agentRoute('GET', '/contacts', ({ caller, query }) =>
      paged(query, contactsOf(caller), (contact) => shapes.agentContact(world, contact)),
    ),

    agentRoute('POST', '/contacts/add', ({ caller, body }) => {
      const { handle, message } = parseBody(agentAdd, body);
      const recipient = byHandle(world, handle);
      const { id, status } = platform.run((change) =>
        requestContact(change, caller, recipient, message ?? null, '/message'),
      );
      return data({ id, status }, 201);
    }),

    agentRoute('POST', '/contacts/remove', remove),

    agentRoute('GET', '/contacts/requests', ({ caller, query }) => {
      const ask = readAsk(query, 'page', 'requests');
      const status = choice(query, 'sent_status', SENT_STATUSES) ?? 'pending';
      const received = answerAsk(ask, plainListing(receivedRequests(world, caller.id)), '');
      const sent = answerAsk(ask, plainListing(sentRequests(world, caller.id, status)), '');
      const totals = ({ pages }: { pages: { total_count: number; total_pages: number } }) => ({
        total: pages.total_count,
        total_pages: pages.total_pages,
      });
      return json(200, {
        data: {
          received: received.rows.map((request) => shapes.receivedRequest(world, request)),
          sent: sent.rows.map((request) => shapes.sentRequest(world, request)),
        },
        metadata: {
          page: received.pages.page,
          page_size: received.pages.page_size,
          received: totals(received),
          sent: totals(sent),
        },
      });
    }),

    agentRoute('POST', '/contacts/requests/respond', ({ caller, body }) => {
      const { action, handle, request_id: requestId } = parseBody(response, body);
      if (handle == null && requestId == null) throw badRequest('Either handle or request_id is required');
      const request =
        requestId == null
          ? requestByHandle(world, caller, handle ?? '', action)
          : requestById(world, caller, requestId);
      const { id, status } = platform.run((change) => respond(change, caller, request, action));
      return data({ id, status });
    }),

    userRoute('GET', '/contacts', ({ caller, query }) =>
      paged(query, contactsOf(caller), (contact) => shapes.myContact(world, contact)),
    ),
    userRoute('GET', '/contacts/requests', ({ caller, query }) =>
      paged(query, receivedRequests(world, caller.id), (request) => shapes.contactRequest(world, request)),
    ),
    userRoute('GET', '/contacts/requests/sent', ({ caller, query }) => {
      const status = choice(query, 'status', SENT_STATUSES) ?? 'pending';
      return paged(query, sentRequests(world, caller.id, status), (request) => shapes.contactRequest(world, request));
    }),
    userRoute('POST', '/contacts/requests', ({ caller, body }) => {
      const { contact_request: wanted } = parseBody(userRequest, body);
      const recipient = byHandle(world, wanted.recipient_handle);
      const request = platform.run((change) =>
        requestContact(change, caller, recipient, wanted.message ?? null, '/contact_request/message'),
      );
      return data(shapes.contactRequest(world, request), 201);
    }),
    ...(['approve', 'reject'] as const).map((action) =>
      userRoute('POST', `/contacts/requests/:id/${action}`, ({ caller, params }) => {
        const request = requestById(world, caller, params['id'] ?? '');
        const { id, status } = platform.run((change) => respond(change, caller, request, action));
        return data({ id, status });
      }),
    ),
    userRoute('DELETE', '/contacts/requests/:id', ({ caller, params }) => {
      const request = requestById(world, caller, params['id'] ?? '');
      const { id, status } = platform.run((change) => respond(change, caller, request, 'cancel'));
      return data({ id, status });
    }),
    userRoute('POST', '/contacts/remove', remove),
    userRoute('POST', '/contacts/resolve', ({ body }) => {
      const { handle } = parseBody(resolution, body);
      const who = byHandle(world, handle);
      return data({ handle: who.handle, name: who.name, type: who.kind });
    }),
  ];
}
