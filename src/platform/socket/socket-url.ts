export type OnConflict = 'supersede' | 'reject';

/**
 * The address of an upgrade request.
 *
 * @param wsUrl - as configured, with or without the closing `/websocket`; `http` and `https` are read as `ws` and `wss`
 * @throws {TypeError} when `wsUrl` is no URL
 */
export function socketUrl(
  wsUrl: string,
  { apiKey, agentId, onConflict }: { apiKey: string; agentId: string; onConflict?: OnConflict | undefined },
): string {
  const url = new URL(wsUrl);
  if (url.protocol === 'http:') url.protocol = 'ws:';
  if (url.protocol === 'https:') url.protocol = 'wss:';
  const path = url.pathname.replace(/\/+$/, '');
  url.pathname = path.endsWith('/websocket') ? path : `${path}/websocket`;
  url.searchParams.set('api_key', apiKey);
  url.searchParams.set('agent_id', agentId);
  url.searchParams.set('vsn', '2.0.0');
  url.searchParams.delete('on_conflict');
  if (onConflict) url.searchParams.set('on_conflict', onConflict);
  url.hash = '';
  return url.href;
}
