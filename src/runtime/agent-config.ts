import { ConflictPolicy } from '../core/conflict-policy.js';

export interface AgentConfigInit {
  /** Default true. Accepted and kept, never read: an Agent always joins the rooms it is already in. */
  readonly autoSubscribeExistingRooms?: boolean | undefined;
  /** One process per agent id on this host; default true. */
  readonly singleInstance?: boolean | undefined;
  /** What the platform does with an older live connection of this agent; default `SUPERSEDE`. */
  readonly conflictPolicy?: ConflictPolicy | undefined;
}

/** How an Agent shares its identity with other processes; frozen. */
export class AgentConfig implements Required<AgentConfigInit> {
  readonly autoSubscribeExistingRooms: boolean;
  readonly singleInstance: boolean;
  readonly conflictPolicy: ConflictPolicy;

  constructor(init: AgentConfigInit = {}) {
    this.autoSubscribeExistingRooms = init.autoSubscribeExistingRooms ?? true;
    this.singleInstance = init.singleInstance ?? true;
    this.conflictPolicy = init.conflictPolicy ?? ConflictPolicy.SUPERSEDE;
    Object.freeze(this);
  }
}
