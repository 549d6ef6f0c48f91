import type { AnyMessage } from '@agentclientprotocol/sdk';

export type JsonRpcId = string | number | null;

export interface Request {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly params?: unknown;
}

/** The request that a frame is, or null: only such frames get an answer with their id. */
export function asRequest(message: AnyMessage): Request | null {
  const { jsonrpc, id, method } = message as { jsonrpc?: unknown; id?: unknown; method?: unknown };
  if (jsonrpc !== '2.0' || typeof method !== 'string') return null;
  const isId = id === null || typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));
  return isId ? (message as unknown as Request) : null;
}

/** A frame that asks for nothing. */
export function asNotification(message: AnyMessage): { readonly method: string; readonly params?: unknown } | null {
  const { jsonrpc, method } = message as { jsonrpc?: unknown; method?: unknown };
  const isOne = jsonrpc === '2.0' && typeof method === 'string' && !('id' in message);
  return isOne ? message : null;
}
