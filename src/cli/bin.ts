#!/usr/bin/env node
import type { BridgeTable } from '../gateway/bridge-table.js';
import { guardStdout } from './acp-stdout.js';

const argv = process.argv.slice(2);
// An editor reads standard output: nothing that is loaded from here on can print there.
const printsWords = argv.some((word) => ['--help', '-h', '--version'].includes(word));
if (argv[0] === 'acp' && !printsWords) guardStdout(process);

const { optionsFromSnake } = await import('../config/setting.js');
const { loadedOnUse, loadedOnUseWith } = await import('../gateway/bridge-table.js');
const { main } = await import('./main.js');
const { processWorld } = await import('./world.js');

/** Each bridge is loaded when it is used; no other file of `src/` knows them. */
const bridges: BridgeTable = {
  slack: loadedOnUseWith(
    async () => ({
      slack: (await import('../../bridges/slack/settings.js')).slackSettings,
      relay: (await import('../adapters/relay-settings.js')).relaySettings,
    }),
    async () => (await import('../../bridges/slack/index.js')).slackBridge,
    {
      claims: ({ groups }) => (isOwnPort(groups['slack']) ? [] : [mountPathOf(groups['slack'])]),
      manifest: async ({ groups }, options) => {
        const { entryManifest, slackSettings } = await import('../../bridges/slack/index.js');
        return entryManifest(optionsFromSnake(slackSettings, groups['slack'] ?? {}), options);
      },
    },
  ),
  a2a: loadedOnUse(
    async () => (await import('../../bridges/a2a/settings.js')).a2aSettings,
    async () => (await import('../../bridges/a2a/index.js')).a2aBridge,
    { claims: ({ groups }) => (isShared(groups['a2a']) ? ['/agents'] : []) },
  ),
  acp: loadedOnUse(
    async () => (await import('../../bridges/acp/settings.js')).acpSettings,
    async () => (await import('../../bridges/acp/index.js')).acpBridge,
    { isSharedOnHost: true, stdio: async () => (await import('../../bridges/acp/stdio/index.js')).serveStdio },
  ),
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

processWorld.exit(await main(argv, processWorld, bridges));
