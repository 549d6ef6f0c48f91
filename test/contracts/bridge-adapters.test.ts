import { describe, expect, it } from 'vitest';
import { SlackAdapter } from '../../bridges/slack/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { RelayAdapter } from '../../src/adapters/relay.js';
import { A2AGatewayAdapter } from '../../bridges/a2a/index.js';
import { BandACPServerAdapter } from '../../bridges/acp/index.js';
import { fakeAgentInput, FakeAgentTools } from '../../src/testing/index.js';
import { SimpleAdapter } from '../../src/core/simple-adapter.js';

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
