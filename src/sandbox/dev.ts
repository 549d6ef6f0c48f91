import { GatewayError } from '../base/errors.js';
import { isUuid } from '../base/ids.js';
import type { DevRoom, DevState, NewAgent, NewUser, SandboxDev, Seed, SeedAgent, SeedUser } from './options.js';
import type { Platform } from './platform.js';
import type { RestFaults } from './rest/faults.js';
import { seedOf } from './seed.js';
import type { SocketServer } from './sockets/server.js';
import { addAgent, addUser } from './world/people.js';
import { invalid, notFound, Problem } from './world/problem.js';
import * as shapes from './world/shapes.js';
import { principalByHandle, type Room } from './world/world.js';

export interface DevDeps {
  readonly platform: Platform;
  readonly sockets: SocketServer;
  readonly faults: RestFaults;
  readonly newKey: (kind: 'User' | 'Agent') => string;
  readonly seed: Seed | 'demo' | 'empty';
}

/** The development surface: people and agents from nothing, things broken on purpose, and a look inside. */
export function createDev({ platform, sockets, faults, newKey, seed }: DevDeps): SandboxDev & { applySeed(): void } {
  const { world, hub } = platform;

  const dev = {
    addUser(user: SeedUser): NewUser {
      return refusing(() => {
        const { id, handle, apiKey } = platform.run((change) =>
          addUser(change, {
            handle: user.handle,
            name: user.name,
            email: user.email ?? `${user.handle}@sandbox.invalid`,
            id: checkedId(user.id) ?? world.newId(),
            apiKey: checkedKey(user.apiKey) ?? newKey('User'),
          }),
        );
        return { id, handle, apiKey };
      });
    },

    addAgent(agent: SeedAgent): NewAgent {
      return refusing(() => {
        const owner = principalByHandle(world, agent.ownerHandle);
        if (owner?.kind !== 'User') throw notFound('Owner');
        const { id, handle, apiKey } = platform.run((change) =>
          addAgent(change, {
            ownerId: owner.id,
            name: agent.name,
            description: agent.description,
            id: checkedId(agent.id) ?? world.newId(),
            apiKey: checkedKey(agent.apiKey) ?? newKey('Agent'),
            global: agent.global ?? false,
            tags: agent.tags ?? [],
          }),
        );
        return { id, handle, apiKey, ownerId: owner.id };
      });
    },

    reset(to: Seed | 'demo' | 'empty' = seed): void {
      dev.clearFaults();
      hub.forgetWithheld();
      sockets.dropAll();
      platform.empty();
      apply(to);
    },

    state(): DevState {
      return {
        users: [...world.users.values()].map(({ id, handle, name }) => ({ id, handle, name })),
        agents: [...world.agents.values()].map(({ id, handle, name }) => ({ id, handle, name })),
        rooms: [...world.rooms.values()].map(roomState),
        sockets: [...hub.all()].map(({ principalId, topics }) => ({
          principalId,
          kind: world.users.has(principalId) ? ('User' as const) : ('Agent' as const),
          topics,
        })),
      };
    },

    closeSockets: (principalId: string, code: number, reason?: string) => sockets.closeOf(principalId, code, reason),

    crashChannel: (principalId: string, topic: string) =>
      hub.of(principalId).filter((connection) => connection.crash(topic)).length,

    faultUpgrades: sockets.fault.bind(sockets),
    faultRest: faults.add.bind(faults),
    faultPushes: hub.fault.bind(hub),

    releasePushes(): number {
      const { sent, handed } = hub.release();
      platform.delivered(handed);
      return sent;
    },

    clearFaults(): void {
      faults.clear();
      hub.clearFaults();
      dev.releasePushes();
      sockets.clearFaults();
    },

    set: (switches: Parameters<SandboxDev['set']>[0]) => {
      Object.assign(platform.switches, switches);
    },

    /** The seed of an empty world; a world that was read from disk keeps what it has. */
    applySeed(): void {
      if (world.users.size === 0 && world.agents.size === 0) apply(seed);
    },
  };

  const apply = (to: Seed | 'demo' | 'empty'): void => {
    const { users, agents } = seedOf(to);
    for (const user of users) dev.addUser(user);
    for (const agent of agents) dev.addAgent(agent);
  };
  return dev;
}

function roomState(room: Room): DevRoom {
  return {
    id: room.record.id,
    title: room.record.title,
    participants: [...room.members.values()].map(({ id, kind, role }) => ({ id, type: kind, role })),
    stopped: [...room.executions.values()].filter(({ stopped }) => stopped).map(({ agentId }) => agentId),
    messages: room.messages.map((message) => ({
      id: message.id,
      content: message.content,
      messageType: message.messageType,
      senderId: message.senderId,
      metadata: shapes.messageMetadata(message, 'none'),
      insertedAt: message.insertedAt,
      deliveries: Object.fromEntries(
        [...message.deliveries].map(([agentId, delivery]) => [agentId, shapes.deliveryStatus(delivery)]),
      ),
    })),
  };
}

function checkedId(id: string | undefined): string | undefined {
  if (id !== undefined && !isUuid(id)) throw invalid('/id', 'is invalid');
  return id?.toLowerCase();
}

function checkedKey(key: string | undefined): string | undefined {
  if (key !== undefined && (key === '' || /\s/.test(key))) throw invalid('/api_key', 'is invalid');
  return key;
}

function refusing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new GatewayError('SANDBOX_REFUSED', { message: error.message, cause: error });
  }
}
