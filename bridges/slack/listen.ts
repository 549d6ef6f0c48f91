import { createServer } from 'node:http';
import type { HttpListener } from '../../src/base/http-mount.js';

/** Serves a listener on a loopback port of its own. @returns what ends that */
export async function listenAt(port: number, serve: HttpListener): Promise<() => void> {
  const server = createServer(serve);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return () => {
    server.close();
    server.closeIdleConnections();
  };
}
