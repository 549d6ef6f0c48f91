import { Agent, EnvHttpProxyAgent, type Dispatcher } from 'undici';

/**
 * Connections to Band over the proxy that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name, or directly. Whoever makes
 * it closes it.
 *
 * @param env - where the proxy's names are read
 */
export function createDispatcher(env: NodeJS.ProcessEnv): Dispatcher {
  const options: Agent.Options = {
    // Enough for hundreds of rooms that catch up at once, and a bound when there are thousands.
    connections: 64,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    connect: { timeout: 10_000 },
  };
  const httpProxy = env['HTTP_PROXY'] ?? env['http_proxy'];
  const httpsProxy = env['HTTPS_PROXY'] ?? env['https_proxy'];
  const noProxy = env['NO_PROXY'] ?? env['no_proxy'];
  if (!httpProxy && !httpsProxy) return new Agent(options);
  return new EnvHttpProxyAgent({
    ...options,
    ...(httpProxy ? { httpProxy } : {}),
    ...(httpsProxy ? { httpsProxy } : {}),
    ...(noProxy ? { noProxy } : {}),
  });
}
