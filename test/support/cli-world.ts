import type { CliWorld } from '../../src/cli/world.js';

/** A process that is none: what a command says is kept, signals come when a test says so. */
export interface FakeCliWorld extends CliWorld {
  readonly said: { out: string; err: string; exits: number[] };
  signal(signal?: NodeJS.Signals): void;
}

export function fakeCliWorld(over: { env?: Record<string, string>; cwd?: string } = {}): FakeCliWorld {
  const said = { out: '', err: '', exits: [] as number[] };
  const handlers = new Set<(signal: NodeJS.Signals) => void>();
  return {
    env: { ...over.env },
    cwd: over.cwd ?? '/nowhere',
    isTerminal: false,
    said,
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
    onSignal(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    onCrash: () => undefined,
    exit(code) {
      said.exits.push(code);
    },
    signal(signal = 'SIGTERM') {
      for (const handler of handlers) handler(signal);
    },
  };
}
