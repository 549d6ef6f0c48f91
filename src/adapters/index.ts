export { GenericAdapter } from './generic.js';
export type { GenericCallback, GenericTurn } from './generic.js';
export { RelayAdapter } from './relay.js';
export type { RelayPorts } from './relay.js';
export type { RelayOptions, RelayOptionsInput } from './relay-settings.js';
