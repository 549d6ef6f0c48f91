/** The person's socket: joins topics, keeps them joined over reconnects, and hands on what is pushed. */
export interface Socket {
  join(topic: string): void;
  leave(topic: string): void;
}

export interface SocketHandlers {
  readonly onPush: (topic: string, event: string, payload: unknown) => void;
  /** Called with true after each connection, once everything was asked to join again. */
  readonly onConnected: (connected: boolean) => void;
}

const HEARTBEAT_MS = 15_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

export function openSocket(apiKey: string, { onPush, onConnected }: SocketHandlers): Socket {
  const topics = new Map<string, string>();
  let socket: WebSocket | null = null;
  let refs = 0;
  let retryMs = FIRST_RETRY_MS;

  const send = (joinRef: string | null, topic: string, event: string): void => {
    refs += 1;
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify([joinRef, String(refs), topic, event, {}]));
  };
  const sendJoin = (topic: string): void => {
    const joinRef = String(refs + 1);
    topics.set(topic, joinRef);
    send(joinRef, topic, 'phx_join');
  };

  const connect = (): void => {
    const url = new URL('/api/v1/socket/websocket', location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    url.searchParams.set('api_key', apiKey);
    url.searchParams.set('vsn', '2.0.0');
    const opened = new WebSocket(url);
    socket = opened;
    const heartbeat = setInterval(() => {
      send(null, 'phoenix', 'heartbeat');
    }, HEARTBEAT_MS);
    opened.addEventListener('open', () => {
      retryMs = FIRST_RETRY_MS;
      for (const topic of topics.keys()) sendJoin(topic);
      onConnected(true);
    });
    opened.addEventListener('message', ({ data }) => {
      const [, , topic, event, payload] = JSON.parse(String(data)) as [unknown, unknown, string, string, unknown];
      if (!event.startsWith('phx_')) onPush(topic, event, payload);
    });
    opened.addEventListener('close', () => {
      clearInterval(heartbeat);
      onConnected(false);
      setTimeout(connect, retryMs);
      retryMs = Math.min(LONGEST_RETRY_MS, retryMs * 2);
    });
  };
  connect();

  return {
    join(topic) {
      if (!topics.has(topic)) sendJoin(topic);
    },
    leave(topic) {
      const joinRef = topics.get(topic);
      if (joinRef === undefined) return;
      topics.delete(topic);
      send(joinRef, topic, 'phx_leave');
    },
  };
}
