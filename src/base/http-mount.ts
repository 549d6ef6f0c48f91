import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Answers one request; bodies are unread and no header was written. */
export type HttpListener = (request: IncomingMessage, response: ServerResponse) => void;
export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** A place on an HTTP server that somebody else owns. */
export interface HttpMount {
  /**
   * Hands every request whose path is `prefix` or lies below it to `listener`, with `request.url` unchanged.
   *
   * @param prefix - begins with `/`, does not end with one
   * @returns takes the listener off again
   */
  mount(prefix: string, listener: HttpListener, upgrade?: UpgradeListener): () => void;
  /** Origin and path prefix under which the outside reaches this server, without a trailing slash; null if unknown. */
  readonly publicUrl: string | null;
}
