import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { BandConfigError, RuntimeError, TurnResultAlreadyReported } from '../../src/base/band-errors.js';
import type { FeatureOptions } from '../../src/core/features.js';
import { HistoryProvider, type HistoryConverter } from '../../src/core/history.js';
import { createPlatformConnection } from '../../src/core/platform-connection.js';
import {
  cleanupRegistryOf,
  closeRestConnections,
  replaceFeatures,
  SimpleAdapter,
  type SimpleAdapterOptions,
} from '../../src/core/simple-adapter.js';
import { fakeAgentInput, FakeAgentTools } from '../../src/testing/index.js';

const CONNECTION = createPlatformConnection({
  agentId: 'a1',
  apiKey: 'key-1',
  restUrl: 'http://127.0.0.1:1',
  wsUrl: 'ws://127.0.0.1:1',
});

class Recorder<H = HistoryProvider> extends SimpleAdapter<H> {
  readonly turns: Parameters<SimpleAdapter<H>['onMessage']>[] = [];

  async onMessage(...turn: Parameters<SimpleAdapter<H>['onMessage']>): Promise<void> {
    this.turns.push(turn);
    turn[1].turn.settle();
  }
}

describe('SimpleAdapter › connection', () => {
  it('R-148 requirePlatform and buildRestClient before the start say that it is too early', () => {
    const adapter = new Recorder();
    const tooEarly = 'platform connection not available yet; the runtime injects it when the Agent starts';
    for (const call of [() => adapter.requirePlatform(), () => adapter.buildRestClient()]) {
      expect(call).toThrow(RuntimeError);
      expect(call).toThrow(tooEarly);
    }
    expect(adapter.platform).toBeNull();
  });

  it('R-149 requirePlatform after the injection gives the very connection', () => {
    const adapter = new Recorder();
    adapter.platform = CONNECTION;
    expect(adapter.requirePlatform()).toBe(CONNECTION);
  });

  it('R-150 R-292 buildRestClient talks to the injected address with the injected key, in onStarted and later', async () => {
    const seen: { url: string | undefined; headers: IncomingHttpHeaders }[] = [];
    const server = createServer((request, response) => {
      seen.push({ url: request.url, headers: request.headers });
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ data: { id: 'a1', name: 'Weather', description: 'd' } }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const names: string[] = [];
    class Caller extends Recorder {
      readonly #kept = () => this.buildRestClient();
      override async onStarted(name: string, description: string): Promise<void> {
        await super.onStarted(name, description);
        names.push((await this.buildRestClient().getMe()).name);
      }
      async later(): Promise<void> {
        names.push((await this.#kept().getMe()).name);
      }
    }
    const adapter = new Caller();
    const restUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    adapter.platform = createPlatformConnection({ ...CONNECTION, apiKey: 'key-1', restUrl });
    try {
      await adapter.onStarted('Weather', 'd');
      await adapter.later();
      await closeRestConnections(adapter);
      await adapter.later();
    } finally {
      await closeRestConnections(adapter);
      server.close();
    }
    expect(names).toEqual(['Weather', 'Weather', 'Weather']);
    expect(seen.map(({ url, headers }) => [url, headers['x-api-key']])).toEqual(
      Array.from({ length: 3 }, () => ['/api/v1/agent/me', 'key-1']),
    );
  });

  it('closing the connections of other adapters does nothing', async () => {
    const other = { onEvent: vi.fn(), onCleanup: vi.fn(), onStarted: vi.fn() };
    await expect(closeRestConnections(other)).resolves.toBeUndefined();
  });
});

describe('SimpleAdapter › options', () => {
  it('R-152 a flat unknown option is refused as the reference refuses it', () => {
    expect(() => new Recorder({ model: 'x' } as SimpleAdapterOptions<HistoryProvider>)).toThrow(
      new TypeError("SimpleAdapter._resolve_features() got an unexpected keyword argument 'model'"),
    );
  });

  it('R-154 an unsupported value is refused with the name of the class', () => {
    expect(() => new Recorder({ emit: 'usage' })).toThrow(BandConfigError);
    expect(() => new Recorder({ emit: 'usage' })).toThrow('Recorder does not support emit kind(s): usage');
    expect(() => new Recorder({ capabilities: ['memory'] })).toThrow(
      'Recorder does not support capability/-ies: memory',
    );
  });

  it('R-155 the static sets of a subclass say what is supported', () => {
    class Rich extends Recorder {
      static override readonly SUPPORTED_EMIT = new Set(['thoughts', 'usage'] as const);
      static override readonly SUPPORTED_CAPABILITIES = new Set(['memory'] as const);
    }
    const features = (options: FeatureOptions) => new Rich(options).features;
    expect(features({})).toMatchObject({ emit: new Set(['thoughts', 'usage']), capabilities: new Set() });
    expect(features({ emit: [], capabilities: 'memory' })).toMatchObject({
      emit: new Set(),
      capabilities: new Set(['memory']),
    });
    expect(new Recorder().features.emit).toEqual(new Set());
  });

  it('a wrapping adapter can give its features to the one inside', () => {
    const inner = new Recorder();
    const outer = new Recorder({ excludeTools: ['band_no_reply'] });
    replaceFeatures(inner, outer.features);
    expect(inner.features).toBe(outer.features);
  });
});

describe('SimpleAdapter › a message', () => {
  const history = [
    {
      id: 'm0',
      role: 'user' as const,
      content: 'before',
      senderName: 'Ann',
      senderType: 'User',
      messageType: 'text',
      metadata: {},
      createdAt: new Date(0),
    },
  ];

  it('R-156 with a converter onMessage gets the converted history', async () => {
    const converter: HistoryConverter<string> = { convert: (raw) => raw.map(({ content }) => content).join() };
    const adapter = new Recorder<string>({ historyConverter: converter });
    await adapter.onEvent(fakeAgentInput({ history }));
    expect(adapter.turns[0]?.[2]).toBe('before');
  });

  it('R-156 without a converter onMessage gets the provider itself', async () => {
    const adapter = new Recorder();
    const input = fakeAgentInput({ history });
    await adapter.onEvent(input);
    expect(adapter.turns[0]?.[2]).toBe(input.history);
    expect(adapter.turns[0]?.[2]).toBeInstanceOf(HistoryProvider);
  });

  it('R-140 onMessage gets the message, tools of its room, the notices and the turn’s signal', async () => {
    const adapter = new Recorder();
    const signal = new AbortController().signal;
    const tools = new FakeAgentTools({ roomId: 'room-7' });
    const input = fakeAgentInput({
      tools,
      participantsMsg: 'who',
      contactsMsg: 'news',
      isSessionBootstrap: true,
      signal,
    });
    await adapter.onEvent(input);
    expect(adapter.turns).toEqual([
      [input.msg, tools, input.history, 'who', 'news', { isSessionBootstrap: true, roomId: 'room-7', signal }],
    ]);
    expect([input.msg.roomId, input.tools.roomId]).toEqual(['room-7', 'room-7']);
  });

  class Silent extends SimpleAdapter {
    async onMessage(): Promise<void> {
      await Promise.resolve();
    }
  }

  it('R-274 a turn that ends without an answer is judged', async () => {
    const tools = new FakeAgentTools();
    await expect(new Silent().onEvent(fakeAgentInput({ tools }))).rejects.toThrow(TurnResultAlreadyReported);
    expect(tools.events).toHaveLength(1);
  });

  it('R-282 an adapter that does not judge its turns may be silent', async () => {
    class Bridge extends Silent {
      protected override get judgesTurns(): boolean {
        return false;
      }
    }
    const tools = new FakeAgentTools();
    await new Bridge().onEvent(fakeAgentInput({ tools }));
    expect(tools.events).toEqual([]);
  });

  it('a throw of onMessage comes through unjudged', async () => {
    class Broken extends SimpleAdapter {
      async onMessage(): Promise<void> {
        await Promise.reject(new Error('model is down'));
      }
    }
    const tools = new FakeAgentTools();
    await expect(new Broken().onEvent(fakeAgentInput({ tools }))).rejects.toThrow('model is down');
    expect(tools.events).toEqual([]);
  });

  it('R-139 the input is frozen and carries its parts', () => {
    const input = fakeAgentInput();
    expect(Object.isFrozen(input)).toBe(true);
    expect(Object.keys(input).sort()).toEqual([
      'commitContext',
      'contactsMsg',
      'history',
      'isSessionBootstrap',
      'msg',
      'participantsMsg',
      'roomId',
      'signal',
      'tools',
    ]);
    expect(() => {
      (input as { roomId: string }).roomId = 'other';
    }).toThrow(TypeError);
  });
});

describe('SimpleAdapter › life cycle', () => {
  it('R-157 onStarted stores name and description and tells the converter the name', async () => {
    const setAgentName = vi.fn();
    const adapter = new Recorder<null>({ historyConverter: { convert: () => null, setAgentName } });
    expect([adapter.agentName, adapter.agentDescription]).toEqual(['', '']);
    await adapter.onStarted('Weather', 'tells the weather');
    expect([adapter.agentName, adapter.agentDescription]).toEqual(['Weather', 'tells the weather']);
    expect(setAgentName).toHaveBeenCalledExactlyOnceWith('Weather');
  });

  it('the base has nothing to clean up for a room or for all', async () => {
    const adapter = new Recorder();
    await expect(Promise.all([adapter.onCleanup('r', { reason: 'shutdown' }), adapter.cleanupAll()])).resolves.toEqual([
      undefined,
      undefined,
    ]);
  });

  it('R-059 R-060 addCleanup registers functions only, for the runtime to run', async () => {
    const adapter = new Recorder();
    let closed = 0;
    adapter.addCleanup(async () => {
      closed += 1;
    });
    expect(() => {
      adapter.addCleanup(Promise.resolve() as never);
    }).toThrow(TypeError);
    const registry = cleanupRegistryOf(adapter);
    expect(registry?.pending).toBe(1);
    await registry?.run();
    expect(closed).toBe(1);
  });

  it('R-065 addCleanup after the host started is refused', () => {
    const adapter = new Recorder();
    cleanupRegistryOf(adapter)?.host({});
    expect(() => {
      adapter.addCleanup(() => undefined);
    }).toThrow(new BandConfigError('Register cleanup before starting the host'));
  });

  it('an adapter that is no SimpleAdapter has no registry', () => {
    expect(cleanupRegistryOf({ onEvent: vi.fn(), onCleanup: vi.fn(), onStarted: vi.fn() })).toBeNull();
  });
});
