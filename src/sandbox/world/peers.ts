import * as shapes from './shapes.js';
import { principalById, type Agent, type Principal, type User, type World } from './world.js';

export type PeerShape = ReturnType<typeof shapes.peer>;

/** Whom a user or agent may add to a room: first those the registry knows, then those who are only contacts. */
export function peersOf(world: World, caller: Principal): PeerShape[] {
  const contacts = world.contacts.get(caller.id);
  const registry = caller.kind === 'Agent' ? agentRegistry(world, caller) : userRegistry(world, caller);
  const known = new Set(registry.map(({ id }) => id));
  const peers = registry.map((who) =>
    shapes.peer(who, 'registry', { isContact: contacts?.has(who.id) ?? false, online: world.isOnline(who.id) }),
  );
  for (const contactId of contacts?.keys() ?? []) {
    const who = known.has(contactId) ? undefined : principalById(world, contactId);
    if (who) peers.push(shapes.peer(who, 'contact', { isContact: true, online: world.isOnline(contactId) }));
  }
  return peers;
}

export function isReachable(world: World, caller: Principal, target: Principal): boolean {
  if (target.id === caller.id) return true;
  if (world.contacts.get(caller.id)?.has(target.id)) return true;
  if (target.kind === 'Agent') return target.global || target.ownerId === ownerIdOf(caller);
  // People of one installation form one organization; an agent reaches only its owner.
  return caller.kind === 'User' || target.id === caller.ownerId;
}

function agentRegistry(world: World, agent: Agent): Principal[] {
  const owner = world.users.get(agent.ownerId);
  return [...ownAndGlobal(world, agent.ownerId).filter(({ id }) => id !== agent.id), ...(owner ? [owner] : [])];
}

function userRegistry(world: World, user: User): Principal[] {
  const others = [...world.users.values()].filter(({ id }) => id !== user.id);
  return [...ownAndGlobal(world, user.id), ...others];
}

function ownAndGlobal(world: World, ownerId: string): Agent[] {
  const own: Agent[] = [];
  for (const id of world.agentsOf.get(ownerId) ?? []) {
    const agent = world.agents.get(id);
    if (agent) own.push(agent);
  }
  const global = [...world.agents.values()].filter((agent) => agent.global && agent.ownerId !== ownerId);
  return [...own, ...global];
}

const ownerIdOf = (who: Principal): string => (who.kind === 'Agent' ? who.ownerId : who.id);
