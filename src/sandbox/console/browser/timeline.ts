import { el } from './dom.js';
import { pieces } from './mention.js';
import type { Delivery, Message, Participant } from './wire.js';

const EVENT_NAMES: Readonly<Record<string, string>> = {
  thought: 'thought',
  tool_call: 'tool call',
  tool_result: 'tool result',
  task: 'task',
  error: 'error',
  attention: 'attention',
};

/** One message or event as it stands in the timeline. */
export function messageView(message: Message, participants: readonly Participant[], ownId: string): HTMLElement {
  const isText = message.message_type === 'text';
  const own = message.sender_id === ownId;
  const head = el(
    'header',
    {},
    el('strong', {}, own ? 'You' : message.sender_name),
    isText ? null : el('span', { class: 'kind' }, EVENT_NAMES[message.message_type] ?? message.message_type),
    el('time', { datetime: message.inserted_at, title: message.inserted_at }, timeOf(message.inserted_at)),
  );
  const body = el('div', { class: 'body' }, ...contentOf(message, participants));
  return el(
    'article',
    { class: `${isText ? 'text' : 'event'} ${message.message_type}${own ? ' own' : ''}`, 'data-id': message.id },
    head,
    body,
    isText ? deliveriesOf(message, participants) : detailsOf(message),
  );
}

function contentOf(message: Message, participants: readonly Participant[]): Node[] {
  const names = new Map<string, string>([
    ...(message.metadata.mentions ?? []).map(({ id, name }): [string, string] => [id, name ?? id]),
    ...participants.map(({ id, name }): [string, string] => [id, name]),
  ]);
  return pieces(message.content).map((piece) =>
    'text' in piece
      ? document.createTextNode(piece.text)
      : el('span', { class: 'mention' }, `@${names.get(piece.mention) ?? 'somebody'}`),
  );
}

function deliveriesOf(message: Message, participants: readonly Participant[]): HTMLElement | null {
  const deliveries = Object.entries(message.metadata.delivery_status ?? {});
  if (deliveries.length === 0) return null;
  const name = (id: string) => participants.find((one) => one.id === id)?.name ?? 'an agent';
  return el(
    'ul',
    { class: 'deliveries', 'aria-label': 'Delivery' },
    ...deliveries.map(([agentId, delivery]) =>
      el('li', { class: delivery.status, title: errorOf(delivery) }, `${name(agentId)}: ${delivery.status}`),
    ),
  );
}

function errorOf(delivery: Delivery): string | null {
  return delivery.attempts?.findLast(({ error }) => error !== undefined)?.error ?? null;
}

function detailsOf({ metadata }: Message): HTMLElement | null {
  if (Object.keys(metadata).length === 0) return null;
  return el('details', {}, el('summary', {}, 'metadata'), el('pre', {}, JSON.stringify(metadata, null, 2)));
}

function timeOf(stamp: string): string {
  return new Date(stamp).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}
