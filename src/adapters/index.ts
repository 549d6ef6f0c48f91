export { GenericAdapter } from './generic.js';
export type { GenericCallback, GenericTurn } from './generic.js';
