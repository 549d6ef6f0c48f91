#!/usr/bin/env node
import { loadedOnUse, type BridgeTable } from '../gateway/bridge-table.js';
import { main } from './main.js';
import { processWorld } from './world.js';

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
};

function isShared(a2a: unknown): boolean {
  const { port } = (a2a ?? {}) as { readonly port?: unknown };
  return port === undefined || port === 'shared';
}

processWorld.exit(await main(process.argv.slice(2), processWorld, bridges));
