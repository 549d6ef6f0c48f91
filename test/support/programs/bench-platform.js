/**
 * The other side of an A2A bench in one process: a sandbox of the built package in memory, and an echo peer made by hand
 * that claims, answers and marks over the sandbox's REST and socket like any agent. All calls that one read of the socket
 * leads to are one write into the one connection that the peer keeps, so that little of the process's time is the peer's.
 * Says `{ restUrl, wsUrl }` once the peer listens.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { DEMO, startSandbox } from 'band-gateway/testing';
import { WebSocket } from 'ws';

const { id, apiKey } = DEMO.echo;
const { port, restUrl, wsUrl } = await startSandbox({ port: 0 });

const rest = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1');
await once(rest, 'connect');
/** What is done with the answers to come, in their order. */
const awaited = [];
let unread = '';
rest.on('data', (text) => {
  unread += text;
  for (let end = unread.indexOf('\r\n\r\n'); end !== -1; end = unread.indexOf('\r\n\r\n')) {
    const head = unread.slice(0, end);
    const next = end + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (unread.length < next) return;
    const body = unread.slice(end + 4, next);
    unread = unread.slice(next);
    if (!head.startsWith('HTTP/1.1 2')) throw new Error(`the peer was refused: ${head} ${body}`);
    awaited.shift()?.(body);
  }
});
rest.on('close', () => {
  throw new Error('the peer lost its connection');
});

let unsent = '';
function ask(method, path, body, done) {
  if (unsent === '') process.nextTick(send);
  unsent +=
    `${method} /api/v1/agent${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${apiKey}\r\n` +
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  awaited.push(done);
}

function send() {
  rest.write(unsent);
  unsent = '';
}

const inHand = new Set();
function work(roomId, message) {
  if (inHand.has(message.id)) return;
  inHand.add(message.id);
  const messages = `/chats/${roomId}/messages`;
  const reply = JSON.stringify({ message: { content: 'ok', mentions: [{ id: message.sender_id }] } });
  ask('POST', `${messages}/${message.id}/processing`, '');
  ask('POST', messages, reply);
  ask('POST', `${messages}/${message.id}/processed`, '', () => inHand.delete(message.id));
}

/** What was said before the room was joined is pushed to nobody. */
function lookBack(roomId) {
  ask('GET', `/chats/${roomId}/messages/next`, '', (body) => {
    if (body !== '') work(roomId, JSON.parse(body).data);
  });
}

const socket = new WebSocket(`${wsUrl}?api_key=${apiKey}&agent_id=${id}&vsn=2.0.0`);
await once(socket, 'open');
let refs = 0;
function join(topic) {
  const ref = String((refs += 1));
  socket.send(JSON.stringify([ref, ref, topic, 'phx_join', {}]));
}
// A connection that says nothing for long is taken for dead.
setInterval(() => {
  ask('GET', '/me', '');
  socket.send(JSON.stringify([null, String((refs += 1)), 'phoenix', 'heartbeat', {}]));
}, 20_000);
socket.on('message', (data) => {
  const [, , topic, event, payload] = JSON.parse(data.toString());
  if (event === 'room_added') join(`chat_room:${payload.id}`);
  const roomId = topic.slice('chat_room:'.length);
  if (event === 'message_created') work(roomId, payload);
  if (event === 'phx_reply' && topic.startsWith('chat_room:')) lookBack(roomId);
  if (event === 'phx_reply' && topic.startsWith('agent_rooms:')) process.send({ restUrl, wsUrl });
});
join(`agent_rooms:${id}`);
process.on('disconnect', () => process.exit(0));
