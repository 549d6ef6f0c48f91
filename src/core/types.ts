export { PlatformMessage } from './platform-message.js';
export type { AgentInput } from './agent-input.js';
export { HistoryProvider } from './history.js';
export type { PlatformConnection } from './platform-connection.js';
export { ConflictPolicy } from './conflict-policy.js';
export { Capability, Emit } from './features.js';
