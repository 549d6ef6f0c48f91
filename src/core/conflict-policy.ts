/** What the platform does when this agent already has a live connection; travels as `on_conflict`. */
export const ConflictPolicy = {
  /** The new connection takes over. */
  SUPERSEDE: 'supersede',
  /** The new connection is refused. */
  REJECT: 'reject',
} as const;
export type ConflictPolicy = (typeof ConflictPolicy)[keyof typeof ConflictPolicy];
