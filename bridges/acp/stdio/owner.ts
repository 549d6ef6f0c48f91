import { backoffMs } from '../../../src/base/backoff.js';
import { AgentAlreadyRunningError, BandConfigError, ValueError } from '../../../src/base/band-errors.js';
import { abortable, deferred } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { AcpServer } from '../server.js';
import { AcpFault } from '../errors.js';
import { isRejection, rejection } from '../rejection.js';

export interface Credentials {
  readonly agentId: string;
  readonly apiKey: string;
  readonly restUrl: string;
  readonly wsUrl: string;
  readonly conflictPolicy: 'supersede' | 'reject';
  readonly singleInstance: boolean;
  /** Fields of SessionConfig that were given. */
  readonly session: Readonly<Record<string, unknown>>;
}

/** The Agent as its owner needs it. */
export interface OwnedAgent {
  start(): Promise<void>;
  /** Resolves when the agent was stopped; rejects when Band ended the connection for good. */
  runForever(options: { installSignalHandlers: boolean }): Promise<void>;
  stop(timeout?: number | null): Promise<boolean>;
}

export interface OwnerDeps {
  readonly server: AcpServer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Null when there are none. */
  readonly credentials: () => Promise<Credentials | null>;
  readonly createAgent: (credentials: Credentials, conflict: 'supersede' | 'reject') => Promise<OwnedAgent>;
  /** Resolves when somebody signed in: what was refused is tried again. */
  readonly signedIn: () => Promise<void>;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
const STANDBY_MS = 60_000;

/**
 * Keeps the agent running as long as this process may: a transient fault is tried again for ever, refused credentials
 * wait for somebody to sign in, and a connection that was taken over is only taken back when it is free.
 *
 * @returns `locked` when another process of this host runs the agent
 * @throws the signal's reason at shutdown
 */
export async function ownAgent(deps: OwnerDeps, signal: AbortSignal): Promise<'locked'> {
  const { server, clock, log } = deps;
  let conflict: 'supersede' | 'reject' = 'supersede';
  for (let failures = 0; ;) {
    signal.throwIfAborted();
    const credentials = await deps.credentials();
    if (!credentials) {
      server.gate.set({ kind: 'refused', fault: new AcpFault('credentials_missing') });
      await abortable(deps.signedIn(), signal);
      continue;
    }
    const agent = await deps.createAgent(credentials, conflict);
    const stopped = deferred();
    let ran = false;
    const onAbort = () => {
      agent
        .stop(null)
        .catch(() => undefined)
        .finally(stopped.resolve);
    };
    try {
      await abortable(agent.start(), signal);
      ran = true;
      failures = 0;
      conflict = 'supersede';
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      await agent.runForever({ installSignalHandlers: false });
      await stopped.promise;
    } catch (error) {
      const stopping = agent.stop(null).catch((reason: unknown) => {
        log.warn({ err: reason }, 'the agent did not stop cleanly');
        return false;
      });
      // At shutdown a start that still waits for Band is left to the end of the process.
      if (ran || !signal.aborted) await stopping;
      signal.throwIfAborted();
      if (error instanceof AgentAlreadyRunningError && conflict === 'supersede') return 'locked';
      failures += 1;
      const next = judge(error, server, failures, ran, conflict);
      log.warn({ err: error, next: next.kind }, 'the agent is not connected to Band');
      if (next.kind === 'sign-in') await abortable(deps.signedIn(), signal);
      else {
        if (next.kind === 'standby') conflict = 'reject';
        await clock.sleep(next.ms, signal);
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}

type Next = { readonly kind: 'sign-in' } | { readonly kind: 'again' | 'standby'; readonly ms: number };

/** Tells the editors why they cannot be served now, and says when to try again. */
function judge(
  error: unknown,
  server: AcpServer,
  failures: number,
  ran: boolean,
  conflict: 'supersede' | 'reject',
): Next {
  const again = (): Next => ({
    kind: 'again',
    ms: backoffMs(failures, { baseMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS }),
  });
  if (isRejection(error)) {
    server.gate.set({ kind: 'refused', fault: rejection(error) });
    return { kind: 'sign-in' };
  }
  if (error instanceof AgentAlreadyRunningError) return { kind: 'standby', ms: STANDBY_MS };
  if (error instanceof ValueError) {
    const text = 'Internal error: Band has no description of this agent; give it one there';
    server.gate.set({ kind: 'refused', fault: new AcpFault('platform_refused', {}, { text, cause: error }) });
    return { kind: 'again', ms: STANDBY_MS };
  }
  if (error instanceof BandConfigError) {
    server.gate.set({ kind: 'refused', fault: new AcpFault('internal', {}, { cause: error }) });
    return { kind: 'again', ms: STANDBY_MS };
  }
  // Whatever ended a connection that worked: another one took over, and is not fought.
  if (ran) {
    server.breakTurns('superseded');
    server.gate.set({ kind: 'refused', fault: new AcpFault('superseded', {}, { cause: error }) });
    return { kind: 'standby', ms: STANDBY_MS };
  }
  if (conflict === 'reject') return { kind: 'standby', ms: STANDBY_MS };
  server.gate.set({ kind: 'waiting', error });
  return again();
}
