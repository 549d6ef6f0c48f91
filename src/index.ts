export { Agent } from './agent.js';
export type { AgentCreateOptions, AgentFromConfigOptions, AgentParts, RunOptions } from './agent.js';
export { AgentConfig } from './runtime/agent-config.js';
export type { AgentConfigInit } from './runtime/agent-config.js';
export { ConflictPolicy } from './core/conflict-policy.js';
export { SessionConfig } from './config/session-config.js';
export { PlatformMessage } from './runtime/platform-message.js';
export { PlatformRuntime } from './runtime/platform-runtime.js';
export type { PlatformRuntimeOptions } from './runtime/platform-runtime.js';
export { AgentRuntime } from './runtime/agent-runtime.js';
export { RoomPresence } from './runtime/room-presence.js';
export { ExecutionContext } from './runtime/execution-context.js';
export { AgentTools } from './runtime/tools/agent-tools.js';
export { loadAgentConfig } from './config/agent-config-file.js';
export type { AgentCredentials } from './config/agent-config-file.js';
export {
  AgentAlreadyRunningError,
  ApiError,
  BandConfigError,
  BandConnectionError,
  BandError,
  BandToolError,
  CleanupIncompleteError,
  RoomExecutionStoppedError,
  RuntimeError,
  ValidationError,
  ValueError,
} from './base/band-errors.js';
export { configureLogging, LogSettings } from './runtime/logging.js';
export type { LogSettingsInit } from './runtime/logging.js';
export { GracefulShutdown, runWithGracefulShutdown } from './runtime/graceful-shutdown.js';
export type { GracefulShutdownOptions } from './runtime/graceful-shutdown.js';
export { BAND_SDK_VERSION, PROXY_MANAGED_API_KEY } from './runtime/version.js';
