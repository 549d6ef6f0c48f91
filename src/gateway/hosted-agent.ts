import { backoffMs } from '../base/backoff.js';
import type { Clock } from '../base/clock.js';
import { toError } from '../base/errors.js';
import type { Logger } from '../base/log.js';
import type { Blocker, Bridge } from '../core/bridge.js';
import type { FrameworkAdapter } from '../core/framework-adapter.js';
import { judgeAgentError, RUNS_ON_HOST, type Verdict } from './agent-verdict.js';

/** The members of an Agent that hosting needs. */
export interface AgentLike {
  readonly agentName: string;
  start(): Promise<void>;
  /** Blocks until stopped; rejects when the platform ended the connection for good. */
  runForever(options: { installSignalHandlers: false }): Promise<void>;
  /** @param timeout - seconds that running turns may take; null ends them at once */
  stop(timeout?: number | null): Promise<boolean>;
}

export interface HostedAgentDeps {
  readonly name: string;
  readonly bridgeName: string;
  readonly onSuperseded: 'stop' | 'standby';
  readonly stopTimeoutSeconds: number;
  /** Another process of this host that runs the agent serves the same clients. */
  readonly isSharedOnHost?: boolean;
  /** Opens the bridge afresh; each opening gets an Agent of its own. */
  openBridge(): Promise<Bridge>;
  /** @param conflictPolicy - `reject` while asking for an identity that somebody else may hold */
  createAgent(adapter: FrameworkAdapter, conflictPolicy: 'reject' | 'configured'): AgentLike;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
}

/**
 * `waiting`: the platform is not reachable, tried again soon; `credentials`: they are refused; `elsewhere`: somebody
 * else holds the identity, asked again every minute; `superseded` and `failed`: over until a restart.
 */
export type HostedState =
  'opening' | 'connecting' | 'running' | 'waiting' | 'credentials' | 'elsewhere' | 'superseded' | 'failed' | 'stopped';

/** One Agent with its bridge, kept running. Its failures stay its own. */
export interface HostedAgent {
  readonly name: string;
  readonly bridgeName: string;
  readonly state: HostedState;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** What the platform calls the agent; empty until it was asked. */
  readonly agentName: string;
  readonly verdict: Verdict | null;
  readonly nextTryAt: number | null;
  readonly bridge: Bridge | null;
  readonly agent: AgentLike | null;
  /**
   * Opens the bridge, without connecting to the platform yet.
   *
   * @throws what the bridge threw: wrong settings are a reason not to start the service at all
   */
  open(): Promise<void>;
  /** Begins to connect and returns; failures become states. */
  run(): void;
  /** Ends the Agent: running turns get the deadline, then the bridge is closed. @returns false when a turn was cut */
  stop(): Promise<boolean>;
  /** Resolves when the first try has ended, whichever way. */
  readonly settled: Promise<void>;
  blockers(): readonly Blocker[];
}

const RETRY = { baseMs: 1_000, maxMs: 60_000 } as const;
/** Refused credentials may be mended at the platform; asking more often would only fill its log. */
const CREDENTIALS_RETRY_MS = 300_000;
const ELSEWHERE_RETRY_MS = 60_000;
const STABLE_MS = 60_000;
const SHARED_ACTION = 'Nothing: that process serves this host. This one takes over within a minute of its end.';

export function createHostedAgent(deps: HostedAgentDeps): HostedAgent {
  const { name, bridgeName, clock, log, random = Math.random } = deps;
  const stopping = new AbortController();
  let state: HostedState = 'opening';
  let since = clock.now();
  let verdict: Verdict | null = null;
  let nextTryAt: number | null = null;
  let bridge: Bridge | null = null;
  let agent: AgentLike | null = null;
  let agentName = '';
  let policy: 'reject' | 'configured' = 'configured';
  let loop: Promise<void> = Promise.resolve();
  let settle: () => void = () => undefined;
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });

  const stopped = () => stopping.signal.aborted;

  const enter = (next: HostedState, why: Verdict | null = null): void => {
    if (next !== state) since = clock.now();
    state = next;
    verdict = why;
    nextTryAt = null;
  };

  /** One life: connect, run until the connection ends for good. Always throws why it ended. */
  const live = async (): Promise<never> => {
    bridge ??= await deps.openBridge();
    stopping.signal.throwIfAborted();
    agent ??= deps.createAgent(bridge.adapter, policy);
    enter('connecting', verdict);
    await agent.start();
    agentName = agent.agentName;
    enter('running');
    log.info({ agent: name, agentName, bridge: bridgeName }, 'agent runs');
    settle();
    await agent.runForever({ installSignalHandlers: false });
    stopping.signal.throwIfAborted();
    throw new Error('The agent ended by itself.');
  };

  /** Ends an Agent that will not be used again, and the bridge in it. */
  const discard = async (timeout: number | null): Promise<boolean> => {
    const old = agent;
    const oldBridge = bridge;
    agent = null;
    bridge = null;
    const whole = (await old?.stop(timeout)) ?? true;
    // An Agent that never got as far as the adapter does not tell it to let go of its routes and timers.
    if (oldBridge && oldBridge.adapter.platform == null) await oldBridge.adapter.cleanupAll?.();
    return whole;
  };

  const keepRunning = async (): Promise<void> => {
    for (let tries = 1; !stopped(); tries += 1) {
      const begun = clock.now();
      try {
        await live();
      } catch (error) {
        if (stopped()) return;
        if (state === 'running' && clock.now() - begun >= STABLE_MS) tries = 1;
        await fail(error, tries);
      }
      settle();
      if (state === 'failed' || state === 'superseded' || nextTryAt === null) return;
      try {
        await clock.sleep(Math.max(0, nextTryAt - clock.now()), stopping.signal);
      } catch {
        return; // Stopped while waiting.
      }
    }
  };

  const fail = async (error: unknown, tries: number): Promise<void> => {
    const why = judgeAgentError(error);
    const waitMs = consequence(why, tries);
    log.warn(
      {
        err: toError(error),
        agent: name,
        code: why.code,
        state,
        nextTryInMs: waitMs === null ? null : Math.round(waitMs),
      },
      'agent is not running',
    );
    nextTryAt = waitMs === null ? null : clock.now() + waitMs;
    // Before `onStarted` the bridge has not begun: it keeps its routes open and the same Agent may try again.
    const begun = bridge?.adapter.platform != null;
    if (!begun && waitMs !== null && policy === 'configured') return;
    await discard(null).catch((failure: unknown) => {
      log.error({ err: toError(failure), agent: name }, 'agent did not end cleanly');
    });
  };

  /** Enters the state that an error leads to. @returns milliseconds to the next try, null for none */
  const consequence = (why: Verdict, tries: number): number | null => {
    switch (why.kind) {
      case 'settings':
        enter('failed', why);
        return null;
      case 'credentials':
        enter('credentials', why);
        return CREDENTIALS_RETRY_MS;
      case 'superseded':
        if (deps.onSuperseded === 'stop') {
          enter('superseded', why);
          return null;
        }
        policy = 'reject';
        enter('elsewhere', why);
        return ELSEWHERE_RETRY_MS;
      case 'elsewhere':
        enter('elsewhere', deps.isSharedOnHost && why.code === RUNS_ON_HOST ? { ...why, action: SHARED_ACTION } : why);
        return ELSEWHERE_RETRY_MS;
      case 'transient':
        enter('waiting', why);
        return backoffMs(tries, { ...RETRY, random });
    }
  };

  const blockers = (): readonly Blocker[] => {
    if (state === 'running') return bridge?.blockers() ?? [];
    if (deps.isSharedOnHost && verdict?.code === RUNS_ON_HOST) return [];
    const { message, action } = verdict ?? { message: `The agent is ${state}.`, action: 'Wait a moment.' };
    return [{ name: `agent.${name}`, message, action, since }];
  };

  return {
    name,
    bridgeName,
    get state() {
      return state;
    },
    get since() {
      return since;
    },
    get agentName() {
      return agentName;
    },
    get verdict() {
      return verdict;
    },
    get nextTryAt() {
      return nextTryAt;
    },
    get bridge() {
      return bridge;
    },
    get agent() {
      return agent;
    },
    settled,
    blockers,
    async open() {
      bridge = await deps.openBridge();
    },
    run() {
      loop = keepRunning();
    },
    async stop() {
      stopping.abort(new Error('The service stops.'));
      // An Agent that is not online yet has no turns to wait for, only a platform that may not answer.
      const patience = state === 'running' ? deps.stopTimeoutSeconds : Math.min(1, deps.stopTimeoutSeconds);
      const whole = await discard(patience);
      await loop;
      // A bridge that was being opened meanwhile.
      await discard(null);
      enter('stopped');
      settle();
      return whole;
    },
  };
}
