import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOn, type OwnServer } from '../../../bridges/a2a/http/own-server.js';

describe('a listener of the bridge’s own', () => {
  let server: OwnServer;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await server.close();
  });

  /** A server with short limits, so that the test need not wait for the real ones. */
  const begin = async () => {
    server = await listenOn(
      '127.0.0.1',
      0,
      (request, response) => {
        request.resume().on('end', () => response.end('whole'));
      },
      { headersTimeoutMs: 100, requestTimeoutMs: 300, checkEveryMs: 20 },
    );
  };
  const dial = (text: string) => {
    const socket = connect(server.port, '127.0.0.1');
    sockets.push(socket);
    socket.write(text);
    let seen = '';
    socket.on('data', (chunk: Buffer) => (seen += chunk.toString()));
    return new Promise<string>((resolve) =>
      socket.once('close', () => {
        resolve(seen);
      }),
    );
  };

  it('A-070 headers that do not come to their end are a 408 in JSON, and the connection closes', async () => {
    await begin();
    const answer = await dial('POST /agents/helper HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({
      error: { code: 408, status: 'DEADLINE_EXCEEDED' },
    });
  });

  it('A-070 a request that never gets whole is cut off too, and nobody else waits for it', async () => {
    await begin();
    const slow = dial('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc');
    expect(await dial('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
    expect(await slow).toMatch(/^HTTP\/1\.1 408 /);
  });
});
