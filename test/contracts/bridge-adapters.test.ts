import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { SlackAdapter } from '../../bridges/slack/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { RelayAdapter } from '../../src/adapters/relay.js';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { BandACPServerAdapter } from '../../bridges/acp/index.js';
import { callRest } from '../support/rest-call.js';
import { fakeAgentInput, FakeAgentTools } from '../../src/testing/index.js';
import { createPlatformConnection } from '../../src/core/platform-connection.js';
import { closeRestConnections, SimpleAdapter } from '../../src/core/simple-adapter.js';
import { createMemoryStore } from '../../src/store/memory.js';

const ADAPTERS: [string, (options: Record<string, unknown>) => SimpleAdapter<unknown>][] = [
  ['A2AGatewayAdapter', (options) => new A2AGatewayAdapter(options)],
  ['BandACPServerAdapter', (options) => new BandACPServerAdapter(options)],
  [
    'SlackAdapter',
    (options) =>
      new SlackAdapter({
        inner: new GenericAdapter(() => Promise.resolve()),
        transport: 'socket',
        apps: [{ slug: 'main', botToken: 'xoxb-1', appToken: 'xapp-1' }],
        ...options,
      }),
  ],
];

describe.each(ADAPTERS)('%s', (_name, create) => {
  it('is a SimpleAdapter that can be made without opening anything', () => {
    expect(create({})).toBeInstanceOf(SimpleAdapter);
  });

  it.each(['apiKey', 'restUrl'])('R-151 takes no %s: its credentials come with the connection', (option) => {
    expect(() => create({ [option]: 'x' })).toThrow();
  });

  it('R-152 a flat unknown option is refused as the reference refuses it', () => {
    expect(() => create({ nonsense: 1 })).toThrow(
      new TypeError("SimpleAdapter._resolve_features() got an unexpected keyword argument 'nonsense'"),
    );
  });

  it('R-291 needs the injected connection before anything else', async () => {
    await expect(create({}).onStarted('name', 'description')).rejects.toThrow('platform connection not available yet');
  });
});

/** A platform that refuses every key and remembers which it was shown. */
async function strictPlatform() {
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['x-api-key']);
    const error = { code: 'unauthorized', message: 'no', request_id: 'r' };
    response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const restUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const wsUrl = 'ws://127.0.0.1:1';
  return { keys, server, connection: createPlatformConnection({ agentId: 'a1', apiKey: 'key-of-a1', restUrl, wsUrl }) };
}

// The Slack adapter's first platform call follows a person's message: the tests of its own folder show it on the sandbox.
describe('platform calls of bridges', () => {
  it('R-291 A2AGatewayAdapter looks for peers at the injected address with the injected key', async () => {
    const { keys, server, connection } = await strictPlatform();
    const adapter = new A2AGatewayAdapter(
      { port: 0, auth: { anonymous: 'loopback' } },
      { store: { state: createMemoryStore(), durable: false } },
    );
    adapter.platform = connection;
    try {
      await adapter.onStarted('name', 'description');
      await callRest(adapter.url ?? '', 'GET', '/agents/echo/.well-known/agent-card.json', null);
    } finally {
      await adapter.cleanupAll();
      await closeRestConnections(adapter);
      server.close();
    }
    expect(new Set(keys)).toEqual(new Set(['key-of-a1']));
  });

  it('R-291 BandACPServerAdapter asks who it is at the injected address with the injected key', async () => {
    const { keys, server, connection } = await strictPlatform();
    const adapter = new BandACPServerAdapter({}, { socketPath: null });
    adapter.platform = connection;
    try {
      await expect(adapter.onStarted('name', 'description')).rejects.toThrow();
    } finally {
      await adapter.cleanupAll();
      await closeRestConnections(adapter);
      server.close();
    }
    expect(keys).toEqual(['key-of-a1']);
  });
});

describe('RelayAdapter', () => {
  it('R-152 refuses a flat unknown option likewise', () => {
    expect(() => new RelayAdapter({ model: 'x' } as never)).toThrow(
      new TypeError("SimpleAdapter._resolve_features() got an unexpected keyword argument 'model'"),
    );
  });
});

describe('turns of bridges', () => {
  it.each(ADAPTERS.slice(0, 2))('R-282 a turn of %s is never judged', async (_name, create) => {
    class Silent extends (create({}).constructor as new () => SimpleAdapter) {
      override async onMessage(): Promise<void> {
        await Promise.resolve();
      }
    }
    const tools = new FakeAgentTools();
    await new Silent().onEvent(fakeAgentInput({ tools }));
    expect(tools.calls).toEqual([]);
  });
});
