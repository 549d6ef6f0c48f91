import type { AgentPorts } from './ports.js';

/** Handlers that are on the process for a while, beside whatever else listens there. */
export interface SignalWatch {
  /** Takes them off again; what listened before is as it was. */
  remove(): void;
}

/**
 * Calls `onSignal` for each of `signals`, with how many have come so far, from 1.
 *
 * @param target - the process
 */
export function watchSignals(
  target: AgentPorts['process'],
  signals: readonly NodeJS.Signals[],
  onSignal: (signal: NodeJS.Signals, count: number) => void,
): SignalWatch {
  let count = 0;
  const listener = (signal: NodeJS.Signals) => {
    count += 1;
    onSignal(signal, count);
  };
  for (const signal of signals) target.on(signal, listener);
  return {
    remove() {
      for (const signal of signals) target.off(signal, listener);
    },
  };
}
