/**
 * The other side of an A2A bench in one process: a sandbox in memory, and an echo peer made by hand that claims, answers
 * and marks over the sandbox's REST and socket like any agent, with nothing in between. Says `{ restUrl, wsUrl }` once the
 * peer listens.
 */
import { Agent } from 'undici';
import { WebSocket } from 'ws';
import { httpCall } from '../../../src/platform/rest/http-call.js';
import { DEMO, startSandbox } from '../../../src/sandbox/index.js';

const { id, apiKey } = DEMO.echo;
const sandbox = await startSandbox({ port: 0 });
const dispatcher = new Agent({ connections: 64 });
const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };

async function call(method: 'GET' | 'POST', path: string, body?: object): Promise<string> {
  const { status, text } = await httpCall(dispatcher, {
    options: {
      origin: sandbox.restUrl,
      method,
      path: `/api/v1/agent${path}`,
      headers,
      body: body ? JSON.stringify(body) : null,
    },
    signal: undefined,
    maxAnswerBytes: Number.POSITIVE_INFINITY,
    tooLarge: () => new Error('no answer is too large'),
  });
  if (status > 299) throw new Error(`${path}: ${status} ${text}`);
  return text;
}

interface Asked {
  readonly id: string;
  readonly sender_id: string;
}

const inHand = new Set<string>();

async function work(roomId: string, message: Asked): Promise<void> {
  if (inHand.has(message.id)) return;
  inHand.add(message.id);
  const messages = `/chats/${roomId}/messages`;
  await call('POST', `${messages}/${message.id}/processing`);
  await call('POST', messages, { message: { content: 'ok', mentions: [{ id: message.sender_id }] } });
  await call('POST', `${messages}/${message.id}/processed`);
  inHand.delete(message.id);
}

/** What was said before the room was joined is pushed to nobody. */
async function lookBack(roomId: string): Promise<void> {
  const text = await call('GET', `/chats/${roomId}/messages/next`);
  if (text !== '') await work(roomId, (JSON.parse(text) as { data: Asked }).data);
}

const socket = new WebSocket(`${sandbox.wsUrl}?api_key=${apiKey}&agent_id=${id}&vsn=2.0.0`);
await new Promise((resolve) => socket.once('open', resolve));
let refs = 0;
function join(topic: string): void {
  const ref = String((refs += 1));
  socket.send(JSON.stringify([ref, ref, topic, 'phx_join', {}]));
}
// A socket that says nothing for long is taken for dead.
setInterval(() => {
  socket.send(JSON.stringify([null, String((refs += 1)), 'phoenix', 'heartbeat', {}]));
}, 20_000);
socket.on('message', (data: Buffer) => {
  const [, , topic, event, payload] = JSON.parse(data.toString('utf8')) as [
    string | null,
    string | null,
    string,
    string,
    Asked,
  ];
  if (event === 'room_added') join(`chat_room:${payload.id}`);
  const roomId = topic.slice('chat_room:'.length);
  if (event === 'message_created') void work(roomId, payload);
  if (event === 'phx_reply' && topic.startsWith('chat_room:')) void lookBack(roomId);
  if (event === 'phx_reply' && topic.startsWith('agent_rooms:')) {
    process.send?.({ restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl });
  }
});
join(`agent_rooms:${id}`);
process.on('disconnect', () => process.exit(0));
