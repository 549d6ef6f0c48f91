export { FakeAgentTools } from './fake-agent-tools.js';
export type { FakeAgentToolsOptions } from './fake-agent-tools.js';
export { fakeAgentInput } from './fake-agent-input.js';
export type { FakeAgentInputOptions } from './fake-agent-input.js';
export { refusal } from './fake-rest.js';
export type { PlatformCall, PostedEvent, PostedMessage } from './fake-rest.js';
export { createManualClock } from './manual-clock.js';
export type { ManualClock } from './manual-clock.js';
export * from '../sandbox/index.js';
