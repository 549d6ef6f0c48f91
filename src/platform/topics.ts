/** Names of the channels an agent may join, made and taken apart here only. */
export const topics = {
  control: (agentId: string) => `agent_control:${agentId}`,
  rooms: (agentId: string) => `agent_rooms:${agentId}`,
  contacts: (agentId: string) => `agent_contacts:${agentId}`,
  chatRoom: (roomId: string) => `chat_room:${roomId}`,
  participants: (roomId: string) => `room_participants:${roomId}`,
};

export type TopicKind = 'control' | 'rooms' | 'contacts' | 'chat_room' | 'participants' | 'other';

const KINDS: Readonly<Record<string, TopicKind>> = {
  agent_control: 'control',
  agent_rooms: 'rooms',
  agent_contacts: 'contacts',
  chat_room: 'chat_room',
  room_participants: 'participants',
};

/** What a topic is about: its kind and the id behind the colon. */
export function parseTopic(topic: string): { kind: TopicKind; id: string } {
  const colon = topic.indexOf(':');
  if (colon < 0) return { kind: 'other', id: '' };
  return { kind: KINDS[topic.slice(0, colon)] ?? 'other', id: topic.slice(colon + 1) };
}

/** The room a topic belongs to, or null for the agent's own topics. */
export function roomOfTopic(topic: string): string | null {
  const { kind, id } = parseTopic(topic);
  return kind === 'chat_room' || kind === 'participants' ? id : null;
}
