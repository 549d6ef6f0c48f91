export { SlackAdapter, type SlackAdapterOptions, type SlackPorts } from './adapter.js';
export { entryManifest, slackBridge, type SlackEntryOptions } from './bridge.js';
export { slackSettings, type SlackOptions, type SlackOptionsInput } from './settings.js';
