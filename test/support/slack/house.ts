import { onTestFinished } from 'vitest';
import { RelayAdapter } from '../../../src/adapters/relay.js';
import type { RelayOptionsInput } from '../../../src/adapters/relay-settings.js';
import { GenericAdapter, type GenericCallback } from '../../../src/adapters/generic.js';
import type { Agent } from '../../../src/agent.js';
import { silentLogger, type Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { DEMO, startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { SlackAdapter } from '../../../bridges/slack/adapter.js';
import type { SlackOptionsInput } from '../../../bridges/slack/settings.js';
import { sandboxAgent } from '../sandbox-agent.js';
import { startAcme, type Acme } from './acme.js';

export interface HouseOptions {
  readonly slack?: SlackOptionsInput;
  readonly relay?: RelayOptionsInput;
  /** The brain; default the relay, with `demo/echo` as its peer. */
  readonly inner?: FrameworkAdapter;
  /** What `demo/echo` does with a message; default it echoes. */
  readonly echo?: GenericCallback;
  readonly store?: StateStore;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  readonly acme?: Parameters<typeof startAcme>[0];
}

/** A whole house in one process: Slack double → bridge → sandbox → demo agent → double. */
export interface House extends Acme {
  readonly sandbox: Sandbox;
  readonly store: StateStore;
  adapter: SlackAdapter;
  /** Stops the bridge's Agent and starts another on the same store. */
  restart(): Promise<void>;
  stopBridge(): Promise<void>;
  /** Texts of the bot in a thread, oldest first. */
  said(channel: { id: string } | string, threadTs: string): string[];
  /** Waits until the bot has said so many things in a thread. */
  hears(channel: { id: string } | string, threadTs: string, count: number, timeoutMs?: number): Promise<string[]>;
}

export const echoBack: GenericCallback = async ({ message, tools }) => {
  const text = message.content.replace(/^(?:@\S+\s+)+/, '');
  await tools.sendMessage(`echo: ${text}`, [{ id: message.senderId }]);
};

export async function startHouse(options: HouseOptions = {}): Promise<House> {
  const acme = await startAcme({
    ...options.acme,
    app: { socketMode: true, ...options.acme?.app },
  });
  const sandbox = await startSandbox({ port: 0 });
  const store = options.store ?? createMemoryStore();
  const echo = sandboxAgent(sandbox, { adapter: new GenericAdapter(options.echo ?? echoBack) });
  await echo.start();

  let agent: Agent | null = null;
  const start = async (): Promise<SlackAdapter> => {
    const inner =
      options.inner ?? new RelayAdapter({ peer: 'demo/echo', ...options.relay }, { store, prefix: 'slack/t/relay' });
    const adapter = new SlackAdapter(
      {
        inner,
        botToken: acme.botToken,
        ...(acme.app.socketMode ? { appToken: acme.app.appToken } : { signingSecret: acme.app.signingSecret }),
        slackApiUrl: acme.slack.apiUrl,
        ...options.slack,
      },
      {
        store,
        prefix: 'slack/t',
        log: options.log ?? silentLogger,
        ...(options.metrics ? { metrics: options.metrics } : {}),
        usualTransport: 'socket',
      },
    );
    agent = sandboxAgent(sandbox, { adapter, agentId: DEMO.helpdesk.id, apiKey: DEMO.helpdesk.apiKey });
    await agent.start();
    return adapter;
  };
  const stopBridge = async () => {
    await agent?.stop();
    agent = null;
  };
  const said: House['said'] = (channel, threadTs) =>
    acme.slack.botMessages(typeof channel === 'string' ? channel : channel.id, threadTs).map(({ text }) => text);

  const house: House = {
    ...acme,
    sandbox,
    store,
    adapter: await start(),
    stopBridge,
    async restart() {
      await stopBridge();
      house.adapter = await start();
    },
    said,
    async hears(channel, threadTs, count, timeoutMs = 10_000) {
      await acme.slack.until(() => said(channel, threadTs).length >= count, 'answers in the thread', timeoutMs);
      return said(channel, threadTs);
    },
  };
  onTestFinished(async () => {
    await stopBridge();
    await echo.stop();
    await sandbox.close();
    await acme.slack.stop();
  });
  return house;
}
