import { z } from 'zod';
import { pages } from './chat-specs.js';
import { toolSpec, type ToolSpec } from './tool-spec.js';

/** The agent's contacts: on offer with the capability `contacts`, and always in the hub room. */
export const CONTACT_TOOLS: readonly ToolSpec[] = [
  toolSpec({
    name: 'band_list_contacts',
    category: 'contacts',
    effect: 'observe',
    description: 'Lists your contacts.',
    parameters: z.object(pages),
    run: (tools, { page, page_size }) => tools.listContacts({ page, pageSize: page_size }),
  }),
  toolSpec({
    name: 'band_add_contact',
    category: 'contacts',
    effect: 'act',
    description: 'Asks somebody to become your contact, or accepts when they asked first.',
    parameters: z.object({
      handle: z.string().describe('Handle of the person or agent, such as @user or @user/agent.'),
      message: z.string().optional().describe('A word to go with the request.'),
    }),
    run: (tools, { handle, message }) => tools.addContact(handle, message ?? null),
  }),
  toolSpec({
    name: 'band_remove_contact',
    category: 'contacts',
    effect: 'act',
    description: 'Removes a contact, named by handle or by contact id.',
    parameters: z.object({
      handle: z.string().optional().describe('Handle of the contact.'),
      contact_id: z.string().optional().describe('Id of the contact.'),
    }),
    run: (tools, { handle, contact_id }) =>
      tools.removeContact({ handle: handle ?? null, contactId: contact_id ?? null }),
  }),
  toolSpec({
    name: 'band_list_contact_requests',
    category: 'contacts',
    effect: 'observe',
    description: 'Lists contact requests: those you received and have not answered, and those you sent.',
    parameters: z.object({
      ...pages,
      sent_status: z
        .enum(['pending', 'approved', 'rejected', 'cancelled', 'all'])
        .default('pending')
        .describe('Which of the requests that you sent to list.'),
    }),
    run: (tools, { page, page_size, sent_status }) =>
      tools.listContactRequests({ page, pageSize: page_size, sentStatus: sent_status }),
  }),
  toolSpec({
    name: 'band_respond_contact_request',
    category: 'contacts',
    effect: 'act',
    description:
      'Approves or rejects a request that you received, or cancels one that you sent. Name it by the handle of the ' +
      'other side or by request id.',
    parameters: z.object({
      action: z.enum(['approve', 'reject', 'cancel']).describe('What to do.'),
      handle: z.string().optional().describe('Handle of the other side.'),
      request_id: z.string().optional().describe('Id of the request.'),
    }),
    run: (tools, { action, handle, request_id }) =>
      tools.respondContactRequest(action, { handle: handle ?? null, requestId: request_id ?? null }),
  }),
];
