import { setMaxListeners } from 'node:events';

/** A controller whose signal many calls listen to at the same time, which Node would otherwise take for a leak. */
export function commonSignal(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
