import { describe, expect, it } from 'vitest';
import {
  AgentAlreadyRunningError,
  ApiError,
  BandConnectionError,
  ValueError,
} from '../../../../src/base/band-errors.js';
import { deferred, type Deferred } from '../../../../src/base/async.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { silentLogger } from '../../../../src/base/log.js';
import { ownAgent, type Credentials } from '../../../../bridges/acp/stdio/owner.js';
import { createLab, type Lab } from '../../../support/acp/lab.js';

const CREDENTIALS: Credentials = {
  agentId: 'a',
  apiKey: 'band_a_x',
  restUrl: 'http://127.0.0.1:9',
  wsUrl: 'ws://127.0.0.1:9',
  conflictPolicy: 'supersede',
  singleInstance: true,
  session: {},
};

interface Tried {
  readonly conflict: string;
  readonly at: number;
  /** Ends the running agent with an error of its connection. */
  readonly running: Deferred<undefined>;
}

/** An owner whose agents start as scripted: an error, or running. */
async function own(script: (Error | 'runs')[], credentials: () => Credentials | null = () => CREDENTIALS) {
  const lab: Lab = await createLab({ ready: false });
  const tried: Tried[] = [];
  const stop = new AbortController();
  let signIn = deferred();
  const start = lab.clock.now();
  const owning = ownAgent(
    {
      server: lab.server,
      clock: lab.clock,
      log: silentLogger,
      credentials: () => Promise.resolve(credentials()),
      signedIn: () => signIn.promise,
      createAgent: (_credentials, conflict) => {
        const outcome = script[tried.length] ?? 'runs';
        const running = deferred<undefined>();
        tried.push({ conflict, at: lab.clock.now() - start, running });
        return Promise.resolve({
          start: () => (outcome === 'runs' ? Promise.resolve() : Promise.reject(outcome)),
          runForever: () => running.promise,
          stop: () => {
            running.resolve(undefined);
            return Promise.resolve(true);
          },
        });
      },
    },
    stop.signal,
  );
  const result = owning.then(
    (value) => value,
    (error: unknown) => error,
  );
  await lab.clock.advance(0);
  return {
    ...lab,
    tried,
    result,
    reason: () =>
      lab.server.gate.state.kind === 'refused' ? lab.server.gate.state.fault.reason : lab.server.gate.state.kind,
    signIn() {
      const waiting = signIn;
      signIn = deferred();
      waiting.resolve();
    },
    async end() {
      stop.abort(new Error('over'));
      await lab.clock.advance(0);
      expect(await result).toEqual(new Error('over'));
    },
  };
}

describe('the owner of an agent', () => {
  it('P-038 tries a transient fault again and again, ever slower, while session calls wait', async () => {
    const down = new GatewayError('BAND_UNREACHABLE');
    const one = await own(Array.from({ length: 30 }, () => down));
    expect(one.reason()).toBe('waiting');
    await one.clock.advance(60_000);
    const gaps = one.tried.slice(1).map(({ at }, i) => at - (one.tried[i]?.at ?? 0));
    expect(gaps.length).toBeGreaterThan(4);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(15_000);
    expect(gaps[0]).toBeLessThanOrEqual(500);
    await one.end();
  });

  it('P-155 says so when another process of this host holds the agent', async () => {
    const one = await own([new AgentAlreadyRunningError('running')]);
    expect(await one.result).toBe('locked');
  });

  it('P-021 refused credentials wait for somebody to sign in', async () => {
    const one = await own([new ApiError({ statusCode: 401 }), 'runs']);
    expect(one.reason()).toBe('credentials_rejected');
    await one.clock.advance(3_600_000);
    expect(one.tried).toHaveLength(1);
    one.signIn();
    await one.clock.advance(0);
    expect(one.tried).toHaveLength(2);
    await one.end();
  });

  it('P-012 missing credentials wait as well', async () => {
    let known: Credentials | null = null;
    const one = await own(['runs'], () => known);
    expect(one.reason()).toBe('credentials_missing');
    known = CREDENTIALS;
    one.signIn();
    await one.clock.advance(0);
    expect(one.tried).toHaveLength(1);
    await one.end();
  });

  it('P-156 a connection that was taken over is not fought: it comes back only when it is free', async () => {
    const taken = new AgentAlreadyRunningError('has a live connection');
    const one = await own(['runs', taken, 'runs']);
    one.tried[0]?.running.reject(new BandConnectionError('superseded'));
    await one.clock.advance(0);
    expect(one.reason()).toBe('superseded');
    await one.clock.advance(59_999);
    expect(one.tried).toHaveLength(1);
    await one.clock.advance(1);
    expect(one.tried.map(({ conflict }) => conflict)).toEqual(['supersede', 'reject']);
    expect(one.reason()).toBe('superseded');
    await one.clock.advance(60_000);
    expect(one.tried.map(({ conflict }) => conflict)).toEqual(['supersede', 'reject', 'reject']);
    await one.end();
  });

  it('an agent without a description is told as such', async () => {
    const one = await own([new ValueError('no description'), 'runs']);
    expect(one.reason()).toBe('platform_refused');
    await one.clock.advance(60_000);
    expect(one.tried).toHaveLength(2);
    await one.end();
  });
});
