import type { Activity, Message, Participant, Room } from './wire.js';

/** Everything the page knows about one room. */
export interface RoomState {
  readonly room: Room;
  /** Oldest first. */
  messages: Message[];
  participants: Participant[];
  /** Where older messages go on; undefined until the room was looked at. */
  older: string | null | undefined;
  unread: number;
  readonly working: Set<string>;
  readonly stopped: Set<string>;
}

/** Messages kept per room; older ones are loaded again when somebody asks for them. */
const MAX_KEPT = 1_000;

/** What the page shows, and how pushes change it. */
export interface Model {
  readonly rooms: Map<string, RoomState>;
  selected: string | null;
  addRoom(room: Room): RoomState;
  removeRoom(roomId: string): void;
  /** Adds a message, or replaces the older form of it. */
  putMessage(message: Message): void;
  putParticipant(roomId: string, participant: Participant): void;
  removeParticipant(roomId: string, participantId: string): void;
  setActivity(activity: Activity): void;
}

export function createModel(): Model {
  const rooms = new Map<string, RoomState>();
  const model: Model = {
    rooms,
    selected: null,
    addRoom(room) {
      const known = rooms.get(room.id);
      if (known) return known;
      const state: RoomState = {
        room,
        messages: [],
        participants: [],
        older: undefined,
        unread: 0,
        working: new Set(),
        stopped: new Set(),
      };
      rooms.set(room.id, state);
      return state;
    },
    removeRoom(roomId) {
      rooms.delete(roomId);
      if (model.selected === roomId) model.selected = null;
    },
    putMessage(message) {
      const state = rooms.get(message.chat_room_id);
      if (!state) return;
      const index = state.messages.findIndex(({ id }) => id === message.id);
      if (index !== -1) {
        state.messages[index] = message;
        return;
      }
      const after = state.messages.findLastIndex(({ inserted_at }) => inserted_at <= message.inserted_at);
      state.messages.splice(after + 1, 0, message);
      if (state.messages.length > MAX_KEPT) state.messages.shift();
      if (model.selected !== message.chat_room_id) state.unread += 1;
    },
    putParticipant(roomId, participant) {
      const state = rooms.get(roomId);
      if (!state) return;
      state.participants = [...state.participants.filter(({ id }) => id !== participant.id), participant];
    },
    removeParticipant(roomId, participantId) {
      const state = rooms.get(roomId);
      if (state) state.participants = state.participants.filter(({ id }) => id !== participantId);
    },
    setActivity({ chat_room_id: roomId, agent_id: agentId, working }) {
      const set = rooms.get(roomId)?.working;
      if (working) set?.add(agentId);
      else set?.delete(agentId);
    },
  };
  return model;
}
