import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startBridge } from '../../support/slack/bridge-lab.js';

/** A proxy that tunnels, on loopback, and remembers where to. */
async function startProxy() {
  const tunnels: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    const [host = '', port = ''] = (request.url ?? '').split(':');
    tunnels.push(`${host}:${port}`);
    const far = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      far.pipe(client).pipe(far);
    });
    for (const socket of [far, client]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { tunnels, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('a proxy', () => {
  it('carries every call to Slack, and its sockets', async () => {
    const proxy = await startProxy();
    const lab = await startBridge({ transport: 'socket', settings: { proxy: proxy.url } });
    await lab.answered(lab.alice.says('#general', '@gateway hello'));
    const slack = new URL(lab.slack.origin).host;
    expect(new Set(proxy.tunnels)).toEqual(new Set([slack]));
    expect(proxy.tunnels.length).toBeGreaterThanOrEqual(2);
    await lab.stop();
  });
});
