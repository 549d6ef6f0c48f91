import type { Principal, World } from '../world/world.js';

/** What the platform says to a join: yes, or why not. */
export type JoinVerdict = 'ok' | 'unauthorized' | 'unmatched topic';

/** Whether somebody may listen to a topic now. Asked at the join, and again for every push of a room. */
export function judgeJoin(world: World, who: Principal, topic: string): JoinVerdict {
  const at = topic.indexOf(':');
  const id = topic.slice(at + 1);
  switch (at === -1 ? '' : topic.slice(0, at)) {
    case 'agent_control':
    case 'agent_rooms':
    case 'agent_contacts':
      return who.kind === 'Agent' && who.id === id ? 'ok' : 'unauthorized';
    case 'user_rooms':
    case 'user_contacts':
      return who.kind === 'User' && who.id === id ? 'ok' : 'unauthorized';
    case 'chat_room':
    case 'room_participants':
      return world.rooms.get(id)?.members.has(who.id) === true ? 'ok' : 'unauthorized';
    default:
      return 'unmatched topic';
  }
}
