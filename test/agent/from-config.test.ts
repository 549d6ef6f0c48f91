import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { Agent, type AgentFromConfigOptions } from '../../src/agent.js';
import { BandConfigError } from '../../src/base/band-errors.js';
import { loadAgentConfig } from '../../src/config/agent-config-file.js';
import { SessionConfig } from '../../src/config/session-config.js';
import { ContactEventConfig } from '../../src/runtime/contacts.js';
import { createManualClock } from '../../src/testing/manual-clock.js';
import { AGENT_ID, FakeBand } from '../support/fake-band.js';

const FILE = `weather:\n  agent_id: ${AGENT_ID}\n  api_key: key-of-weather\nother:\n  agent_id: x\n  api_key: y\n`;
let dir: string;
const home = process.cwd();

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'from-config-'));
  writeFileSync(join(dir, 'agent_config.yaml'), FILE);
  writeFileSync(join(dir, 'elsewhere.yaml'), FILE.replace('key-of-weather', 'key-from-elsewhere'));
});
afterEach(() => {
  process.chdir(home);
  rmSync(dir, { recursive: true });
});

const silent = () =>
  new GenericAdapter(async ({ tools }) => {
    await tools.noReply();
  });

/** Starts an Agent from a file and says what its adapter and its REST client were given. */
async function started(options: Partial<AgentFromConfigOptions>, adapter = silent()) {
  const clock = createManualClock();
  const band = new FakeBand({ now: () => clock.now() });
  const agent = Agent.fromConfig(
    'weather',
    { adapter, wsUrl: 'ws://b.invalid', restUrl: 'http://b.invalid', config: { singleInstance: false }, ...options },
    { clock, createRest: () => band.rest, createLink: () => band.createLink() },
  );
  await agent.start();
  const connection = adapter.requirePlatform();
  await agent.stop();
  return { agent, connection };
}

describe('Agent.fromConfig', () => {
  it('R-017 R-018 takes id and key from the entry of that name, by default from agent_config.yaml in the working folder', async () => {
    process.chdir(dir);
    const { connection } = await started({});
    expect([connection.agentId, connection.apiKey]).toEqual([AGENT_ID, 'key-of-weather']);
  });

  it('R-017 takes them from another file when told so', async () => {
    const { connection } = await started({ configPath: join(dir, 'elsewhere.yaml') });
    expect(connection.apiKey).toBe('key-from-elsewhere');
  });

  it('R-019 hands every other option on unchanged', async () => {
    process.chdir(dir);
    const sessionConfig = new SessionConfig({ maxMessageRetries: 7 });
    const contactConfig = new ContactEventConfig({ broadcastChanges: true });
    const { agent, connection } = await started({ sessionConfig, contactConfig, wsUrl: 'ws://other.invalid' });
    expect(agent.contactConfig).toBe(contactConfig);
    expect(agent.runtime.sessionConfig).toBe(sessionConfig);
    expect(connection).toMatchObject({ wsUrl: 'ws://other.invalid', restUrl: 'http://b.invalid' });
  });

  it('R-020 uses the adapter that the caller made, and needs one', async () => {
    process.chdir(dir);
    const adapter = silent();
    await started({}, adapter);
    expect(adapter.agentName).toBe('Helper');
    expect(() => Agent.fromConfig('weather', {} as AgentFromConfigOptions)).toThrow(BandConfigError);
  });

  it('R-288 fails exactly as loadAgentConfig does', () => {
    const adapter = silent();
    process.chdir(dir);
    for (const [name, configPath] of [
      ['clock', undefined],
      ['weather', join(dir, 'nowhere.yaml')],
    ] as const) {
      const failureOf = (call: () => unknown) => {
        try {
          return call();
        } catch (error) {
          return error;
        }
      };
      const failure = failureOf(() => Agent.fromConfig(name, { adapter, configPath }));
      expect(failure).toBeInstanceOf(BandConfigError);
      expect(failure).toEqual(failureOf(() => loadAgentConfig(name, { configPath })));
    }
  });
});
