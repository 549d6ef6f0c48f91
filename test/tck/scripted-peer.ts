import { setTimeout as sleep } from 'node:timers/promises';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Sandbox } from '../../src/sandbox/index.js';

const block = (directive: object): string => `\n\`\`\`a2a\n${JSON.stringify(directive)}\n\`\`\``;
const FILE = block({ parts: [{ raw: 'dGNr', filename: 'output.txt', mediaType: 'text/plain' }] }).slice(1);
const FILE_URL = block({
  parts: [{ url: 'https://example.com/output.txt', filename: 'output.txt', mediaType: 'text/plain' }],
}).slice(1);
const STREAMING_TIMEOUT_MS = Number(process.env['TCK_STREAMING_TIMEOUT'] ?? 2) * 1_000;

/** What the suite expects for the message ids of its scenarios; the longest prefix counts. */
const SCRIPT: Readonly<Record<string, readonly string[]>> = {
  '': ['Hello from TCK'],
  'tck-artifact-text': ['Generated text content'],
  'tck-artifact-file': [FILE],
  'tck-artifact-file-url': [FILE_URL],
  'tck-artifact-data': [block({ parts: [{ data: { key: 'value', count: 42 } }] }).slice(1)],
  'tck-message-response': [`Direct message response${block({ as: 'message' })}`],
  'tck-input-required': [`Please provide input${block({ state: 'input-required' })}`],
  'tck-reject-task': [`rejected${block({ state: 'rejected' })}`],
  'tck-stream-001': ['Stream hello from TCK'],
  'tck-stream-002': ['done'],
  'tck-stream-003': ['Stream task lifecycle'],
  'tck-stream-ordering-001': ['Ordered output'],
  'tck-stream-artifact-text': ['Streamed text content'],
  'tck-stream-artifact-file': [FILE],
  'tck-stream-artifact-chunked': [
    `chunk-1 ${block({ artifact: { id: 'c', lastChunk: false }, final: false })}`,
    `chunk-2${block({ artifact: { id: 'c', append: true, lastChunk: true } })}`,
  ],
};

/**
 * The peer of the compliance suite: it answers by the client's message id, which it reads from the binding event.
 *
 * @param asksBack - an id that no scenario names gets a question, so that the task stays open: the 0.3 suite continues
 *   and cancels the tasks it makes, the 1.0 suite wants them ended
 */
export function scriptedPeer(sandbox: Pick<Sandbox, 'dev'>, gatewayId: string, asksBack: boolean): GenericAdapter {
  return new GenericAdapter(async ({ message, tools }) => {
    const messageId = clientMessageId(sandbox, message.roomId, message.id, gatewayId);
    const answer = (text: string) => tools.sendMessage(text, [{ id: message.senderId }]);
    if (messageId.startsWith('test-resubscribe-message-id')) {
      await answer(`working${block({ state: 'working' })}`);
      await sleep(2 * STREAMING_TIMEOUT_MS + 1_000);
    }
    const prefix = Object.keys(SCRIPT)
      .filter((one) => messageId.startsWith(one))
      .sort((a, b) => b.length - a.length)[0];
    const script = prefix === '' && asksBack ? 'tck-input-required' : prefix;
    for (const text of SCRIPT[script ?? ''] ?? []) await answer(text);
  });
}

function clientMessageId({ dev }: Pick<Sandbox, 'dev'>, roomId: string, messageId: string, gatewayId: string): string {
  const rows = dev.state().rooms.find(({ id }) => id === roomId)?.messages ?? [];
  const before = rows.slice(
    0,
    rows.findIndex(({ id }) => id === messageId),
  );
  const marker = before.findLast(({ messageType, senderId }) => messageType === 'task' && senderId === gatewayId);
  const given = marker?.metadata['gateway_message_id'];
  return typeof given === 'string' ? given : '';
}
