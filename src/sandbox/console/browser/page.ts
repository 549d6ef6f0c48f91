import type { Api } from './api.js';
import { setUpComposer } from './composer.js';
import { byId, el } from './dom.js';
import type { Model, RoomState } from './model.js';
import type { Socket } from './socket.js';
import { messageView } from './timeline.js';
import type { Message, Participant, Profile, Room } from './wire.js';

/** The page as the pushes see it. */
export interface Page {
  socket: Socket | null;
  listen(room: Room): void;
  forget(roomId: string): void;
  select(roomId: string): Promise<void>;
  connected(yes: boolean): void;
  /** Draws once, at the next frame. */
  draw(): void;
  /** Runs a deed; what goes wrong is shown. */
  attempt(deed: () => Promise<unknown>): Promise<void>;
}

const MOST_READS = 3;

/** Draws the model, and turns what the person does into calls. */
export function createPage({ api, me, model }: { api: Api; me: Profile; model: Model }): Page {
  const rooms = byId('rooms', HTMLElement);
  const title = byId('title', HTMLElement);
  const timeline = byId('timeline', HTMLElement);
  const people = byId('people', HTMLElement);
  const addable = byId('addable', HTMLSelectElement);
  const notice = byId('notice', HTMLElement);
  let frame = 0;
  let drawn: { roomId: string | null; views: Map<string, { message: Message; key: string; view: HTMLElement }> } = {
    roomId: null,
    views: new Map(),
  };

  const current = (): RoomState | null => (model.selected === null ? null : (model.rooms.get(model.selected) ?? null));
  const others = (): Participant[] => current()?.participants.filter(({ id }) => id !== me.id) ?? [];
  const complain = (message: string): void => {
    notice.textContent = message;
    notice.hidden = message === '';
  };

  const page: Page = {
    socket: null,
    listen(room) {
      model.addRoom(room);
      page.socket?.join(`chat_room:${room.id}`);
      page.socket?.join(`room_participants:${room.id}`);
    },
    forget(roomId) {
      page.socket?.leave(`chat_room:${roomId}`);
      page.socket?.leave(`room_participants:${roomId}`);
      model.removeRoom(roomId);
    },
    async select(roomId) {
      model.selected = roomId;
      const state = model.rooms.get(roomId);
      if (!state) return;
      state.unread = 0;
      page.draw();
      const [messages] = await Promise.all([api.messages(roomId, null), refreshParticipants(state)]);
      for (const message of messages.messages) model.putMessage(message);
      state.older = messages.older;
      await refreshExecutions(state);
      await refreshAddable(roomId);
      page.draw();
    },
    connected(yes) {
      const light = byId('link', HTMLElement);
      light.textContent = yes ? 'connected' : 'connecting…';
      light.classList.toggle('on', yes);
    },
    draw() {
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        drawRooms();
        drawTimeline();
        drawPeople();
      });
    },
    async attempt(deed) {
      try {
        complain('');
        await deed();
      } catch (error) {
        complain(error instanceof Error ? error.message : String(error));
      }
      page.draw();
    },
  };

  /** Read again where somebody came or went meanwhile: what was read is older than what was pushed. */
  async function refreshParticipants(state: RoomState): Promise<void> {
    for (let tries = 0; tries < MOST_READS; tries += 1) {
      const before = state.participants;
      const read = await api.participants(state.room.id);
      if (state.participants !== before) continue;
      state.participants = [...read];
      return;
    }
  }

  async function refreshExecutions(state: RoomState): Promise<void> {
    for (const { id, type } of state.participants) {
      if (type !== 'Agent') continue;
      // Only an agent's owner may look; of other people's agents the console shows what is pushed.
      const executions = await api.executions(id).catch(() => []);
      const here = executions.find(({ chat_room_id: roomId }) => roomId === state.room.id);
      if (here?.status === 'stopped') state.stopped.add(id);
      else state.stopped.delete(id);
      if (here?.working) state.working.add(id);
      else state.working.delete(id);
    }
  }

  async function refreshAddable(roomId: string): Promise<void> {
    const peers = await api.addable(roomId);
    if (model.selected !== roomId) return;
    const chosen = addable.value;
    addable.replaceChildren(
      ...peers.map(({ id, name, handle }) => el('option', { value: id }, `${name} (${handle ?? id})`)),
    );
    // Who is chosen stays so: the list may come anew between choosing and adding.
    if (peers.some(({ id }) => id === chosen)) addable.value = chosen;
    byId('add', HTMLFormElement).hidden = peers.length === 0;
  }

  function drawRooms(): void {
    const states = [...model.rooms.values()].sort((a, b) => b.room.inserted_at.localeCompare(a.room.inserted_at));
    rooms.replaceChildren(
      ...states.map(({ room, unread }) =>
        el(
          'li',
          {},
          el(
            'button',
            {
              type: 'button',
              'aria-current': room.id === model.selected ? 'true' : null,
              click: () => void page.attempt(() => page.select(room.id)),
            },
            el('span', { class: 'name' }, room.title),
            unread > 0 ? el('span', { class: 'unread' }, String(unread)) : null,
          ),
        ),
      ),
    );
    byId('no-rooms', HTMLElement).hidden = states.length > 0;
  }

  /** Redraws only the messages that changed, so that a long room stays quick and a selection in it stays put. */
  function drawTimeline(): void {
    const state = current();
    title.textContent = state?.room.title ?? 'No room';
    byId('room', HTMLElement).hidden = state === null;
    const atEnd = timeline.scrollHeight - timeline.scrollTop - timeline.clientHeight < 80;
    const changedRoom = drawn.roomId !== model.selected;
    if (changedRoom) drawn = { roomId: model.selected, views: new Map() };
    const participants = state?.participants ?? [];
    const names = participants.map(({ id, name }) => `${id}${name}`).join();
    const nodes = (state?.messages ?? []).map((message) => {
      const known = drawn.views.get(message.id);
      if (known?.message === message && known.key === names) return known.view;
      const view = messageView(message, participants, me.id);
      drawn.views.set(message.id, { message, key: names, view });
      return view;
    });
    const older = state?.older
      ? [el('button', { type: 'button', class: 'older', click: () => void page.attempt(loadOlder) }, 'Load older')]
      : [];
    const working = [...(state?.working ?? [])].map((id) =>
      el(
        'p',
        { class: 'working' },
        `${state?.participants.find((one) => one.id === id)?.name ?? 'An agent'} is working…`,
      ),
    );
    const nothing =
      state && nodes.length === 0 && state.older === null
        ? [el('p', { class: 'nothing' }, 'Nothing said yet. Add an agent, then write to it.')]
        : [];
    const wanted: Node[] = [...older, ...nothing, ...nodes, ...working];
    const same =
      wanted.length === timeline.childNodes.length && wanted.every((node, i) => node === timeline.childNodes[i]);
    if (!same) timeline.replaceChildren(...wanted);
    if (atEnd || changedRoom) timeline.scrollTop = timeline.scrollHeight;
  }

  async function loadOlder(): Promise<void> {
    const state = current();
    if (!state?.older) return;
    const page = await api.messages(state.room.id, state.older);
    for (const message of page.messages) model.putMessage(message);
    state.older = page.older;
  }

  function drawPeople(): void {
    const state = current();
    people.replaceChildren(...(state ? state.participants.map((who) => personView(who, state)) : []));
  }

  function personView(who: Participant, state: RoomState): HTMLElement {
    const { id: roomId } = state.room;
    const stopped = state.stopped.has(who.id);
    const control = (mode: 'stop' | 'play'): void => {
      void page.attempt(async () => {
        await api.control(roomId, who.id, mode);
        await refreshExecutions(state);
      });
    };
    const status = stopped ? 'stopped' : state.working.has(who.id) ? 'working' : who.online === false ? 'offline' : '';
    const buttons =
      who.type === 'Agent'
        ? [
            stopped
              ? el(
                  'button',
                  {
                    type: 'button',
                    click: () => {
                      control('play');
                    },
                  },
                  'Play',
                )
              : el(
                  'button',
                  {
                    type: 'button',
                    click: () => {
                      control('stop');
                    },
                  },
                  'Stop',
                ),
            el(
              'button',
              {
                type: 'button',
                'aria-label': `Remove ${who.name}`,
                click: () => void page.attempt(() => remove(roomId, who.id)),
              },
              'Remove',
            ),
          ]
        : [];
    return el(
      'li',
      { class: who.type === 'Agent' ? 'agent' : 'person' },
      el(
        'div',
        {},
        el('strong', {}, who.id === me.id ? `${who.name} (you)` : who.name),
        el('small', {}, ` ${who.handle ?? ''}`),
      ),
      status === '' ? null : el('span', { class: `status ${status}` }, status),
      buttons.length === 0 ? null : el('div', { class: 'buttons', role: 'group', 'aria-label': who.name }, ...buttons),
    );
  }

  async function remove(roomId: string, participantId: string): Promise<void> {
    await api.removeParticipant(roomId, participantId);
    model.removeParticipant(roomId, participantId);
    await refreshAddable(roomId);
  }

  const composer = setUpComposer({
    people: others,
    complain,
    async send(content, mentionIds) {
      complain('');
      const state = current();
      if (state) await api.post(state.room.id, content, mentionIds);
    },
  });

  onSubmit('new-room', async (form) => {
    const input = byId('new-title', HTMLInputElement);
    const room = await api.createRoom(input.value.trim());
    form.reset();
    page.listen(room);
    await page.select(room.id);
    composer.focus();
  });
  onSubmit('add', async () => {
    const state = current();
    if (!state || addable.value === '') return;
    const added = await api.addParticipant(state.room.id, addable.value);
    model.putParticipant(state.room.id, added);
    await refreshAddable(state.room.id);
    composer.focus();
  });
  byId('delete', HTMLButtonElement).addEventListener('click', () => {
    const state = current();
    if (!state || !confirm(`Delete the room “${state.room.title}”?`)) return;
    void page.attempt(async () => {
      await api.deleteRoom(state.room.id);
      page.forget(state.room.id);
      const next = [...model.rooms.keys()].at(-1);
      if (next !== undefined) await page.select(next);
    });
  });

  function onSubmit(id: string, deed: (form: HTMLFormElement) => Promise<void>): void {
    const form = byId(id, HTMLFormElement);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void page.attempt(() => deed(form));
    });
  }
  return page;
}
