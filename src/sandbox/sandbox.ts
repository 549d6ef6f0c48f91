import type { AddressInfo } from 'node:net';
import { systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { newUuid } from '../base/ids.js';
import { silentLogger } from '../base/log.js';
import { json } from './answer.js';
import { createDev } from './dev.js';
import { openJournal } from './journal.js';
import { newApiKey } from './keys.js';
import type { Sandbox, SandboxOptions } from './options.js';
import { Platform } from './platform.js';
import { agentRoutes } from './rest/agent.js';
import { contactRoutes } from './rest/contacts.js';
import { devJudge, devRoutes } from './rest/dev.js';
import { RestFaults } from './rest/faults.js';
import { humanRoutes } from './rest/human.js';
import { myAgentRoutes } from './rest/my-agents.js';
import { notOfferedRoutes } from './rest/not-offered.js';
import type { Route } from './rest/router.js';
import { createRestServer } from './rest/server.js';
import { Hub } from './sockets/hub.js';
import { SOCKET_PATH, SocketServer } from './sockets/server.js';
import { Timeline } from './world/timeline.js';
import { createWorld, type World } from './world/world.js';

const DEFAULT_PORT = 4000;
const DEFAULT_SLOW_READER_BYTES = 8 * 1024 * 1024;
const CLOSE_GRACE_MS = 200;

/**
 * Starts a Band-compatible platform in this process: REST and WebSocket on one port.
 *
 * @throws {GatewayError} `PORT_IN_USE`; `SANDBOX_DATA` when the data folder cannot be read, written or locked;
 *   `SANDBOX_REFUSED` when the seed names somebody twice
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', clock = systemClock, log = silentLogger, newId = newUuid } = options;
  const newKey = (kind: 'User' | 'Agent') => newApiKey(kind, options.random);

  const timeline = new Timeline(clock);
  const hub: Hub = new Hub((roomId, principalId) => world.rooms.get(roomId)?.members.has(principalId) === true);
  const world: World = createWorld({
    timeline,
    newId,
    limits: options.limits,
    isOnline: (id) => hub.isOnline(id),
  });
  const journal = options.dataDir == null ? null : await openJournal(options.dataDir, world);
  const platform = new Platform({ world, hub, journal, clock, log });
  const sockets = new SocketServer(platform, log, options.slowReaderBytes ?? DEFAULT_SLOW_READER_BYTES);
  const faults = new RestFaults();
  const dev = createDev({ platform, sockets, faults, newKey, seed: options.seed ?? 'demo' });

  const disconnect = (agentId: string) => {
    sockets.closeOf(agentId, 1008);
  };
  const routes: Route[] = [
    ...agentRoutes(platform),
    ...humanRoutes(platform),
    ...myAgentRoutes({ platform, newKey, disconnect }),
    ...contactRoutes(platform),
    ...notOfferedRoutes(platform),
    ...devRoutes(dev),
    { method: 'GET', path: '/health', surface: 'open', handle: () => json(200, { status: 'ok' }) },
  ];
  const server = createRestServer({
    platform,
    routes,
    faults,
    log,
    judgeDev: devJudge(options.devToken ?? null),
    extraRoutes: options.extraRoutes ?? null,
  });
  server.on('upgrade', (request, socket, head) => {
    sockets.upgrade(request, socket, head);
  });

  try {
    dev.applySeed();
    await listen(server, options.port ?? DEFAULT_PORT, host);
  } catch (error) {
    await platform.close();
    throw error;
  }
  const { port } = server.address() as AddressInfo;
  const origin = `${host.includes(':') ? `[${host}]` : host}:${port}`;

  let closing: Promise<void> | null = null;
  const close = async () => {
    await sockets.close(CLOSE_GRACE_MS);
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
    await platform.close();
  };
  return {
    restUrl: `http://${origin}`,
    wsUrl: `ws://${origin}${SOCKET_PATH}`,
    port,
    dev,
    close: () => (closing ??= close()),
  };
}

function listen(server: ReturnType<typeof createRestServer>, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const inUse = error.code === 'EADDRINUSE';
      reject(inUse ? new GatewayError('PORT_IN_USE', { cause: error, details: { host, port } }) : error);
    });
    server.listen(port, host, resolve);
  });
}
