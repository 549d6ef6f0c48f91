/** Why and how a socket ended. */
export type SocketEnd =
  /** It had been open. 1006 stands for a connection that broke without a close frame. */
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string }
  /** The upgrade was answered with another status than 101. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly body: string;
    }
  /** It never opened: no address, no connection, no proper handshake. */
  | { readonly kind: 'failed'; readonly message: string };

export interface WebSocketListener {
  opened(): void;
  /** A text frame; null for a binary one, which Band never sends. */
  message(text: string | null): void;
  /** The last call, exactly once. */
  ended(end: SocketEnd): void;
}

/** What the link needs of a WebSocket. */
export interface WebSocketLike {
  /** Nothing happens once the socket has ended. */
  send(text: string): void;
  /** Starts the closing handshake. */
  close(code: number, reason?: string): void;
  /** Drops the connection at once. */
  terminate(): void;
}

/** Opens a WebSocket. Never throws: a bad address ends in `ended` as well, after the return. */
export type OpenWebSocket = (
  url: string,
  headers: Readonly<Record<string, string>>,
  listener: WebSocketListener,
) => WebSocketLike;
