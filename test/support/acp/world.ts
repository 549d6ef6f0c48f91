import { randomUUID } from 'node:crypto';
import { GenericAdapter, type GenericCallback } from '../../../src/adapters/generic.js';
import { Agent } from '../../../src/agent.js';
import { EMPTY_SEED, startSandbox, type DevRoom, type NewAgent, type Sandbox } from '../../../src/sandbox/index.js';

/** A peer that runs in the test's own process. */
export interface Peer {
  readonly handle: string;
  readonly id: string;
  readonly agent: Agent;
}

/** A sandbox with one person, the agent that editors speak through, and peers. */
export interface World {
  readonly sandbox: Sandbox;
  readonly editor: NewAgent;
  /** Environment of a command that serves editors as that agent. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts a peer with this brain. */
  peer(name: string, brain: GenericCallback): Promise<Peer>;
  /** A person at the sandbox, for rooms. */
  readonly rooms: readonly DevRoom[];
  room(id: string): DevRoom;
  stop(): Promise<void>;
}

/** What a peer says to everything. */
export const echoes: GenericCallback = async ({ message, tools }) => {
  const said = message.content.replace(/^(?:@\S+ )+/, '').split('\n\n[ACP Session Context]')[0] ?? '';
  await tools.sendMessage(`echo: ${said}`, [{ id: message.senderId }]);
};

/** A peer that thinks until it is stopped. */
export const ponders: GenericCallback = ({ signal }) =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

export async function startWorld(): Promise<World> {
  const sandbox = await startSandbox({ port: 0, seed: EMPTY_SEED });
  const { dev } = sandbox;
  dev.addUser({ handle: 'ana', name: 'Ana' });
  const add = (name: string) => dev.addAgent({ ownerHandle: 'ana', name, description: `is ${name}`, id: randomUUID() });
  const editor = add('Editor');
  const peers: Peer[] = [];
  return {
    sandbox,
    editor,
    env: {
      BAND_AGENT_ID: editor.id,
      BAND_API_KEY: editor.apiKey,
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
    },
    async peer(name, brain) {
      const made = add(name);
      const agent = Agent.create({
        adapter: new GenericAdapter(brain),
        agentId: made.id,
        apiKey: made.apiKey,
        restUrl: sandbox.restUrl,
        wsUrl: sandbox.wsUrl,
        config: { singleInstance: false },
      });
      await agent.start();
      const peer = { handle: made.handle, id: made.id, agent };
      peers.push(peer);
      return peer;
    },
    get rooms() {
      return dev.state().rooms;
    },
    room(id) {
      const found = dev.state().rooms.find((room) => room.id === id);
      if (!found) throw new Error(`no room ${id}`);
      return found;
    },
    async stop() {
      await Promise.allSettled(peers.map(({ agent }) => agent.stop()));
      await sandbox.close();
    },
  };
}
