import type { BandRest } from '../../src/platform/rest/band-rest.js';
import type { AgentMe } from '../../src/platform/wire/objects.js';
import { abortable, deferred, withDeadline, type Deferred } from '../../src/base/async.js';
import type { Clock } from '../../src/base/clock.js';
import { isGatewayError } from '../../src/base/errors.js';
import { AcpFault } from './errors.js';
import { toPerson, type Person } from './roster.js';

/** Band as the sessions use it, once the runtime has told who the agent is. */
export interface BandAccess {
  readonly rest: BandRest;
  readonly self: Person;
  readonly ownerId: string | null;
}

export function bandAccess(rest: BandRest, me: AgentMe): BandAccess {
  return {
    rest,
    self: toPerson({ ...me, type: 'Agent', source: 'registry' }),
    ownerId: me.owner_uuid?.toLowerCase() ?? null,
  };
}

/** Where the way to Band stands. In `waiting` somebody is still trying; `refused` stays until that somebody says so. */
export type BandState =
  | { readonly kind: 'waiting'; readonly error: unknown }
  | { readonly kind: 'ready'; readonly access: BandAccess }
  | { readonly kind: 'refused'; readonly fault: AcpFault };

/** Lets session calls wait for Band, and tells them why they cannot have it. */
export interface BandGate {
  readonly state: BandState;
  set(state: BandState): void;
  /**
   * @throws {AcpFault} `platform_unavailable` after the ready timeout; the fault of a refusal at once
   */
  ready(signal: AbortSignal | null): Promise<BandAccess>;
  /** The access if there is one now. */
  readonly access: BandAccess | null;
}

export function createBandGate(clock: Clock, readyTimeoutMs: number): BandGate {
  let state: BandState = { kind: 'waiting', error: null };
  let changed: Deferred<undefined> = deferred();

  return {
    get state() {
      return state;
    },
    get access() {
      return state.kind === 'ready' ? state.access : null;
    },
    set(next) {
      state = next;
      const waiters = changed;
      changed = deferred();
      waiters.resolve(undefined);
    },
    async ready(signal) {
      if (state.kind === 'ready') return state.access;
      try {
        return await withDeadline(clock, readyTimeoutMs, signal, async (ends) => {
          for (;;) {
            if (state.kind === 'ready') return state.access;
            if (state.kind === 'refused') throw state.fault;
            await abortable(changed.promise, ends);
          }
        });
      } catch (error) {
        if (!isGatewayError(error, 'DEADLINE_EXCEEDED')) throw error;
        const cause = state.kind === 'waiting' && state.error !== null ? state.error : error;
        throw new AcpFault('platform_unavailable', { waitedMs: readyTimeoutMs }, { cause });
      }
    },
  };
}
