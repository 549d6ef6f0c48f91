import { describe, expect, it, vi } from 'vitest';
import { Agent } from '../../src/agent.js';
import { ApiError, BandConfigError, BandConnectionError, ValueError } from '../../src/base/band-errors.js';
import { GatewayError } from '../../src/base/errors.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import type { PlatformConnection } from '../../src/core/platform-connection.js';
import type { InstanceLock } from '../../src/runtime/instance-lock.js';
import { agentLab } from '../support/agent-lab.js';
import { AGENT_ID } from '../support/fake-band.js';

/** An adapter of the interface alone that writes down what is called. */
function plainAdapter(order: string[], extra: Partial<FrameworkAdapter> = {}): FrameworkAdapter {
  return {
    onEvent: async ({ tools }) => {
      order.push('onEvent');
      await tools.noReply();
    },
    onStarted: async (name, description) => {
      order.push(`onStarted ${name}/${description}`);
    },
    onCleanup: async (roomId) => {
      order.push(`onCleanup ${roomId}`);
    },
    ...extra,
  };
}

function recordingLock(order: string[]): InstanceLock {
  return {
    path: '/lock',
    claim: async () => {
      order.push('claim');
    },
    release: async () => {
      order.push('release');
    },
  };
}

describe('an adapter that wants to know of the connection', () => {
  it('hears after onStarted that it is up, and each time it goes down or comes back', async () => {
    const order: string[] = [];
    const adapter = plainAdapter(order, {
      onConnection: (isConnected) => {
        order.push(isConnected ? 'up' : 'down');
      },
    });
    const lab = agentLab({ agent: { adapter } });
    await lab.agent.start();
    expect(order.map((step) => step.split(' ')[0])).toEqual(['onStarted', 'up']);
    order.length = 0;
    lab.band.link.drop();
    lab.band.link.reconnect();
    await lab.agent.stop();
    expect(order.filter((step) => step === 'up' || step === 'down')).toEqual(['down', 'up', 'down']);
  });
});

describe('Agent.create', () => {
  it('R-001 R-002 makes an agent of the three required options, without any I/O', () => {
    const createLock = vi.fn(() => recordingLock([]));
    const createLink = vi.fn();
    const agent = Agent.create(
      { adapter: plainAdapter([]), agentId: AGENT_ID, apiKey: 'k' },
      { createLock, createLink },
    );
    expect(agent).toBeInstanceOf(Agent);
    expect(agent.isRunning).toBe(false);
    expect(agent.agentName).toBe('');
    expect(createLink).not.toHaveBeenCalled();
  });

  it('R-002 refuses to do without an adapter, an agent id or a key', () => {
    const good = { adapter: plainAdapter([]), agentId: AGENT_ID, apiKey: 'k' };
    for (const missing of ['adapter', 'agentId', 'apiKey'] as const) {
      expect(() => Agent.create({ ...good, [missing]: undefined as never })).toThrow(BandConfigError);
    }
    expect(() => Agent.create({ ...good, agentId: '' })).toThrow(BandConfigError);
  });

  it('R-004 R-005 R-006 R-008 takes each address from its argument, else from the environment of this moment', () => {
    vi.stubEnv('BAND_WS_URL', 'ws://env/socket');
    vi.stubEnv('BAND_REST_URL', 'http://env');
    const of = (options: { wsUrl?: string | null; restUrl?: string | null }) =>
      Agent.create({ adapter: plainAdapter([]), agentId: AGENT_ID, apiKey: 'k', ...options }).runtime.connection;
    expect(of({})).toMatchObject({ wsUrl: 'ws://env/socket', restUrl: 'http://env' });
    expect(of({ wsUrl: null, restUrl: '' })).toMatchObject({ wsUrl: 'ws://env/socket', restUrl: 'http://env' });
    expect(of({ wsUrl: 'ws://arg', restUrl: 'http://arg' })).toMatchObject({
      wsUrl: 'ws://arg',
      restUrl: 'http://arg',
    });
    vi.stubEnv('BAND_WS_URL', '');
    expect(of({})).toMatchObject({ wsUrl: 'wss://app.band.ai/api/v1/socket/websocket', restUrl: 'http://env' });
  });

  it('R-007 R-009 falls back to Band Cloud, each address on its own', () => {
    vi.stubEnv('BAND_WS_URL', undefined);
    vi.stubEnv('BAND_REST_URL', undefined);
    const { connection } = Agent.create({
      adapter: plainAdapter([]),
      agentId: AGENT_ID,
      apiKey: 'k',
      wsUrl: 'ws://mine',
    }).runtime;
    expect(connection).toMatchObject({ wsUrl: 'ws://mine', restUrl: 'https://app.band.ai' });
  });

  it('R-010 warns once, naming both variables, when exactly one address ended at Band Cloud', () => {
    vi.stubEnv('BAND_WS_URL', undefined);
    vi.stubEnv('BAND_REST_URL', undefined);
    const lab = agentLab({ agent: { restUrl: null } });
    const warnings = lab.lines.filter(({ level }) => level === 40);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]!.msg).toContain('BAND_WS_URL');
    expect(warnings[0]!.msg).toContain('BAND_REST_URL');
    expect(agentLab({ agent: { restUrl: null, wsUrl: null } }).lines).toEqual([]);
    expect(agentLab().lines).toEqual([]);
  });

  it('R-016 hands the key to REST and link as it is', async () => {
    const keys: string[] = [];
    const lab = agentLab({ agent: { apiKey: 'proxy-managed' } });
    const agent = Agent.create(
      { adapter: plainAdapter([]), agentId: AGENT_ID, apiKey: 'proxy-managed', config: { singleInstance: false } },
      {
        clock: lab.clock,
        createRest: ({ apiKey }) => (keys.push(apiKey), lab.band.rest),
        createLink: ({ apiKey }) => (keys.push(apiKey), lab.band.createLink()),
      },
    );
    await agent.start();
    expect(keys).toEqual(['proxy-managed', 'proxy-managed']);
    await agent.stop();
  });
});

describe('Agent.start', () => {
  it('R-027 R-032 R-145 lock, metadata, connection, onStarted, link, in this order, and no message before', async () => {
    const order: string[] = [];
    const adapter = plainAdapter(order);
    let connection: PlatformConnection | null | undefined;
    adapter.onStarted = async () => {
      connection = adapter.platform;
      order.push(`onStarted connects=${lab.band.links.length}`);
    };
    const lab = agentLab({
      agent: { adapter, config: { singleInstance: true } },
      ports: { createLock: () => recordingLock(order) },
    });
    lab.band.addRoom('room');
    lab.band.post('room', 'waiting', { push: false });
    const getMe = lab.band.rest.getMe.bind(lab.band.rest);
    lab.band.rest.getMe = (options) => {
      order.push('metadata');
      return getMe(options);
    };
    await lab.agent.start();
    await lab.settle();
    expect(order).toEqual(['claim', 'metadata', 'onStarted connects=0', 'onEvent']);
    expect(connection).toMatchObject({ agentId: AGENT_ID, restUrl: 'http://band.invalid' });
    await lab.agent.stop();
  });

  it('R-003 runs an adapter that only implements the interface', async () => {
    const order: string[] = [];
    const lab = agentLab({ agent: { adapter: plainAdapter(order) } });
    lab.band.addRoom('room');
    await lab.agent.start();
    lab.band.post('room', 'hello');
    await lab.settle();
    await lab.agent.stop();
    expect(order).toEqual(['onStarted Helper/Answers questions', 'onEvent', 'onCleanup room']);
  });

  it('R-028 a second start on a running agent warns and changes nothing', async () => {
    const lab = agentLab();
    await lab.agent.start();
    await lab.agent.start();
    expect(lab.band.called('getMe')).toHaveLength(1);
    expect(lab.lines.filter(({ msg, level }) => msg === 'Agent already started' && level === 40)).toHaveLength(1);
  });

  it('R-029 R-031 R-033 R-083 logs the connection line with the name that the platform gave', async () => {
    const lab = agentLab();
    lab.band.name = 'Weather Agent';
    await lab.agent.start();
    expect(lab.lines.filter(({ level }) => level === 30)).toMatchObject([
      { logger: 'band.agent', msg: 'Agent started: Weather Agent (band-sdk 6.0.1)' },
    ]);
    expect(lab.agent.agentName).toBe('Weather Agent');
    expect(lab.agent.agentDescription).toBe('Answers questions');
    expect(lab.adapter.agentName).toBe('Weather Agent');
  });

  it('R-030 R-160 logs no such line when authentication, metadata or the connection fails', async () => {
    const failures: ((lab: ReturnType<typeof agentLab>) => void)[] = [
      (lab) => {
        lab.band.fail('getMe', { code: 'BAND_UNAUTHORIZED', statusCode: 401 });
      },
      (lab) => {
        lab.band.description = null;
      },
      (lab) => {
        const { band } = lab;
        const createLink = band.createLink.bind(band);
        band.createLink = () => Object.assign(createLink(), { connectError: new GatewayError('BAND_UNREACHABLE') });
      },
    ];
    for (const breakIt of failures) {
      const lab = agentLab();
      breakIt(lab);
      await expect(lab.agent.start()).rejects.toThrow();
      expect(lab.lines.filter(({ msg }) => msg.includes('Agent started'))).toEqual([]);
      expect(lab.agent.isRunning).toBe(false);
    }
  });

  it('R-034 metadata answered 429 is asked again after 1, 2, 4, 8 and 16 seconds, then the error is thrown', async () => {
    const lab = agentLab();
    const begun = lab.clock.now();
    lab.band.fail('getMe', { times: 6, code: 'BAND_RATE_LIMITED', statusCode: 429 });
    const starting = lab.agent.start();
    const outcome = expect(starting).rejects.toMatchObject({ statusCode: 429 });
    await lab.clock.advance(60_000);
    await outcome;
    expect(lab.band.called('getMe').map(({ at }) => (at - begun) / 1_000)).toEqual([0, 1, 3, 7, 15, 31]);
  });

  it('R-034 any other failure of the metadata is thrown at once', async () => {
    const lab = agentLab();
    lab.band.fail('getMe', { code: 'BAND_UNAVAILABLE', statusCode: 503 });
    await expect(lab.agent.start()).rejects.toBeInstanceOf(ApiError);
    expect(lab.band.called('getMe')).toHaveLength(1);
  });

  it('R-035 metadata without a description fails the start, naming the agent', async () => {
    for (const description of [null, '']) {
      const lab = agentLab();
      lab.band.description = description;
      const error: unknown = await lab.agent.start().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ValueError);
      expect((error as Error).message).toContain(AGENT_ID);
    }
  });

  it('R-036 a failure at or after onStarted calls cleanupAll and throws the original error', async () => {
    const order: string[] = [];
    const lab = agentLab({
      agent: {
        adapter: plainAdapter(order, {
          onStarted: () => Promise.reject(new Error('original')),
          cleanupAll: () => {
            order.push('cleanupAll');
            return Promise.reject(new Error('cleanup failed too'));
          },
        }),
      },
    });
    await expect(lab.agent.start()).rejects.toThrow('original');
    expect(order).toEqual(['cleanupAll']);
  });

  it('R-036 a failure before onStarted leaves the adapter alone', async () => {
    const order: string[] = [];
    const lab = agentLab({
      agent: { adapter: plainAdapter(order, { cleanupAll: async () => void order.push('cleanupAll') }) },
    });
    lab.band.fail('getMe');
    await expect(lab.agent.start()).rejects.toThrow();
    expect(order).toEqual([]);
  });

  it('R-037 R-038 a failed start leaves no link, timer, room or lock, and the next one asks for the metadata again', async () => {
    const order: string[] = [];
    const lab = agentLab({
      agent: { config: { singleInstance: true } },
      ports: { createLock: () => recordingLock(order) },
    });
    lab.band.addRoom('room');
    const createLink = lab.band.createLink.bind(lab.band);
    lab.band.createLink = () => Object.assign(createLink(), { connectError: new GatewayError('BAND_UNREACHABLE') });
    await expect(lab.agent.start()).rejects.toBeInstanceOf(BandConnectionError);
    expect(order).toEqual(['claim', 'release']);
    expect(lab.band.link.isClosed).toBe(true);
    expect(lab.agent.runtime.rooms).toBeNull();
    expect(lab.clock.pending).toBe(0);

    lab.band.createLink = createLink;
    lab.band.name = 'Renamed';
    await lab.agent.start();
    expect(lab.agent.agentName).toBe('Renamed');
    expect(lab.band.called('getMe')).toHaveLength(2);
  });

  it('R-038 a start that fails after rooms are live takes them down again', async () => {
    const cleaned: string[] = [];
    const lab = agentLab({
      agent: { adapter: plainAdapter(cleaned) },
    });
    lab.band.addRoom('room');
    lab.band.fail('getMe', { times: 0 });
    const createLink = lab.band.createLink.bind(lab.band);
    lab.band.createLink = () => {
      const link = createLink();
      const join = link.join.bind(link);
      link.join = (topic) =>
        topic.startsWith('agent_rooms') ? Promise.reject(new GatewayError('BAND_TIMEOUT')) : join(topic);
      return link;
    };
    await expect(lab.agent.start()).rejects.toThrow();
    expect(lab.band.link.isClosed).toBe(true);
    expect(lab.clock.pending).toBe(0);
  });

  it('R-039 concurrent starts share one', async () => {
    const lab = agentLab();
    await Promise.all([lab.agent.start(), lab.agent.start(), lab.agent.start()]);
    expect(lab.band.called('getMe')).toHaveLength(1);
    expect(lab.band.links).toHaveLength(1);
  });

  it('R-086 R-087 isRunning is true between a successful start and stop, and runtime is the platform runtime', async () => {
    const lab = agentLab();
    expect(lab.agent.isRunning).toBe(false);
    const starting = lab.agent.start();
    expect(lab.agent.isRunning).toBe(false);
    await starting;
    expect(lab.agent.isRunning).toBe(true);
    expect(lab.agent.runtime.agentId).toBe(AGENT_ID);
    const stopping = lab.agent.stop();
    expect(lab.agent.isRunning).toBe(false);
    await stopping;
    expect(lab.agent.isRunning).toBe(false);
  });

  it('hands the control hook to the link before it connects', async () => {
    const lab = agentLab();
    const order: string[] = [];
    const createLink = lab.band.createLink.bind(lab.band);
    lab.band.createLink = () => {
      const link = createLink();
      const connect = link.connect.bind(link);
      const onControl = link.onControl.bind(link);
      link.onControl = (handler) => {
        order.push('control');
        onControl(handler);
      };
      link.connect = () => {
        order.push('connect');
        return connect();
      };
      return link;
    };
    await lab.agent.start();
    expect(order).toEqual(['control', 'connect']);
  });
});
