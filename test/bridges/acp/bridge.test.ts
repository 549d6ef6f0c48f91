import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/base/log.js';
import { noMetrics } from '../../../src/base/metrics.js';
import { createRedactor } from '../../../src/base/redact.js';
import { optionsFromSnake } from '../../../src/config/setting.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { BandACPServerAdapter } from '../../../bridges/acp/adapter.js';
import { acpBridge, acpSettings } from '../../../bridges/acp/index.js';
import { GATEWAY_VERSION } from '../../../bridges/acp/version.js';
import { packageVersion } from '../../../src/cli/version.js';

const clock = createManualClock();
const ports = {
  clock,
  log: silentLogger,
  metrics: noMetrics,
  redactor: createRedactor(),
  http: { mount: () => () => undefined, publicUrl: null },
  store: createMemoryStore(clock),
};

describe('the ACP bridge in the service', () => {
  it('opens with the settings of the file and reports editors, sessions and prompts', async () => {
    const options = optionsFromSnake(acpSettings, {
      peers: ['ana/codex'],
      modes: [{ id: 'code', peer: 'codex' }],
      turn: { grace_ms: 100 },
    });
    const bridge = await acpBridge.open({ name: 'ed', options }, ports);
    const { adapter } = bridge;
    if (!(adapter instanceof BandACPServerAdapter)) throw new Error('another adapter');
    expect(adapter.options).toEqual(options);
    expect(bridge.report()).toMatchObject({
      links: [{ name: 'editors', state: '0 connected, 0 sessions' }],
      queues: [{ name: 'prompts', depth: 0, dead: 0 }],
    });
    expect(bridge.blockers()).toEqual([]);
    expect(bridge.deadLetters).toBeNull();
    const findings = await acpBridge.check({ name: 'ed', options }, { clock }, new AbortController().signal);
    expect(findings).toEqual([{ level: 'ok', subject: 'ed: acp', message: 'editors are served; ana/codex' }]);
  });

  it('P-013 refuses options it does not have, by name', () => {
    const bad = { peerz: ['x'] } as unknown as ConstructorParameters<typeof BandACPServerAdapter>[0];
    expect(() => new BandACPServerAdapter(bad)).toThrow(/unexpected keyword argument 'peerz'/);
    const nested = { turn: { graceMz: 1 } } as unknown as typeof bad;
    expect(() => new BandACPServerAdapter(nested)).toThrow(/Extra inputs are not permitted/);
    expect(() => new BandACPServerAdapter({ turn: { graceMs: -1 } })).toThrow(/grace_ms/);
  });

  it('R-148 tells that Band is not there yet when asked for it before the start', () => {
    expect(() => new BandACPServerAdapter().requirePlatform()).toThrow('platform connection not available yet');
  });

  it("tells editors the package's version", () => {
    expect(GATEWAY_VERSION).toBe(packageVersion());
  });
});
