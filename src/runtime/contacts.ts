import { ValueError } from '../base/band-errors.js';
import type { ContactEventCallback } from './callbacks.js';

/** Who deals with contact requests and changes. */
export const ContactEventStrategy = {
  /** Nobody. */
  DISABLED: 'disabled',
  /** `onEvent`. */
  CALLBACK: 'callback',
  /** The adapter, in a room of its own. */
  HUB_ROOM: 'hub_room',
} as const;
export type ContactEventStrategy = (typeof ContactEventStrategy)[keyof typeof ContactEventStrategy];

/** How an Agent treats contact events; frozen. */
export class ContactEventConfig {
  /** Default `DISABLED`. */
  readonly strategy: ContactEventStrategy;
  /** Task id of the room that `HUB_ROOM` creates; default null. */
  readonly hubTaskId: string | null;
  /** Required by `CALLBACK`; default null. */
  readonly onEvent: ContactEventCallback | null;
  /** Tells every room session when a contact came or went, whatever the strategy; default false. */
  readonly broadcastChanges: boolean;

  /** @throws {ValueError} for `CALLBACK` without `onEvent`, or a `hubTaskId` that is no UUID */
  constructor(
    init: {
      strategy?: ContactEventStrategy | undefined;
      hubTaskId?: string | null | undefined;
      onEvent?: ContactEventCallback | null | undefined;
      broadcastChanges?: boolean | undefined;
    } = {},
  ) {
    this.strategy = init.strategy ?? ContactEventStrategy.DISABLED;
    this.hubTaskId = init.hubTaskId ?? null;
    this.onEvent = init.onEvent ?? null;
    this.broadcastChanges = init.broadcastChanges ?? false;

    if (!STRATEGIES.has(this.strategy)) throw new ValueError(`unknown contact event strategy '${this.strategy}'`);
    if (this.strategy === ContactEventStrategy.CALLBACK && !this.onEvent) {
      throw new ValueError('CALLBACK strategy requires on_event callback');
    }
    if (this.hubTaskId !== null && !isAnyUuid(this.hubTaskId)) {
      throw new ValueError(`hub_task_id must be a UUID, got '${this.hubTaskId}'`);
    }
    Object.freeze(this);
  }
}

const STRATEGIES: ReadonlySet<string> = new Set(Object.values(ContactEventStrategy));

/** 32 hex digits with or without hyphens, also in braces or after `urn:uuid:`, in either case. */
function isAnyUuid(text: string): boolean {
  const bare = text.replace(/^urn:uuid:/i, '').replace(/^\{(.*)\}$/, '$1');
  return /^[0-9a-f]{32}$/i.test(bare.replaceAll('-', ''));
}
