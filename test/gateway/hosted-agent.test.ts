import { describe, expect, it } from 'vitest';
import { deferred, type Deferred } from '../../src/base/async.js';
import { AgentAlreadyRunningError, ApiError, BandConnectionError } from '../../src/base/band-errors.js';
import { GatewayError } from '../../src/base/errors.js';
import { silentLogger } from '../../src/base/log.js';
import type { Blocker, Bridge } from '../../src/core/bridge.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import { createPlatformConnection } from '../../src/core/platform-connection.js';
import { createHostedAgent, type AgentLike, type HostedAgentDeps } from '../../src/gateway/hosted-agent.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

/** An Agent that does as the script says: an error per start, or a start that works until `end`. */
function world(script: (Error | 'runs')[], over: Partial<HostedAgentDeps> = {}) {
  const clock = createManualClock();
  const seen = { opened: 0, cleaned: 0, policies: [] as string[], stops: [] as (number | null | undefined)[] };
  let ending: Deferred = deferred();
  let blockers: readonly Blocker[] = [];

  const openBridge = async (): Promise<Bridge> => {
    seen.opened += 1;
    const adapter: FrameworkAdapter = {
      onEvent: async () => undefined,
      onCleanup: async () => undefined,
      onStarted: async () => undefined,
      cleanupAll: async () => {
        seen.cleaned += 1;
      },
    };
    return {
      adapter,
      report: () => ({ links: [], queues: [], lastErrors: [], recent: [] }),
      blockers: () => blockers,
      deadLetters: null,
    };
  };
  const createAgent = (adapter: FrameworkAdapter, policy: string): AgentLike => {
    seen.policies.push(policy);
    let running = false;
    return {
      agentName: 'Helper',
      async start() {
        const next = script.shift() ?? 'runs';
        if (next !== 'runs') throw next;
        adapter.platform = createPlatformConnection({ agentId: 'a', apiKey: 'k', restUrl: 'r', wsUrl: 'w' });
        running = true;
        ending = deferred();
      },
      runForever: () => ending.promise,
      async stop(timeout) {
        seen.stops.push(timeout);
        if (running) await adapter.cleanupAll?.();
        ending.resolve();
        return true;
      },
    };
  };
  const hosted = createHostedAgent({
    name: 'helpdesk',
    bridgeName: 'slack',
    onSuperseded: 'stop',
    stopTimeoutSeconds: 20,
    openBridge,
    createAgent,
    clock,
    log: silentLogger,
    random: () => 0.5,
    ...over,
  });
  return {
    hosted,
    clock,
    seen,
    end: (error: Error) => {
      ending.reject(error);
    },
    block: (next: readonly Blocker[]) => {
      blockers = next;
    },
  };
}

const unreachable = () => new BandConnectionError('no route', { cause: new GatewayError('BAND_UNREACHABLE') });
const superseded = () => new BandConnectionError('replaced', { cause: new GatewayError('BAND_SUPERSEDED') });

async function started({ hosted, clock }: ReturnType<typeof world>) {
  await hosted.open();
  hosted.run();
  await hosted.settled;
  await clock.advance(0);
}

describe('an agent that runs', () => {
  it('is ready as far as its bridge is', async () => {
    const test = world(['runs']);
    await started(test);
    expect(test.hosted).toMatchObject({ state: 'running', agentName: 'Helper', verdict: null });
    expect(test.hosted.blockers()).toEqual([]);
    test.block([{ name: 'slack.socket', message: 'm', action: 'a', since: 1 }]);
    expect(test.hosted.blockers()).toHaveLength(1);
  });

  it('gets the deadline for its turns when the service stops', async () => {
    const test = world(['runs']);
    await started(test);
    expect(await test.hosted.stop()).toBe(true);
    expect(test.seen.stops).toEqual([20]);
    expect(test.seen.cleaned).toBe(1);
    expect(test.hosted.state).toBe('stopped');
  });
});

describe('a platform that cannot be reached', () => {
  it('is tried again with growing waits, the bridge staying open meanwhile', async () => {
    const test = world([unreachable(), unreachable(), 'runs']);
    await started(test);
    expect(test.hosted.state).toBe('waiting');
    expect(test.hosted.nextTryAt! - test.clock.now()).toBe(750);
    expect(test.hosted.blockers()[0]).toMatchObject({ name: 'agent.helpdesk', message: 'no route' });
    await test.clock.advance(750);
    expect(test.hosted.nextTryAt! - test.clock.now()).toBe(1_500);
    await test.clock.advance(1_500);
    expect(test.hosted.state).toBe('running');
    expect(test.seen).toMatchObject({ opened: 1, cleaned: 0 });
  });

  it('does not hold up a stop', async () => {
    const test = world([unreachable()]);
    await started(test);
    await test.hosted.stop();
    expect(test.hosted.state).toBe('stopped');
    expect(test.seen.cleaned).toBe(1);
    expect(test.clock.pending).toBe(0);
  });
});

it('an agent that ends for an unknown reason gets a fresh bridge and a fresh Agent', async () => {
  const test = world(['runs', 'runs']);
  await started(test);
  test.end(new Error('broken'));
  await test.clock.advance(0);
  expect(test.hosted.state).toBe('waiting');
  await test.clock.advance(1_000);
  expect(test.hosted.state).toBe('running');
  expect(test.seen).toMatchObject({ opened: 2, cleaned: 1, policies: ['configured', 'configured'] });
});

it('refused credentials are a state, asked again every five minutes, with a word on what to do', async () => {
  const test = world([new ApiError({ statusCode: 401 }), 'runs']);
  await started(test);
  expect(test.hosted.state).toBe('credentials');
  expect(test.hosted.verdict?.action).toContain('api_key');
  await test.clock.advance(299_000);
  expect(test.hosted.state).toBe('credentials');
  await test.clock.advance(1_000);
  expect(test.hosted.state).toBe('running');
});

describe('an agent whose identity somebody else took', () => {
  it('stays stopped by default: a restart would only begin a fight', async () => {
    const test = world(['runs', 'runs']);
    await started(test);
    test.end(superseded());
    await test.clock.advance(3_600_000);
    expect(test.hosted.state).toBe('superseded');
    expect(test.seen).toMatchObject({ opened: 1, cleaned: 1 });
    expect(test.hosted.blockers()[0]?.action).toContain('standby');
  });

  it('on standby asks every minute without pushing anybody out, and takes over once it may', async () => {
    const taken = () => new AgentAlreadyRunningError('elsewhere');
    const test = world(['runs', taken(), taken(), 'runs'], { onSuperseded: 'standby' });
    await started(test);
    test.end(superseded());
    await test.clock.advance(0);
    expect(test.hosted.state).toBe('elsewhere');
    await test.clock.advance(180_000);
    expect(test.hosted.state).toBe('running');
    expect(test.seen.policies).toEqual(['configured', 'reject', 'reject', 'reject']);
  });
});

describe('an agent that another process of this host runs', () => {
  const taken = () => new AgentAlreadyRunningError('runs in another process');

  it('is in the way of being ready, with a word on what to do', async () => {
    const test = world([taken(), 'runs']);
    await started(test);
    expect(test.hosted).toMatchObject({ state: 'elsewhere', verdict: { code: 'AGENT_ALREADY_RUNNING' } });
    expect(test.hosted.blockers()[0]?.action).toContain('Stop the other process');
  });

  it('is in nobody’s way where that process serves the same clients, and is taken over when it ends', async () => {
    const test = world([taken(), 'runs'], { isSharedOnHost: true });
    await started(test);
    expect(test.hosted).toMatchObject({ state: 'elsewhere', verdict: { code: 'AGENT_ALREADY_RUNNING' } });
    expect(test.hosted.verdict?.action).toContain('takes over');
    expect(test.hosted.blockers()).toEqual([]);
    await test.clock.advance(60_000);
    expect(test.hosted.state).toBe('running');
  });

  it('still is in the way where the identity is connected from another machine', async () => {
    const test = world([new GatewayError('BAND_ALREADY_CONNECTED')], { isSharedOnHost: true });
    await started(test);
    expect(test.hosted.state).toBe('elsewhere');
    expect(test.hosted.blockers()).toHaveLength(1);
  });
});

it('wrong settings that show only when running end the tries', async () => {
  const test = world([new GatewayError('CONFIG_INVALID', { message: 'no such peer' })]);
  await started(test);
  await test.clock.advance(3_600_000);
  expect(test.hosted).toMatchObject({ state: 'failed', nextTryAt: null });
  expect(test.hosted.blockers()[0]?.message).toBe('no such peer');
});
