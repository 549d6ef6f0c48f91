import { createApi, Refusal } from './api.js';
import { byId } from './dom.js';
import { createModel } from './model.js';
import { createPage } from './page.js';
import { openSocket } from './socket.js';
import type { Activity, Message, Participant, Room } from './wire.js';

/** Pushes → model → page; the person's deeds → REST. Nothing is shown that the platform did not say. */
async function run(apiKey: string): Promise<void> {
  const api = createApi(apiKey);
  const me = await api.profile();
  const model = createModel();
  byId('sign-in', HTMLElement).hidden = true;
  byId('app', HTMLElement).hidden = false;
  byId('me', HTMLElement).textContent = `@${me.handle}`;

  const page = createPage({ api, me, model });
  const socket = openSocket(apiKey, {
    onPush: (topic, event, payload) => {
      receive(topic, event, payload);
      page.draw();
    },
    onConnected: (connected) => {
      page.connected(connected);
      if (connected) void page.attempt(reload);
    },
  });
  page.socket = socket;
  socket.join(`user_rooms:${me.id}`);

  /** Nothing is replayed over a socket, so what was missed is read. */
  async function reload(): Promise<void> {
    const rooms = await api.rooms();
    const known = new Set(rooms.map(({ id }) => id));
    for (const id of model.rooms.keys()) if (!known.has(id)) model.removeRoom(id);
    for (const room of rooms) page.listen(room);
    const open = model.selected ?? rooms[0]?.id;
    if (open !== undefined) await page.select(open);
    page.draw();
  }

  function receive(topic: string, event: string, payload: unknown): void {
    const roomId = topic.slice(topic.indexOf(':') + 1);
    switch (event) {
      case 'room_added':
        page.listen(payload as Room);
        if (model.selected === null) void page.attempt(() => page.select((payload as Room).id));
        return;
      case 'room_removed':
        page.forget((payload as Room).id);
        return;
      case 'message_created':
      case 'message_updated':
      case 'event_created':
        model.putMessage(payload as Message);
        return;
      case 'agent_activity':
        model.setActivity(payload as Activity);
        return;
      case 'participant_added':
        model.putParticipant(roomId, payload as Participant);
        return;
      case 'participant_removed':
        model.removeParticipant(roomId, (payload as Participant).id);
        return;
      default:
        return;
    }
  }
}

/** The key that the server lends to a visitor on its own machine; anybody else brings their own. */
async function lentKey(): Promise<string | null> {
  const response = await fetch('/console/session');
  if (!response.ok) return null;
  const { api_key: key } = (await response.json()) as { api_key?: string };
  return key ?? null;
}

function askForKey(message: string): void {
  const form = byId('sign-in', HTMLFormElement);
  form.hidden = false;
  byId('sign-in-message', HTMLElement).textContent = message;
  form.addEventListener(
    'submit',
    (event) => {
      event.preventDefault();
      enter(byId('key', HTMLInputElement).value.trim());
    },
    { once: true },
  );
}

function enter(key: string): void {
  run(key).catch((error: unknown) => {
    const refused = error instanceof Refusal && error.status === 401;
    askForKey(refused ? 'This key is not known here.' : `The platform cannot be reached: ${String(error)}`);
  });
}

lentKey().then(
  (key) => {
    if (key === null) askForKey("This console works with a person's key of this sandbox.");
    else enter(key);
  },
  (error: unknown) => {
    askForKey(`The platform cannot be reached: ${String(error)}`);
  },
);
