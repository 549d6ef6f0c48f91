import type { Change } from './change.js';
import { forgetContacts } from './contacts.js';
import { dropFromRoom } from './participants.js';
import { limitReached, notFound, Problem } from './problem.js';
import type { Agent, User, World } from './world.js';

const HANDLE = /^[a-z0-9._-]+$/;

export interface PersonInput {
  readonly handle: string;
  readonly name: string;
  readonly email: string;
  readonly id: string;
  readonly apiKey: string;
}

export interface AgentInput {
  readonly ownerId: string;
  readonly name: string;
  readonly description: string;
  readonly id: string;
  readonly apiKey: string;
  readonly global: boolean;
  readonly tags: readonly string[];
}

/** @throws {Problem} 422 for a malformed handle or a blank name, 409 when handle, id or key is taken, 403 at the limit */
export function addUser(change: Change, input: PersonInput): User {
  const { world } = change;
  if (world.users.size >= world.limits.users) throw limitReached('users');
  if (!HANDLE.test(input.handle))
    throw new Problem(422, 'validation_error', 'Handles are made of a-z, 0-9, ".", "_", "-"');
  if (input.name.trim() === '') throw new Problem(422, 'validation_error', 'A name must not be blank');
  if (world.byHandle.has(input.handle)) throw new Problem(409, 'conflict', 'Handle is taken');
  refuseTaken(world, input);
  const at = world.timeline.next();
  const user: User = { kind: 'User', ...input, insertedAt: at, updatedAt: at };
  change.add({ kind: 'user', user });
  return user;
}

/** @throws {Problem} 422 for a blank name or description, 409 when id or key is taken, 403 at the limit */
export function addAgent(change: Change, input: AgentInput): Agent {
  const { world } = change;
  const owner = world.users.get(input.ownerId);
  if (!owner) throw notFound('Owner');
  if (world.agents.size >= world.limits.agents) throw limitReached('agents');
  const blank: Record<string, string[]> = {};
  for (const field of ['name', 'description'] as const) {
    if (input[field].trim() === '') blank[`/agent/${field}`] = ["can't be blank"];
  }
  if (Object.keys(blank).length > 0) throw new Problem(422, 'validation_error', 'Validation failed', blank);
  refuseTaken(world, input);
  const at = world.timeline.next();
  const agent: Agent = {
    kind: 'Agent',
    ...input,
    name: input.name.trim(),
    handle: freeHandle(world, owner.handle, slugOf(input.name)),
    insertedAt: at,
    updatedAt: at,
  };
  change.add({ kind: 'agent', agent });
  return agent;
}

/** Takes an agent out of every room and off the platform; its key is worth nothing from now on. */
export function removeAgent(change: Change, agent: Agent): void {
  const { world } = change;
  for (const room of [...(world.roomsOf.get(agent.id) ?? [])]) dropFromRoom(change, room, agent.id);
  forgetContacts(change, agent);
  change.add({ kind: 'agent_gone', agentId: agent.id });
}

export function renameUser(change: Change, user: User, name: string): User {
  const renamed: User = { ...user, name, updatedAt: change.world.timeline.next() };
  change.add({ kind: 'user', user: renamed });
  return renamed;
}

/** Lower case, runs of other characters as one `-`, none at the ends. */
export function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return slug === '' ? 'agent' : slug;
}

function freeHandle(world: World, owner: string, slug: string): string {
  let handle = `${owner}/${slug}`;
  for (let n = 2; world.byHandle.has(handle); n += 1) handle = `${owner}/${slug}-${n}`;
  return handle;
}

function refuseTaken(world: World, { id, apiKey }: { id: string; apiKey: string }): void {
  if (world.users.has(id) || world.agents.has(id)) throw new Problem(409, 'conflict', 'Id is taken');
  if (world.byKey.has(apiKey)) throw new Problem(409, 'conflict', 'Key is taken');
}
