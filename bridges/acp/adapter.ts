import type { Stream } from '@agentclientprotocol/sdk';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger, type Logger } from '../../src/base/log.js';
import { optionsBeside } from '../../src/core/adapter-options.js';
import type { CleanupReason } from '../../src/core/framework-adapter.js';
import type { HistoryProvider } from '../../src/core/history.js';
import type { PlatformMessage } from '../../src/core/platform-message.js';
import { SimpleAdapter, type MessageContext, type RestClientPorts } from '../../src/core/simple-adapter.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import { parseOptions } from '../../src/config/setting.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import type { ChatMessage } from '../../src/platform/wire/objects.js';
import { bandAccess } from './band.js';
import type { Authentication, EditorConnection } from './client/connection.js';
import { AcpFault } from './errors.js';
import { isRejection, rejection } from './rejection.js';
import { createAcpServer, type AcpServer } from './server.js';
import type { IndexStore } from './session/session-index.js';
import { acpSettings, type AcpOptions, type AcpServerOptions } from './settings.js';
import { listenForEditors, type LocalListener } from './stdio/local-socket.js';
import { GATEWAY_VERSION } from './version.js';

/** The world of an adapter, where a program has its own. */
export interface AcpPorts {
  readonly clock?: Clock;
  readonly log?: Logger;
  /** For the REST client; address and key come from the runtime. */
  readonly rest?: RestClientPorts;
  /** Keeps the session index over restarts; without one it is found again on Band. */
  readonly indexStore?: IndexStore | null;
  /** Where later editors of this host attach; null: nowhere. Default: beside the lock of the agent. */
  readonly socketPath?: ((agentId: string) => string) | null;
}

/**
 * Joins ACP editors to Band rooms: hand it to an Agent, and connect editors with {@link BandACPServerAdapter.connect}
 * or through the local socket beside the agent's lock. One session is one room.
 *
 * One message: editor → session → room → peers; back: runtime → `onMessage` → session → editor.
 */
export class BandACPServerAdapter extends SimpleAdapter {
  readonly options: AcpOptions;
  readonly #ports: AcpPorts;
  readonly #log: Logger;
  readonly #clock: Clock;
  #server: Promise<AcpServer> | null = null;
  #up: AcpServer | null = null;
  #isConnected = true;
  /** Somebody else's server outlives this adapter's Agent. */
  readonly #isGuest: boolean;
  #rest: BandRest | null = null;
  #listener: LocalListener | null = null;

  /**
   * @param options - any of the settings of the group `acp`, in camelCase
   * @param ports - the world, for tests and hosts
   * @param server - one that already serves editors while Band is not reached yet; left out, the adapter makes its own
   * @throws {TypeError} for an option it does not have
   * @throws {ValidationError} for a bad value, or an unknown field inside an option
   */
  constructor(options: AcpServerOptions = {}, ports: AcpPorts = {}, server: AcpServer | null = null) {
    super(optionsBeside(acpSettings, options));
    this.options = server?.options ?? parseOptions(acpSettings, options, 'BandACPServerAdapter');
    this.#ports = ports;
    this.#log = ports.log ?? silentLogger;
    this.#clock = ports.clock ?? systemClock;
    this.#server = server ? Promise.resolve(server) : null;
    this.#isGuest = server !== null;
    this.#up = server;
  }

  /** A message is handed on in a millisecond, so the rooms are not told of work. */
  readonly reportsWorkingState = false;

  protected override get judgesTurns(): boolean {
    return false;
  }

  /**
   * Serves an editor on a stream of JSON-RPC messages.
   *
   * @param principal - whose sessions the editor sees; null is the person at this host
   */
  async connect(stream: Stream, principal: string | null = null): Promise<EditorConnection> {
    return (await this.#serverUp()).connect(stream, principal);
  }

  /** Editors connected now, their sessions, and prompts that run or wait. */
  get editors(): { readonly connections: number; readonly sessions: number; readonly prompts: number } {
    const sessions = this.#up?.sessions;
    return {
      connections: this.#up?.connections ?? 0,
      sessions: sessions?.size ?? 0,
      prompts: sessions?.openPrompts ?? 0,
    };
  }

  /** People in a turn hear when the connection is down for a while. */
  onConnection(isConnected: boolean): void {
    this.#isConnected = isConnected;
    this.#up?.connectionChanged(isConnected);
  }

  override async onStarted(agentName: string, agentDescription: string): Promise<void> {
    await super.onStarted(agentName, agentDescription);
    const { agentId } = this.requirePlatform();
    const server = await this.#serverUp();
    this.#rest = this.buildRestClient({ clock: this.#clock, log: this.#log, ...this.#ports.rest });
    const me = await this.#rest.getMe();
    server.gate.set({ kind: 'ready', access: bandAccess(this.#rest, me) });
    const { socketPath } = this.#ports;
    if (socketPath === null) return;
    this.#listener = await listenForEditors({
      path: socketPath?.(agentId),
      agentId,
      log: this.#log,
      maxMessageBytes: this.options.maxMessageBytes,
      connect: (stream) => server.connect(stream),
    });
  }

  override async onMessage(
    msg: PlatformMessage,
    _tools: AgentToolsProtocol,
    _history: HistoryProvider,
    _participantsMsg: string | null,
    _contactsMsg: string | null,
    ctx: MessageContext,
  ): Promise<void> {
    const server = await this.#serverUp();
    await server.sessions.deliver(toRow(msg), ctx.roomId, ctx.signal);
  }

  /** A participant came or went: commands, targets and notices follow. */
  async onParticipants(
    roomId: string,
    change: { readonly kind: 'added' | 'removed'; readonly id: string; readonly name: string; readonly type: string },
  ): Promise<void> {
    const { kind, id, name, type } = change;
    const person = { id: id.toLowerCase(), name, type, handle: null, description: null };
    (await this.#serverUp()).sessions.participantsChanged(roomId, { kind, person });
  }

  override async onCleanup(roomId: string, context?: { readonly reason: CleanupReason }): Promise<void> {
    if (context?.reason === 'shutdown' || context === undefined) return;
    (await this.#serverUp()).sessions.roomGone(roomId);
  }

  override async cleanupAll(): Promise<void> {
    const listener = this.#listener;
    this.#listener = null;
    await listener?.close();
    const server = await this.#server;
    if (this.#isGuest) {
      if (server?.gate.state.kind === 'ready') server.gate.set({ kind: 'waiting', error: null });
      return;
    }
    this.#server = null;
    this.#up = null;
    await server?.close();
  }

  #serverUp(): Promise<AcpServer> {
    this.#server ??= this.#create();
    return this.#server;
  }

  async #create(): Promise<AcpServer> {
    this.#up = await createAcpServer({
      options: this.options,
      version: GATEWAY_VERSION,
      authentication: this.#authentication(),
      clock: this.#clock,
      log: this.#log,
      indexStore: this.#ports.indexStore,
    });
    this.#up.connectionChanged(this.#isConnected);
    return this.#up;
  }

  /** Inside an Agent the key is the runtime's: it was good at the start and is asked about again on demand. */
  #authentication(): Authentication {
    let good = true;
    return {
      get isGood() {
        return good;
      },
      check: async (signal) => {
        if (!this.#rest) throw new AcpFault('platform_unavailable');
        try {
          await this.#rest.getMe({ signal });
          good = true;
        } catch (error) {
          good &&= !isRejection(error);
          throw isRejection(error) ? rejection(error) : error;
        }
      },
    };
  }
}

/** A message of the runtime in the wire's spelling, as the REST API would give it. */
function toRow(msg: PlatformMessage): ChatMessage {
  return {
    id: msg.id,
    content: msg.content,
    message_type: msg.messageType,
    sender_id: msg.senderId,
    sender_type: msg.senderType,
    sender_name: msg.senderName,
    chat_room_id: msg.roomId,
    metadata: typeof msg.metadata === 'object' && msg.metadata !== null ? { ...msg.metadata } : {},
    inserted_at: msg.createdAt.toISOString(),
  };
}
