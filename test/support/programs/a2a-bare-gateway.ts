/**
 * The work of one A2A round trip with nothing in between: a bare HTTP server that writes the marker and the message into
 * a room, waits for the reply on a socket, and marks it. Environment as of `a2a-gateway.ts`. Says `{ url }`.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';

const { BAND_REST_URL = '', BAND_WS_URL = '', AGENT_ID = '', API_KEY = '', PEER_ID = '' } = process.env;
const dispatcher = new Agent({ connections: 64 });
const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };

async function call(method: 'GET' | 'POST', path: string, body?: object): Promise<{ data: { id: string } }> {
  const answer = await request(`${BAND_REST_URL}/api/v1/agent${path}`, {
    method,
    dispatcher,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  return (text === '' ? {} : JSON.parse(text)) as { data: { id: string } };
}

const socket = new WebSocket(`${BAND_WS_URL}?api_key=${API_KEY}&agent_id=${AGENT_ID}&vsn=2.0.0`);
await new Promise((resolve) => socket.once('open', resolve));
const waiting = new Map<string, (message: { id: string; content: string }) => void>();
const joined = new Map<string, () => void>();
let refs = 0;
// A socket that says nothing for long is taken for dead.
setInterval(() => {
  socket.send(JSON.stringify([null, String((refs += 1)), 'phoenix', 'heartbeat', {}]));
}, 20_000);
socket.on('message', (data: Buffer) => {
  const [, ref, topic, event, payload] = JSON.parse(data.toString('utf8')) as [
    string | null,
    string | null,
    string,
    string,
    { id: string; content: string },
  ];
  if (event === 'phx_reply' && ref !== null) joined.get(ref)?.();
  if (event === 'message_created') waiting.get(topic.slice('chat_room:'.length))?.(payload);
});

const rooms = new Map<string, Promise<string>>();

async function openRoom(): Promise<string> {
  const { data } = await call('POST', '/chats', { chat: {} });
  await call('POST', `/chats/${data.id}/participants`, { participant: { participant_id: PEER_ID, role: 'member' } });
  const ref = String((refs += 1));
  await new Promise<void>((resolve) => {
    joined.set(ref, resolve);
    socket.send(JSON.stringify([ref, ref, `chat_room:${data.id}`, 'phx_join', {}]));
  });
  return data.id;
}

interface Asked {
  readonly id: unknown;
  readonly params: {
    readonly message: { readonly contextId: string; readonly parts: readonly { readonly text: string }[] };
  };
}

async function answer({ id, params }: Asked): Promise<object> {
  const { contextId, parts } = params.message;
  const opening = rooms.get(contextId) ?? openRoom();
  rooms.set(contextId, opening);
  const roomId = await opening;
  const metadata = { gateway_context_id: contextId, gateway_room_id: roomId };
  await call('POST', `/chats/${roomId}/events`, { event: { content: 'context', message_type: 'task', metadata } });
  const reply = new Promise<{ id: string; content: string }>((resolve) => waiting.set(roomId, resolve));
  const content = `@Echo ${parts[0]?.text ?? ''}`;
  await call('POST', `/chats/${roomId}/messages`, { message: { content, mentions: [{ id: PEER_ID, name: 'Echo' }] } });
  const message = await reply;
  const marks = call('POST', `/chats/${roomId}/messages/${message.id}/processing`).then(() =>
    call('POST', `/chats/${roomId}/messages/${message.id}/processed`),
  );
  const task = { id: randomUUID(), contextId, artifacts: [{ parts: [{ text: message.content }] }] };
  await marks;
  return { jsonrpc: '2.0', id, result: { task } };
}

const server = createServer((incoming, response) => {
  const chunks: Buffer[] = [];
  incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
  incoming.on('end', () => {
    void answer(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Asked).then((body) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(body));
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
