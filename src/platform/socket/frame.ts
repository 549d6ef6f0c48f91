/** One Phoenix v2 frame: `[join_ref, ref, topic, event, payload]`. */
export interface Frame {
  /** The `ref` of the join that opened the channel; null on frames outside a channel, and on pushes of some servers. */
  readonly joinRef: string | null;
  /** Echoed in the reply; null on pushes. */
  readonly ref: string | null;
  readonly topic: string;
  readonly event: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** Events of the protocol itself. */
export const PHX = {
  join: 'phx_join',
  leave: 'phx_leave',
  reply: 'phx_reply',
  error: 'phx_error',
  close: 'phx_close',
  heartbeat: 'heartbeat',
} as const;

/** The topic of heartbeats. */
export const PHOENIX_TOPIC = 'phoenix';

export function encodeFrame(
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  payload: Readonly<Record<string, unknown>> = {},
): string {
  return JSON.stringify([joinRef, ref, topic, event, payload]);
}

/** A frame taken apart, or null for anything that is none: it is for the caller to count and drop. */
export function decodeFrame(text: string): Frame | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null; // not JSON
  }
  if (!Array.isArray(value) || value.length !== 5) return null;
  const [joinRef, ref, topic, event, payload] = value as unknown[];
  if (!isRef(joinRef) || !isRef(ref) || !isName(topic) || !isName(event) || !isObject(payload)) return null;
  return { joinRef, ref, topic, event, payload };
}

/** The two fields of a `phx_reply`; anything but `ok` counts as refused. */
export function replyOf(payload: Frame['payload']): { ok: boolean; reason: string } {
  const response = payload['response'];
  const reason = isObject(response) ? response['reason'] : response;
  return {
    ok: payload['status'] === 'ok',
    reason: typeof reason === 'string' && reason !== '' ? reason.slice(0, 200) : 'no reason given',
  };
}

const isRef = (value: unknown): value is string | null => value === null || typeof value === 'string';
const isName = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
