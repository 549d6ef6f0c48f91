export { A2AGatewayAdapter, type A2APorts } from './adapter.js';
export { a2aBridge } from './bridge.js';
export { a2aSettings, type A2AOptions, type A2AOptionsInput } from './settings.js';
