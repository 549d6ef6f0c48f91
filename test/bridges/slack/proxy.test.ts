import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSlackClient } from '../../../bridges/slack/client.js';
import { createProxy } from '../../../bridges/slack/proxy.js';
import type { GatewayError } from '../../../src/base/errors.js';
import { startBridge } from '../../support/slack/bridge-lab.js';

/** A proxy that tunnels, on loopback, and remembers where to; while `refuse` holds a status it tunnels no more. */
async function startProxy() {
  const tunnels: string[] = [];
  const state: { refuse: number | null; refused: number } = { refuse: null, refused: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((_request, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket) => {
    const [host = '', port = ''] = (request.url ?? '').split(':');
    if (state.refuse !== null) {
      state.refused += 1;
      client.end(`HTTP/1.1 ${state.refuse} No\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
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
  const { port } = server.address() as AddressInfo;
  return { tunnels, state, host: `127.0.0.1:${port}`, url: `http://someone:pass-word@127.0.0.1:${port}` };
}

const logged = () => {
  const lines: string[] = [];
  return { lines, log: pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) }) };
};

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

  it.each([403, 407])(
    'that refuses with %d is tried again more and more slowly, and named by its host wherever the failure shows',
    async (status) => {
      const { lines, log } = logged();
      const proxy = await startProxy();
      const lab = await startBridge({
        transport: 'socket',
        log,
        settings: { proxy: proxy.url, socket: { connections: 1 } },
      });
      // The way of the calls is open already; only a new connection has to ask for one.
      proxy.state.refuse = status;
      lab.slack.sockets.sever(lab.slack.sockets.open(lab.app)[0]!);
      await expect.poll(() => proxy.state.refused, { timeout: 8_000 }).toBeGreaterThanOrEqual(2);
      const failures = lines.filter((line) => line.includes('could not be opened'));
      expect(failures.length).toBeGreaterThanOrEqual(1);
      for (const line of failures) {
        expect(line).toContain(`The proxy ${proxy.host} refused the way with status ${status}`);
        expect(line).not.toContain('pass-word');
      }
      proxy.state.refuse = null;
      await lab.slack.until(() => lab.slack.sockets.open(lab.app).some((one) => one.saidHello), 'a socket', 10_000);
      await lab.answered(lab.alice.says('#general', '@gateway through again'));
      await lab.stop();
    },
  );

  it('that refuses or is gone is named to who calls Slack, as a failure that reached nobody', async () => {
    const proxy = await startProxy();
    proxy.state.refuse = 403;
    const call = async (address: string) => {
      const dispatcher = createProxy(address);
      onTestFinished(() => dispatcher.destroy());
      const client = createSlackClient({ token: 'xoxb-x', slackApiUrl: 'http://127.0.0.1:9/api/', dispatcher });
      return (await client.call('auth.test', {}).catch((error: unknown) => error)) as GatewayError;
    };
    const refused = await call(proxy.url);
    expect(refused).toMatchObject({ code: 'SLACK_UNREACHABLE', undelivered: true, details: { proxy: proxy.host } });
    expect(refused.message).toBe(`The proxy ${proxy.host} refused the way with status 403.`);
    const gone = await call('http://127.0.0.1:9');
    expect(gone).toMatchObject({
      code: 'SLACK_UNREACHABLE',
      details: { proxy: '127.0.0.1:9', network: 'ECONNREFUSED' },
    });
    expect(gone.message).toContain('The proxy 127.0.0.1:9 could not be reached');
  });
});
