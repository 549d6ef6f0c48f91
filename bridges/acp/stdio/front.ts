import type { AnyMessage } from '@agentclientprotocol/sdk';
import { deferred, type Deferred } from '../../../src/base/async.js';
import { asRequest, type JsonRpcId } from '../client/json-rpc.js';
import { encodeFrame, faultAnswer, type Frame } from './frames.js';

/** Who answers the editor: the server in this process, or the process that runs the agent. */
export interface Backend {
  /** Takes one frame. */
  send(frame: Frame): Promise<void>;
  /** The editor sends no more. Resolves when what could still be answered was. */
  end(): Promise<void>;
  /** Lets go; nothing that it says afterwards reaches the editor. */
  close(): void;
}

/** What a backend says: a line as it came, and its meaning. */
export type Say = (line: string | Uint8Array, message: AnyMessage) => Promise<void>;

interface OpenRequest {
  readonly frame: Frame;
  readonly method: string;
}

interface KnownSession {
  readonly cwd: unknown;
  readonly mcpServers: unknown;
}

/**
 * Stands between the editor's pipe and whoever serves it, and survives a change of the latter: the new one is told of
 * the `initialize` that the editor will not repeat, and of the sessions that it has open.
 */
export interface Front {
  /** One frame of the editor. */
  receive(frame: Frame): Promise<void>;
  /** Answers the editor directly. */
  answer(message: AnyMessage): Promise<void>;
  /**
   * Changes to another backend. Requests that are still open go to it when `resend` says that nothing was done for
   * them yet; otherwise the editor is told that their process is gone.
   */
  use(open: (say: Say) => Backend, how: { readonly resend: boolean }): Promise<void>;
  /** The editor closed its side. */
  end(): Promise<void>;
  readonly openRequests: number;
  /** Resolves when the editor's first `initialize` was answered. */
  readonly initialized: Promise<void>;
}

const OWN_ID = 'band-gateway-front';

export function createFront(write: (line: string | Uint8Array) => Promise<void>): Front {
  const open = new Map<JsonRpcId, OpenRequest>();
  const sessions = new Map<string, KnownSession>();
  const own = new Map<string, Deferred>();
  let ownIds = 0;
  let initialize: Frame | null = null;
  let backend: Backend | null = null;
  let generation = 0;
  const first = deferred();
  let ready: Promise<void> = first.promise;
  const initialized = deferred();

  const onAnswer = (message: AnyMessage): 'pass' | 'swallow' => {
    if ('method' in message || !('id' in message)) return 'pass';
    const waiting = typeof message.id === 'string' ? own.get(message.id) : undefined;
    if (waiting) {
      own.delete(String(message.id));
      waiting.resolve();
      return 'swallow';
    }
    const request = open.get(message.id);
    open.delete(message.id);
    if (request?.method === 'initialize') initialized.resolve();
    if (request && 'result' in message) remember(request, message.result, sessions);
    return 'pass';
  };
  const ask = async (to: Backend, method: string, params: unknown): Promise<void> => {
    const id = `${OWN_ID}-${(ownIds += 1)}`;
    const waiting = deferred();
    own.set(id, waiting);
    const message = { jsonrpc: '2.0', id, method, params } as AnyMessage;
    await to.send({ message, bytes: new TextEncoder().encode(JSON.stringify(message)) });
    await waiting.promise;
  };

  /** Resolves when no change of the backend is under way. */
  const settled = async (): Promise<void> => {
    for (let at = ready; ; at = ready) {
      await at;
      if (at === ready) return;
    }
  };

  const front: Front = {
    initialized: initialized.promise,
    get openRequests() {
      return open.size;
    },
    answer: (message) => write(encodeFrame(message)),
    async receive(frame) {
      await settled();
      const request = asRequest(frame.message);
      if (request) {
        open.set(request.id, { frame, method: request.method });
        if (request.method === 'initialize') initialize = frame;
      }
      await backend?.send(frame);
    },
    async use(openBackend, { resend }) {
      const before = backend;
      before?.close();
      generation += 1;
      const mine = generation;
      const change = deferred();
      ready = change.promise;
      for (const waiting of own.values()) waiting.resolve();
      own.clear();
      try {
        const again = before ? [...open.values()] : [];
        if (before && !resend) {
          open.clear();
          for (const { frame } of again) {
            if ('id' in frame.message) await front.answer(faultAnswer(frame.message.id, 'gateway_lost'));
          }
        }
        const next = openBackend(async (line, message) => {
          if (mine !== generation || onAnswer(message) === 'swallow') return;
          await write(line);
        });
        backend = next;
        if (before && initialize) await introduce(next, again);
        if (before && resend) {
          for (const { frame, method } of again) if (method !== 'initialize') await next.send(frame);
        }
      } finally {
        first.resolve();
        change.resolve();
      }
    },
    async end() {
      await settled();
      await backend?.end();
    },
  };

  const introduce = async (to: Backend, again: readonly OpenRequest[]): Promise<void> => {
    if (!initialize || !('method' in initialize.message)) return;
    if (
      again.some(({ method, frame }) => method === 'initialize' && frame === initialize) &&
      open.has(idOf(initialize))
    ) {
      await to.send(initialize);
    } else await ask(to, 'initialize', initialize.message.params);
    for (const [sessionId, { cwd, mcpServers }] of sessions) {
      await ask(to, 'session/resume', { sessionId, cwd, mcpServers });
    }
  };
  return front;
}

function idOf(frame: Frame): JsonRpcId {
  return 'id' in frame.message ? frame.message.id : null;
}

/** Keeps which sessions the editor has open, so that another backend can be told. */
function remember({ frame, method }: OpenRequest, result: unknown, sessions: Map<string, KnownSession>): void {
  if (!('params' in frame.message)) return;
  const params = (frame.message.params ?? {}) as Record<string, unknown>;
  const known = { cwd: params['cwd'], mcpServers: params['mcpServers'] ?? [] };
  const named = method === 'session/new' ? (result as { sessionId?: unknown } | null)?.sessionId : params['sessionId'];
  if (typeof named !== 'string') return;
  switch (method) {
    case 'session/new':
    case 'session/load':
    case 'session/resume':
      sessions.set(named, known);
      break;
    case 'session/close':
    case 'session/delete':
      sessions.delete(named);
      break;
    default:
      break;
  }
}
