import { randomUUID } from 'node:crypto';

declare const brand: unique symbol;
/** A string that only its make/parse pair hands out. */
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** Names the outside thing that a room mirrors; made and parsed by the bridge that owns it. */
export type ConversationKey = Branded<'ConversationKey'>;

/** Source of fresh ids, as an argument so that tests can foresee them. */
export type NewId = () => string;

export const newUuid: NewId = () => randomUUID();

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True for a hyphenated UUID of any version, in either case. */
export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}
