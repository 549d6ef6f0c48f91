import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A way to a server of this machine that can fall silent without closing anything. */
export interface TcpProxy {
  readonly port: number;
  /** Connections that are open now carry nothing any more, in either direction; later ones do. @returns how many */
  freeze(): number;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1');
    const pair = [near, far] as const;
    pairs.add(pair);
    near.pipe(far);
    far.pipe(near);
    for (const socket of pair) {
      socket.on('error', () => undefined); // the other end sees it close
      socket.on('close', () => {
        pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const [near] of pairs) near.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    freeze() {
      for (const [near, far] of pairs) {
        near.unpipe().pause();
        far.unpipe().pause();
      }
      return pairs.size;
    },
  };
}
