import { z } from 'zod';
import type { Logger } from '../../base/log.js';
import { dataOf, pageOf } from './answers.js';
import type { BandContacts, ContactSelector } from './band-rest.js';
import { badAnswer, creating, marking, reading, type Transport } from './transport.js';

const recordSchema = z.record(z.string(), z.unknown());
const requestsSchema = z.looseObject({ data: recordSchema, metadata: recordSchema.nullish() });

export function createContacts(send: Transport, log: Logger): BandContacts {
  return {
    async list({ page, pageSize, ...call } = {}) {
      const query = { page, page_size: pageSize };
      const answer = await send(reading('/contacts', query), call);
      return pageOf(answer, recordSchema, { page, pageSize }, log);
    },

    async add(handle, message, call) {
      const body = { handle, ...(message === undefined ? {} : { message }) };
      const answer = await send(creating('/contacts/add', body), call);
      return dataOf(answer, recordSchema);
    },

    async remove(selector, call) {
      const body = contactSelector(selector);
      const answer = await send(marking('/contacts/remove', body), call);
      return dataOf(answer, recordSchema);
    },

    async requests({ page, pageSize, sentStatus, ...call } = {}) {
      const query = { page, page_size: pageSize, sent_status: sentStatus };
      const answer = await send(reading('/contacts/requests', query), call);
      const parsed = requestsSchema.safeParse(answer.json);
      if (!parsed.success) throw badAnswer(answer.request, 'the data has another shape', parsed.error);
      return { data: parsed.data.data, metadata: parsed.data.metadata ?? {} };
    },

    async respond(action, selector, call) {
      const target = 'handle' in selector ? { handle: selector.handle } : { request_id: selector.requestId };
      // A second answer to one request is a conflict that would hide the success of the first, so it counts as creating.
      const answer = await send(creating('/contacts/requests/respond', { action, ...target }), call);
      return dataOf(answer, recordSchema);
    },
  };
}

function contactSelector(selector: ContactSelector): Record<string, string> {
  return 'handle' in selector ? { handle: selector.handle } : { contact_id: selector.contactId };
}
