import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { Logger } from '../../base/log.js';
import { errorBody, problemOf } from '../answer.js';
import { isSameOrigin, splitTarget } from '../target.js';
import type { UpgradeFault } from '../options.js';
import type { Platform } from '../platform.js';
import { Problem } from '../world/problem.js';
import type { Principal, World } from '../world/world.js';
import { Connection } from './connection.js';
import { PlatformSocket } from './platform-socket.js';
import { judgeJoin } from './topics.js';

export const SOCKET_PATH = '/api/v1/socket/websocket';
const PROTOCOL_VERSION = '2.0.0';
const MAX_INCOMING_FRAME_BYTES = 1024 * 1024;
const MAX_CONNECTIONS = 5_000;
const MAX_HELD_UPGRADES = 1_000;

const CLOSE_NORMAL = 1000;
const CLOSE_INTERNAL_ERROR = 1011;
const CLOSE_SERVICE_RESTART = 1012;

interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** A refusal of an upgrade: a status, and the envelope unless the body is to stay empty. */
interface Refusal {
  readonly status: number;
  readonly problem: Problem | null;
  /** Seconds. */
  readonly retryAfter?: number;
}

const unauthenticated: Refusal = { status: 403, problem: null };

/**
 * The WebSocket door: credentials → faults → conflict policy → upgrade → one {@link Connection}. An agent has one
 * connection at most, people any number.
 */
export class SocketServer {
  readonly #platform: Platform;
  readonly #log: Logger;
  readonly #slowReaderBytes: number;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_INCOMING_FRAME_BYTES,
    perMessageDeflate: false,
    clientTracking: true,
    WebSocket: PlatformSocket,
  });
  /** The connection that counts for an agent, from the accepted upgrade until its socket is closed. */
  readonly #liveAgents = new Map<string, Connection>();
  readonly #evictedAtMs = new Map<string, number>();
  #faults: { fault: UpgradeFault; left: number }[] = [];
  #held: Upgrade[] = [];

  constructor(platform: Platform, log: Logger, slowReaderBytes: number) {
    this.#platform = platform;
    this.#log = log;
    this.#slowReaderBytes = slowReaderBytes;
    // Without this listener the library answers a bad handshake with an HTML page.
    this.#server.on('wsClientError', (error, socket) => {
      refuse(socket, { status: 400, problem: problemOf(400, error.message) });
    });
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', (error) => {
      this.#log.debug({ reason: error.message }, 'upgrade failed');
    });
    const { path, query } = splitTarget(request.url);
    if (path !== SOCKET_PATH) {
      refuse(socket, { status: 404, problem: problemOf(404, 'Not found') });
      return;
    }
    // Keys of the demo are known to everybody, and no browser stops a page from opening a socket elsewhere.
    const who = isSameOrigin(request) ? authenticate(this.#platform.world, query, request.headers['x-api-key']) : null;
    const fault = this.#meet(who);
    if (fault?.mode === 'hold') {
      if (this.#held.length < MAX_HELD_UPGRADES) this.#held.push({ request, socket, head });
      else refuse(socket, { status: 503, problem: problemOf(503, 'Too many held upgrades') });
      return;
    }
    const refusal = fault ? refusalOf(fault) : who === null ? unauthenticated : this.#judge(who, query);
    if (refusal || who === null) {
      refuse(socket, refusal ?? unauthenticated);
      return;
    }
    this.#accept(who, query, { request, socket, head });
  }

  /** Ends a principal's sockets. @returns how many */
  closeOf(principalId: string, code: number, reason?: string): number {
    const connections = this.#platform.hub.of(principalId);
    for (const connection of connections) connection.close(code, reason);
    return connections.length;
  }

  fault(fault: UpgradeFault): void {
    this.#faults.push({ fault, left: fault.times ?? Infinity });
  }

  /** Lets held upgrades go on. */
  clearFaults(): void {
    this.#faults = [];
    const held = this.#held;
    this.#held = [];
    for (const { request, socket, head } of held) {
      if (!socket.destroyed) this.upgrade(request, socket, head);
    }
  }

  /** Drops every connection at once, and what it knew of earlier ones. */
  dropAll(): void {
    for (const connection of [...this.#platform.hub.all()]) connection.close(1006);
    this.#evictedAtMs.clear();
  }

  /** A planned end: clients are told to come back. Those that do not answer are cut off after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    for (const { socket } of this.#held) socket.destroy();
    this.#held = [];
    const open = [...this.#server.clients];
    const closed = Promise.all(open.map((client) => new Promise((resolve) => client.once('close', resolve))));
    for (const client of open) client.end(CLOSE_SERVICE_RESTART, '');
    const timer = setTimeout(() => {
      for (const client of open) client.terminate();
    }, graceMs);
    await closed;
    clearTimeout(timer);
    this.#server.close();
  }

  #judge(who: Principal, query: URLSearchParams): Refusal | null {
    if (this.#platform.hub.size >= MAX_CONNECTIONS) {
      return { status: 503, problem: new Problem(503, 'tracking_failed', 'Connection could not be tracked') };
    }
    if (who.kind !== 'Agent') return null;
    const policy = query.get('on_conflict');
    if (policy !== null && policy !== 'supersede' && policy !== 'reject') {
      return {
        status: 400,
        problem: new Problem(400, 'invalid_on_conflict', 'on_conflict must be "supersede" or "reject"'),
      };
    }
    if (!this.#liveAgents.has(who.id)) return null;
    if (policy === 'reject') {
      return {
        status: 409,
        problem: new Problem(409, 'connection_conflict', 'Connection already exists for this agent.'),
      };
    }
    const leftMs =
      (this.#evictedAtMs.get(who.id) ?? -Infinity) +
      this.#platform.switches.takeoverCooldownMs -
      this.#platform.clock.now();
    if (leftMs <= 0) return null;
    return {
      status: 429,
      problem: new Problem(429, 'too_many_requests', 'Agent was taken over recently'),
      retryAfter: Math.ceil(leftMs / 1_000),
    };
  }

  #accept(who: Principal, query: URLSearchParams, { request, socket, head }: Upgrade): void {
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      if (query.get('vsn') !== PROTOCOL_VERSION) {
        webSocket.on('error', () => undefined);
        webSocket.end(CLOSE_INTERNAL_ERROR, '');
        return;
      }
      const { hub, world, clock } = this.#platform;
      const connection: Connection = new Connection(who.id, webSocket, {
        clock,
        log: this.#log,
        slowReaderBytes: this.#slowReaderBytes,
        stream: socket,
        judge: (topic) => judgeJoin(world, who, topic),
        onClosed: () => {
          hub.remove(connection);
          if (this.#liveAgents.get(who.id) === connection) this.#liveAgents.delete(who.id);
        },
      });
      const replaced = this.#liveAgents.get(who.id);
      hub.add(connection);
      if (who.kind === 'Agent') this.#liveAgents.set(who.id, connection);
      if (replaced) this.#supersede(who.id, replaced);
    });
  }

  #supersede(agentId: string, connection: Connection): void {
    const { hub, world, clock } = this.#platform;
    if (this.#platform.switches.takeoverCooldownMs > 0) this.#evictedAtMs.set(agentId, clock.now());
    const payload = {
      reason: 'session.already_connected',
      message: 'This connection was replaced by a newer one for the same agent',
      retryable: false,
      retry_after: null,
      target_socket_id: `agent_socket:${agentId}`,
      correlation_id: world.newId(),
    };
    connection.push(`agent_control:${agentId}`, 'supersede', JSON.stringify(payload));
    connection.close(CLOSE_NORMAL);
    // What comes from now on belongs to the newer connection alone.
    hub.remove(connection);
  }

  #meet(who: Principal | null): UpgradeFault | null {
    for (const entry of this.#faults) {
      if (entry.fault.principalId !== undefined && entry.fault.principalId !== who?.id) continue;
      entry.left -= 1;
      if (entry.left <= 0) this.#faults = this.#faults.filter((other) => other !== entry);
      return entry.fault;
    }
    return null;
  }
}

/** Whom an upgrade acts as; the header's key wins over the query's. Null for nobody. */
export function authenticate(
  world: World,
  query: URLSearchParams,
  header: string | string[] | undefined,
): Principal | null {
  const headerKey = typeof header === 'string' && header !== '' ? header : null;
  const who = world.byKey.get(headerKey ?? query.get('api_key') ?? query.get('token') ?? '');
  if (!who) return null;
  const agentId = query.get('agent_id')?.toLowerCase() ?? null;
  if (agentId === null || agentId === '' || agentId === who.id) return who;
  const agent = world.agents.get(agentId);
  return who.kind === 'User' && agent?.ownerId === who.id ? agent : null;
}

function refusalOf(fault: UpgradeFault): Refusal {
  const status = fault.status ?? 503;
  if (status === 403) return unauthenticated;
  const code = status === 503 ? 'tracking_failed' : problemOf(status, '').code;
  return {
    status,
    problem: new Problem(status, code, 'Refused on request'),
    ...(fault.retryAfter === undefined ? {} : { retryAfter: fault.retryAfter }),
  };
}

/** The platform gives refused upgrades no request id. */
function refuse(socket: Duplex, { status, problem, retryAfter }: Refusal): void {
  const envelope = problem ? (errorBody(problem, null) as { error: Record<string, unknown> }) : null;
  if (envelope && retryAfter !== undefined) envelope.error['retry_after'] = retryAfter;
  const body = envelope ? JSON.stringify(envelope) : '';
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(body === '' ? [] : ['Content-Type: application/json; charset=utf-8']),
    ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
  ];
  socket.once('finish', () => {
    socket.destroy();
  });
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
}
