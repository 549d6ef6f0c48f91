import type { AdapterFeatures } from '../core/features.js';
import { Roster, type ParticipantNews } from '../core/participants.js';
import type { Turn } from '../core/turn.js';
import type { ChatMessage, Peer } from '../platform/wire/objects.js';
import { AgentTools } from '../runtime/tools/agent-tools.js';
import { createFakeRest, type FakeRest, type PlatformCall, type PostedEvent, type PostedMessage } from './fake-rest.js';

export interface FakeAgentToolsOptions {
  /** Default `room-1`. */
  readonly roomId?: string;
  /** Default `agent-1`. */
  readonly agentId?: string;
  /** Who is in the room beside the agent; default one user `@user`, id `user-1`. */
  readonly participants?: readonly ParticipantNews[];
  /** Whom the agent may bring in; default nobody. */
  readonly peers?: readonly Peer[];
  /** What `fetchRoomContext` finds beside what the agent writes; default nothing. */
  readonly context?: readonly ChatMessage[];
  readonly turn?: Turn;
  readonly features?: AdapterFeatures;
  readonly isHubRoom?: boolean;
}

/**
 * The tools of a turn without a platform, for tests of adapters. These are the runtime's own tools over a platform in
 * memory, so they check, refuse and note exactly what the real ones do.
 *
 * ```ts
 * const tools = new FakeAgentTools();
 * await adapter.onEvent(fakeAgentInput({ content: 'hello', tools }));
 * expect(tools.messages).toEqual([{ roomId: 'room-1', content: 'hi', mentions: [{ id: 'user-1', handle: 'user' }] }]);
 * ```
 */
export class FakeAgentTools extends AgentTools {
  readonly #rest: FakeRest;

  constructor(options: FakeAgentToolsOptions = {}) {
    const agentId = options.agentId ?? 'agent-1';
    const everyone = [
      { id: agentId, name: 'Agent', type: 'Agent', handle: 'user/agent' },
      ...(options.participants ?? [{ id: 'user-1', name: 'User', type: 'User', handle: 'user' }]),
    ];
    const roster = new Roster();
    roster.replace(everyone);
    const rest = createFakeRest({
      agentId,
      participants: everyone.map((one) => ({ ...one, type: one.type ?? 'User' })),
      peers: options.peers ?? [],
      context: options.context ?? [],
    });
    super({
      rest,
      roomId: options.roomId ?? 'room-1',
      agentId,
      roster,
      isHubRoom: options.isHubRoom ?? false,
      ...(options.turn ? { turn: options.turn } : {}),
      ...(options.features ? { features: options.features } : {}),
    });
    this.#rest = rest;
  }

  /** What was said in rooms, in order. */
  get messages(): readonly PostedMessage[] {
    return this.#rest.messages;
  }

  /** What was written beside the conversation, in order. */
  get events(): readonly PostedEvent[] {
    return this.#rest.events;
  }

  /** Every call of the platform, in order. */
  get calls(): readonly PlatformCall[] {
    return this.#rest.calls;
  }

  /**
   * Makes the next platform call of that name fail: `postMessage`, `postEvent`, `addParticipant`, `contacts.add`, …
   *
   * @param error - from {@link refusal}, for an answer of the platform; any other for a fault under it
   */
  failNext(method: string, error: Error): void {
    this.#rest.failNext(method, error);
  }
}
