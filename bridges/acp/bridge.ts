import type { Bridge, BridgeModule, BridgeReport, Finding } from '../../src/core/bridge.js';
import { BandACPServerAdapter } from './adapter.js';
import type { AcpOptions } from './settings.js';

/** The ACP bridge as the service opens it. Editors come by the local socket beside the agent's lock. */
export const acpBridge: BridgeModule<AcpOptions> = {
  open({ name, options }, ports): Promise<Bridge> {
    const since = ports.clock.now();
    const adapter = new BandACPServerAdapter(toInput(options), {
      clock: ports.clock,
      log: ports.log,
      rest: {
        clock: ports.clock,
        log: ports.log,
        metrics: ports.metrics,
        ...(ports.dispatcher ? { dispatcher: ports.dispatcher } : {}),
      },
      indexStore: { store: ports.store, prefix: `acp/${name}/` },
    });
    return Promise.resolve({
      adapter,
      report(): BridgeReport {
        const editors = adapter.editors;
        return {
          links: [{ name: 'editors', state: `${editors.connections} connected, ${editors.sessions} sessions`, since }],
          queues: [{ name: 'prompts', depth: editors.prompts, dead: 0 }],
          lastErrors: [],
          recent: [],
        };
      },
      blockers: () => [],
      deadLetters: null,
    });
  },

  // Credentials are looked at by the service itself; nothing of an editor's can be looked at before it connects.
  check({ name, options }): Promise<readonly Finding[]> {
    const peers =
      options.peers.length === 0 ? 'no peers configured: the first prompt picks them' : options.peers.join(', ');
    return Promise.resolve([{ level: 'ok', subject: `${name}: acp`, message: `editors are served; ${peers}` }]);
  },
};

/** Options as a caller would pass them. */
function toInput(options: AcpOptions): ConstructorParameters<typeof BandACPServerAdapter>[0] {
  return { ...options, modes: options.modes.map((mode) => ({ ...mode })) };
}
