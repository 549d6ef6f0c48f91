import { z } from 'zod';
import { toolSpec, type ToolSpec } from './tool-spec.js';

const identifier = z.string().describe('Handle (with or without @), name or id.');

export const pages = {
  page: z.int().min(1).default(1).describe('Page number, from 1.'),
  page_size: z.int().min(1).max(100).default(50).describe('Entries per page.'),
};

/** The tools of the room, always on offer. */
export const CHAT_TOOLS: readonly ToolSpec[] = [
  toolSpec({
    name: 'band_send_message',
    category: 'chat',
    effect: 'reply',
    description:
      'Says something in the room. Only the participants you mention receive it, so mention everyone you mean to ' +
      'reach. This is how you answer: text that you do not send with this tool is not delivered.',
    parameters: z.object({
      content: z.string().describe('What to say.'),
      mentions: z
        .array(z.string())
        .describe('Handles of the participants to reach, such as @user or @user/agent. At least one.'),
    }),
    run: (tools, { content, mentions }) => tools.sendMessage(content, mentions),
  }),
  toolSpec({
    name: 'band_send_event',
    category: 'chat',
    effect: 'observe',
    description:
      'Writes a note beside the conversation: a thought, an error, or the state of a task. People can see it, nobody ' +
      'is notified, and it does not count as an answer.',
    parameters: z.object({
      content: z.string().describe('The note.'),
      message_type: z.enum(['thought', 'error', 'task']).describe('What kind of note it is.'),
      metadata: z.record(z.string(), z.unknown()).optional().describe('Structured data that goes with the note.'),
    }),
    run: (tools, { content, message_type, metadata }) => tools.sendEvent(content, message_type, metadata ?? null),
  }),
  toolSpec({
    name: 'band_no_reply',
    category: 'chat',
    effect: 'decline',
    description:
      'Ends your turn without an answer. Use it when nothing needs to be said, instead of sending a message that ' +
      'says so.',
    parameters: z.object({ reason: z.string().optional().describe('Why, for the log only.') }),
    run: (tools, { reason }) => tools.noReply(reason ?? null),
  }),
  toolSpec({
    name: 'band_add_participant',
    category: 'chat',
    effect: 'act',
    description: 'Brings a peer into this room. Find peers with band_lookup_peers first.',
    parameters: z.object({
      identifier,
      role: z.enum(['owner', 'admin', 'member']).default('member').describe('Role in the room.'),
    }),
    aliases: { name: 'identifier' },
    run: (tools, args) => tools.addParticipant(args.identifier, args.role),
  }),
  toolSpec({
    name: 'band_remove_participant',
    category: 'chat',
    effect: 'act',
    description: 'Takes somebody out of this room.',
    parameters: z.object({ identifier }),
    aliases: { name: 'identifier' },
    run: (tools, args) => tools.removeParticipant(args.identifier),
  }),
  toolSpec({
    name: 'band_get_participants',
    category: 'chat',
    effect: 'observe',
    description: 'Lists who is in this room, yourself included, with the handles to mention them by.',
    parameters: z.object({}),
    run: (tools) => tools.getParticipants(),
  }),
  toolSpec({
    name: 'band_lookup_peers',
    category: 'chat',
    effect: 'observe',
    description: 'Lists people and agents that are not in this room yet and that you may bring in.',
    parameters: z.object(pages),
    run: (tools, { page, page_size }) => tools.lookupPeers(page, page_size),
  }),
  toolSpec({
    name: 'band_create_chatroom',
    category: 'chat',
    effect: 'act',
    description: 'Creates a new room with you as its owner and returns its id. You stay in this room as well.',
    parameters: z.object({ task_id: z.string().optional().describe('Id of the task that the room is about.') }),
    run: (tools, { task_id }) => tools.createChatroom(task_id ?? null),
  }),
];
