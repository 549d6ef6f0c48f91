import { WebSocket } from 'ws';

const NORMAL = 1000;
/** Codes with which the library itself ends a connection that broke the protocol. */
const PROTOCOL_ERRORS: ReadonlySet<number> = new Set([1002, 1007, 1009]);

/** A socket that confirms every close of its peer with 1000, whatever code the peer gave, as the platform does. */
export class PlatformSocket extends WebSocket {
  #isOurs = false;

  /** Starts a close of our own. */
  end(code: number, reason: string): void {
    this.#isOurs = true;
    super.close(code, reason);
  }

  /** Called by the library, to confirm a peer's close or after a protocol error. */
  override close(code?: number, reason?: string | Buffer): void {
    const keeps = this.#isOurs || (code !== undefined && PROTOCOL_ERRORS.has(code));
    if (keeps) super.close(code, reason);
    else super.close(NORMAL);
  }
}
