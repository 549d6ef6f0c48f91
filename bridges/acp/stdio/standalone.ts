import type { Readable, Writable } from 'node:stream';
import { abortable, childSignal, deferred, type Deferred } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Authentication } from '../client/connection.js';
import type { AcpServer } from '../server.js';
import type { AcpOptions } from '../settings.js';
import { localBackend, ownerBackend } from './backends.js';
import { createFrameReader } from './frames.js';
import { createFront, type Front } from './front.js';
import { connectToOwner, localSocketPath, writeLine } from './local-socket.js';
import type { Credentials, OwnedAgent } from './owner.js';

export interface StandaloneDeps {
  readonly options: AcpOptions;
  readonly input: Readable;
  /** Where frames go, and nothing else. */
  readonly output: Writable;
  readonly clock: Clock;
  readonly log: Logger;
  readonly version: string;
  /** Null when there are none; `fresh` reads their sources anew. */
  readonly credentials: (fresh?: boolean) => Promise<Credentials | null>;
  /** Ends everything. */
  readonly signal: AbortSignal;
  /** Where the local socket lies; default beside the agent's lock. */
  readonly socketPath?: ((agentId: string) => string) | undefined;
  /** Makes the Agent around the bridge; default: the runtime's. */
  readonly createAgent?: AgentMaker | undefined;
}

export type AgentMaker = (
  server: AcpServer,
  credentials: Credentials,
  conflict: 'supersede' | 'reject',
  deps: StandaloneDeps,
) => Promise<OwnedAgent>;

/** How long a process that finds the agent's lock taken looks for the owner's socket before it says so. */
const ATTACH_PATIENCE_MS = 3_000;
const ATTACH_STEP_MS = 100;
const RETRY_MS = 2_000;
const SHORT_ATTACH_MS = 1_000;
/** An owner with no place left lets go within this time. */
const REFUSAL_MS = 20;
const FIRST_ANSWER_MS = 150;

/**
 * One editor on a pair of pipes: attached to the process that runs the agent where there is one, else running the
 * agent itself. It serves from the first moment and only ends with the editor.
 *
 * @returns when the editor is gone or `signal` aborted, and everything was let go
 */
export async function runStandalone(deps: StandaloneDeps): Promise<void> {
  using life = childSignal(deps.signal);
  const front = createFront((line) => writeLine(deps.output, line));
  deps.output.on('error', () => {
    // The editor reads no more: the same as its end.
    life.abort(new EditorGone());
  });
  const reading = readFrames(deps, front, life.signal).then(() => {
    life.abort(new EditorGone());
  });
  try {
    await serve(deps, front, life.signal);
  } catch (error) {
    if (!life.signal.aborted) throw error;
  } finally {
    life.abort(new EditorGone());
    await reading;
  }
}

class EditorGone extends Error {}

/** Feeds the front until the input ends, in order, reading no faster than frames are taken. */
async function readFrames(deps: StandaloneDeps, front: Front, signal: AbortSignal): Promise<void> {
  const { input, options, log } = deps;
  let taken: Promise<void> = Promise.resolve();
  const then = (work: () => Promise<void>) => {
    taken = taken.then(work).catch((error: unknown) => {
      log.debug({ err: error }, 'a frame could not be handed on');
    });
  };
  const reader = createFrameReader(options.maxMessageBytes, {
    onFrame: (frame) => {
      then(() => front.receive(frame));
    },
    onFault: (answer) => {
      then(() => front.answer(answer));
    },
  });
  const ended = deferred();
  input.on('data', (chunk: Buffer) => {
    reader.push(chunk);
    input.pause();
    void taken.then(() => input.resume());
  });
  input.once('end', () => {
    ended.resolve();
  });
  input.once('close', () => {
    ended.resolve();
  });
  input.once('error', () => {
    ended.resolve();
  });
  try {
    await abortable(ended.promise, signal);
    reader.end();
    await abortable(taken, signal);
    await abortable(front.end(), signal);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    input.removeAllListeners('data');
    input.pause();
  }
}

async function serve(deps: StandaloneDeps, front: Front, signal: AbortSignal): Promise<void> {
  const { log, clock } = deps;
  const sign: { in: Deferred } = { in: deferred() };
  let host: Host | null = null;
  try {
    for (;;) {
      signal.throwIfAborted();
      const credentials = await deps.credentials();
      const since = clock.now();
      const attached = credentials ? await attach(deps, credentials.agentId, front, host, signal) : false;
      if (attached) {
        log.info('the process that runs the agent has gone');
        host = null;
        // An owner that lets go at once would be asked again and again.
        if (clock.now() - since < SHORT_ATTACH_MS) await clock.sleep(RETRY_MS, signal);
        continue;
      }
      host ??= await openHost(deps, front, sign);
      await abortable(Promise.race([front.initialized, clock.sleep(FIRST_ANSWER_MS, signal)]), signal);
      await host.own(signal);
      // The agent runs elsewhere on this host: its owner may only just be opening its socket.
      if (credentials && (await attachPatiently(deps, credentials.agentId, front, host, signal))) {
        host = null;
        continue;
      }
      host.refuse();
      await clock.sleep(RETRY_MS, signal);
    }
  } finally {
    await host?.close();
  }
}

/** @returns false when nobody answers; true after the owner has gone */
async function attach(
  deps: StandaloneDeps,
  agentId: string,
  front: Front,
  host: Host | null,
  signal: AbortSignal,
): Promise<boolean> {
  const path = (deps.socketPath ?? localSocketPath)(agentId);
  const socket = await connectToOwner(path);
  if (!socket) return false;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve();
    });
  });
  socket.on('error', () => {
    socket.destroy();
  });
  socket.on('end', () => {
    socket.destroy();
  });
  // Nothing is said before the editor's first frame is handed on, so reading loses nothing and hears of an end.
  socket.resume();
  await Promise.race([closed, deps.clock.sleep(REFUSAL_MS, signal)]);
  if (socket.destroyed) return false;
  deps.log.info({ path }, 'attached to the process that runs the agent');
  try {
    // What a server without Band holds was never begun, so the owner gets it; a lost owner may have begun anything.
    const changed = front.use(ownerBackend(socket, { maxMessageBytes: deps.options.maxMessageBytes, log: deps.log }), {
      resend: host !== null,
    });
    void changed.catch((error: unknown) => {
      deps.log.debug({ err: toError(error) }, 'the change to the owner was cut short');
    });
    await host?.close();
    await abortable(closed, signal);
    return true;
  } finally {
    socket.destroy();
  }
}

async function attachPatiently(
  deps: StandaloneDeps,
  agentId: string,
  front: Front,
  host: Host,
  signal: AbortSignal,
): Promise<boolean> {
  const until = deps.clock.now() + ATTACH_PATIENCE_MS;
  do {
    if (await attach(deps, agentId, front, host, signal)) return true;
    await deps.clock.sleep(ATTACH_STEP_MS, signal);
  } while (deps.clock.now() < until);
  return false;
}

/** The server of this process and the agent behind it. */
interface Host {
  /** Runs the agent; resolves when another process of this host holds it. */
  own(signal: AbortSignal): Promise<void>;
  /** Tells the editor that the agent runs elsewhere and cannot be shared. */
  refuse(): void;
  close(): Promise<void>;
}

async function openHost(deps: StandaloneDeps, front: Front, sign: { in: Deferred }): Promise<Host> {
  const { createAcpServer } = await import('../server.js');
  const { AcpFault } = await import('../errors.js');
  const known = await deps.credentials();
  let isGood = known !== null;
  const authentication: Authentication = {
    get isGood() {
      const { state } = server.gate;
      return isGood && !(state.kind === 'refused' && state.fault.reason === 'credentials_rejected');
    },
    async check(signal) {
      const credentials = await deps.credentials(true);
      if (!credentials) throw new AcpFault('credentials_missing');
      const { checkIdentity } = await import('./identity.js');
      await checkIdentity(credentials, signal);
      isGood = true;
      if (server.gate.state.kind === 'refused') server.gate.set({ kind: 'waiting', error: null });
      const waiting = sign.in;
      sign.in = deferred();
      waiting.resolve();
    },
  };
  const server = await createAcpServer({
    options: deps.options,
    version: deps.version,
    authentication,
    clock: deps.clock,
    log: deps.log,
  });
  if (!known) server.gate.set({ kind: 'refused', fault: new AcpFault('credentials_missing') });
  const connected = front.use(
    localBackend((stream) => server.connect(stream)),
    { resend: false },
  );
  void connected.catch((error: unknown) => {
    deps.log.debug({ err: toError(error) }, 'the change to this process was cut short');
  });
  return {
    async own(signal) {
      const { ownAgent } = await import('./owner.js');
      const make = deps.createAgent ?? (await import('./runtime-agent.js')).createRuntimeAgent;
      await ownAgent(
        {
          server,
          clock: deps.clock,
          log: deps.log,
          credentials: deps.credentials,
          createAgent: (credentials, conflict) => make(server, credentials, conflict, deps),
          signedIn: () => sign.in.promise,
        },
        signal,
      );
    },
    refuse() {
      server.gate.set({ kind: 'refused', fault: new AcpFault('agent_already_running') });
    },
    close: () => server.close(),
  };
}
