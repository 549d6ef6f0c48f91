import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Core } from './core.js';
import type { FaultEffect, Faults } from './faults.js';
import { answerOther } from './other-routes.js';
import type { SocketDoor } from './sockets.js';
import type { WebApi } from './web-api.js';

export interface DoubleServerDeps {
  readonly core: Core;
  readonly faults: Faults;
  readonly web: WebApi;
  readonly sockets: SocketDoor;
  readonly touched: () => void;
}

export interface OtherRequest {
  path: string;
  authorization: string | null;
  status: number;
}

/** The double's HTTP server: which part answers a request, and what a test does to its connections. */
export class DoubleServer {
  origin = '';
  readonly otherRequests: OtherRequest[] = [];
  readonly #deps: DoubleServerDeps;
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  #responseFailures = 0;
  #refusing = false;

  constructor(deps: DoubleServerDeps) {
    this.#deps = deps;
    this.#server = createServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket, head: Buffer) => {
      deps.sockets.upgrade(request, socket, head);
    });
    this.#server.on('connection', (socket: Socket) => {
      if (this.#refusing) {
        socket.resetAndDestroy();
        return;
      }
      this.#connections.add(socket);
      socket.on('close', () => this.#connections.delete(socket));
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo;
    this.origin = `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#connections) socket.destroy();
    await new Promise<void>((resolve) =>
      this.#server.close(() => {
        resolve();
      }),
    );
  }

  respondFails(times: number): void {
    this.#responseFailures = times;
  }

  refuseConnections(refusing: boolean): void {
    this.#refusing = refusing;
    if (refusing) for (const socket of this.#connections) socket.destroy();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { core, web, touched } = this.#deps;
    const url = new URL(request.url ?? '/', this.origin);
    response.setHeader('date', new Date(core.world.clock.now()).toUTCString());
    try {
      const body = await readBody(request);
      if (url.pathname.startsWith('/api/')) {
        await web.handle(url.pathname.slice('/api/'.length), request, response, body);
        return;
      }
      const authorization = request.headers.authorization ?? null;
      if (url.pathname.startsWith('/response/') && this.#responseFailures > 0) {
        this.#responseFailures -= 1;
        const place = core.world.responseUrls.get(url.pathname.slice('/response/'.length));
        if (place) place.uses += 1;
        response.writeHead(503).end();
        this.otherRequests.push({ path: url.pathname, authorization, status: 503 });
        return;
      }
      const [, area = ''] = url.pathname.split('/');
      const call = { method: area, team: '', channel: '', args: {}, isOther: true };
      const fault = this.#deps.faults.take(call, core.world.clock.now());
      const status = fault
        ? answerFault(fault, response)
        : answerOther(core, url, request, response, body, authorization);
      this.otherRequests.push({ path: url.pathname, authorization, status });
      touched();
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end();
      core.violations.push(
        `the double failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      touched();
    }
  }
}

/** @returns the status sent; 0 for none */
function answerFault(fault: FaultEffect, response: ServerResponse): number {
  if (fault.kind === 'status') {
    response.writeHead(fault.status, fault.headers ?? {}).end(fault.body ?? '');
    return fault.status;
  }
  if (fault.kind !== 'drop' || fault.applied) throw new Error(`no such fault here: ${fault.kind}`);
  response.destroy();
  return 0;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
