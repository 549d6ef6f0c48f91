import { BoundedMap } from '../base/bounded.js';
import type { AgentControl } from '../platform/wire/socket-events.js';

/** Correlation ids remembered. */
const MAX_REMEMBERED = 256;

export type ControlMode = AgentControl['mode'];

/** Whom a control signal is for. */
export type ControlTarget =
  | { readonly kind: 'room'; readonly roomId: string }
  | { readonly kind: 'all' }
  /** Already acted upon. */
  | { readonly kind: 'repeat' }
  /** Room scope without a room. */
  | { readonly kind: 'nobody' };

/**
 * Decides whom a signal concerns. The platform may send one signal more than once; its correlation id tells. Signals
 * without one are never taken for repeats.
 */
export class ControlRouter {
  readonly #seen = new BoundedMap<string, true>(MAX_REMEMBERED);

  route(control: AgentControl): ControlTarget {
    if (control.correlation_id) {
      if (this.#seen.has(control.correlation_id)) return { kind: 'repeat' };
      this.#seen.set(control.correlation_id, true);
    }
    if (control.room_id) return { kind: 'room', roomId: control.room_id };
    return control.scope === 'agent' ? { kind: 'all' } : { kind: 'nobody' };
  }
}
