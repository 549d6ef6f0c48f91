#!/usr/bin/env node
import { optionsFromSnake } from '../config/setting.js';
import { loadedOnUse, type BridgeDoor, type BridgeEntry, type BridgeTable } from '../gateway/bridge-table.js';
import { main } from './main.js';
import { processWorld } from './world.js';

const slackSettings = async () => (await import('../../bridges/slack/settings.js')).slackSettings;
const relaySettings = async () => (await import('../adapters/relay-settings.js')).relaySettings;
const slackOptions = async ({ name, groups }: BridgeEntry) => ({
  name,
  options: {
    slack: optionsFromSnake(await slackSettings(), groups['slack'] ?? {}),
    relay: optionsFromSnake(await relaySettings(), groups['relay'] ?? {}),
  },
});
const slackBridge = () => import('../../bridges/slack/index.js');

/** Slack has two groups of settings: its own, and those of the relay that is its brain here. */
const slack: BridgeDoor = {
  settings: async () => [await slackSettings(), await relaySettings()],
  open: async (entry, ports) => (await slackBridge()).slackBridge.open(await slackOptions(entry), ports),
  check: async (entry, ports, signal) =>
    (await slackBridge()).slackBridge.check(await slackOptions(entry), ports, signal),
  claims: ({ groups }) => (isOwnPort(groups['slack']) ? [] : [mountPathOf(groups['slack'])]),
  manifest: async (entry, wanted) =>
    (await slackBridge()).entryManifest((await slackOptions(entry)).options.slack, wanted),
};

/** Each bridge is loaded when it is used; no other file of `src/` knows them. */
const bridges: BridgeTable = {
  a2a: loadedOnUse(
    async () => (await import('../../bridges/a2a/settings.js')).a2aSettings,
    async () => (await import('../../bridges/a2a/index.js')).a2aBridge,
    { claims: ({ groups }) => (isShared(groups['a2a']) ? ['/agents'] : []) },
  ),
  acp: loadedOnUse(
    async () => (await import('../../bridges/acp/settings.js')).acpSettings,
    async () => (await import('../../bridges/acp/index.js')).acpBridge,
    { stdio: async () => (await import('../../bridges/acp/stdio/index.js')).serveStdio },
  ),
  slack,
};

/** Entries on the socket take no path; one that is not told yet may. */
function mountPathOf(group: unknown): string {
  const { mount_path: path } = (group ?? {}) as { readonly mount_path?: unknown };
  return typeof path === 'string' ? path : '/slack';
}

function isOwnPort(group: unknown): boolean {
  const { port, transport, signing_secret: secret, apps } = (group ?? {}) as Readonly<Record<string, unknown>>;
  const usesSocket = transport === 'socket' || (transport === undefined && secret === undefined && apps === undefined);
  return port !== undefined || usesSocket;
}

function isShared(a2a: unknown): boolean {
  const { port } = (a2a ?? {}) as { readonly port?: unknown };
  return port === undefined || port === 'shared';
}

processWorld.exit(await main(process.argv.slice(2), processWorld, bridges));
