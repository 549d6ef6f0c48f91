export { BandACPServerAdapter, type AcpPorts } from './adapter.js';
export { acpBridge } from './bridge.js';
export { acpSettings, type AcpOptions, type AcpServerOptions } from './settings.js';
export type { EditorConnection } from './client/connection.js';
