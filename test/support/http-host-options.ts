import type { HttpHostOptions } from '../../src/gateway/http-host.js';

/** A common HTTP server on a free loopback port, with short limits. */
export const HOST_OPTIONS: HttpHostOptions = {
  host: '127.0.0.1',
  port: 0,
  maxConnections: 100,
  headerTimeoutMs: 1_000,
  requestTimeoutMs: 1_000,
  keepAliveMs: 1_000,
  maxHeaderBytes: 4_096,
};
