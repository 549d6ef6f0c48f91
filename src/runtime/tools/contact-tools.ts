import { publicError, ValueError } from '../../base/band-errors.js';
import type { ContactTools } from '../../core/tools.js';
import type { BandContacts } from '../../platform/rest/band-rest.js';

/**
 * The agent's contact tools over REST. What the platform answers surfaces as ApiError.
 *
 * @param signal - ends calls that are made for a turn
 */
export function createContactTools(contacts: BandContacts, signal: AbortSignal | null = null): ContactTools {
  const call = signal ? { signal } : {};
  return {
    async listContacts({ page = 1, pageSize = 50 } = {}) {
      return surfacing(contacts.list({ page, pageSize, ...call }));
    },

    async addContact(handle, message) {
      return surfacing(contacts.add(handle, message ?? undefined, call));
    },

    async removeContact({ handle, contactId }) {
      if (contactId) return surfacing(contacts.remove({ contactId }, call));
      if (handle) return surfacing(contacts.remove({ handle }, call));
      throw new ValueError('either handle or contact_id must be given');
    },

    async listContactRequests({ page = 1, pageSize = 50, sentStatus = 'pending' } = {}) {
      return surfacing(contacts.requests({ page, pageSize, sentStatus, ...call }));
    },

    async respondContactRequest(action, { handle, requestId }) {
      if (requestId) return surfacing(contacts.respond(action, { requestId }, call));
      if (handle) return surfacing(contacts.respond(action, { handle }, call));
      throw new ValueError('either handle or request_id must be given');
    },
  };
}

/** Waits for a call of the wire and lets its failure surface as a public error. */
async function surfacing<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw publicError(error);
  }
}
