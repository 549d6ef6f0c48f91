import { Pool, ProxyAgent, type Dispatcher } from 'undici';
import { toError } from '../../src/base/errors.js';

/** The proxy in front of Slack did not give the way free; nothing has reached Slack. */
export class ProxyError extends Error {
  readonly code: string;
  /** Host and port of the proxy; what it is asked with is left out. */
  readonly proxy: string;

  constructor(proxy: string, why: string, options: { readonly code: string; readonly cause?: unknown }) {
    super(`The proxy ${proxy} ${why}`, { cause: options.cause });
    this.name = 'ProxyError';
    this.code = options.code;
    this.proxy = proxy;
  }
}

/** The one way of connecting that is used. */
interface Tunnels {
  connect(wanted: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData>;
}

/**
 * Carries every request and every socket through an HTTP proxy. What fails at the proxy is a {@link ProxyError}, so
 * that whoever reads it does not look for the fault at Slack.
 *
 * @param onFailure - told of it as well, for who gets to see a failed connection without its cause
 */
export function createProxy(address: string, onFailure?: (error: ProxyError) => void): ProxyAgent {
  const { host } = new URL(address);
  return new ProxyAgent({
    uri: address,
    clientFactory: (origin, options) => {
      const pool = new Pool(origin, options);
      const tunnels: Tunnels = pool;
      const connect = tunnels.connect.bind(pool);
      const failed = (why: string, code: string, cause?: unknown): ProxyError => {
        const error = new ProxyError(host, why, { code, cause });
        onFailure?.(error);
        return error;
      };
      const tunnel = async (wanted: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
        const data = await connect(wanted).catch((error: unknown) => {
          const { code } = toError(error) as Error & { readonly code?: unknown };
          throw failed('could not be reached', typeof code === 'string' ? code : 'PROXY_UNREACHABLE', error);
        });
        if (data.statusCode === 200) return data;
        data.socket.on('error', () => undefined).destroy();
        throw failed(`refused the way with status ${data.statusCode}`, 'PROXY_REFUSED');
      };
      return Object.assign(pool, { connect: tunnel });
    },
  });
}

/** The proxy's own failure somewhere in a chain of causes. */
export function proxyErrorIn(error: unknown): ProxyError | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof ProxyError) return cause;
  }
  return null;
}
