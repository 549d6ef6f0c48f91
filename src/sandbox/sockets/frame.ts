/** A Phoenix frame (serializer 2.0.0): `[join_ref, ref, topic, event, payload]`. */
export interface Frame {
  readonly joinRef: string | null;
  readonly ref: string | null;
  readonly topic: string;
  readonly event: string;
  readonly payload: unknown;
}

/** @returns null for anything that is not such a frame */
export function parseFrame(text: string): Frame | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(parsed) || parsed.length !== 5) return null;
  const [joinRef, ref, topic, event, payload] = parsed as unknown[];
  if (!isRef(joinRef) || !isRef(ref)) return null;
  if (typeof topic !== 'string' || topic === '' || typeof event !== 'string' || event === '') return null;
  return { joinRef, ref, topic, event, payload };
}

/** @param payload - finished JSON, so that one text can be sent to many */
export function frameText(
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  payload: string,
): string {
  return `[${JSON.stringify(joinRef)},${JSON.stringify(ref)},${JSON.stringify(topic)},${JSON.stringify(event)},${payload}]`;
}

export function replyText(frame: Frame, status: 'ok' | 'error', response: object): string {
  return frameText(frame.joinRef, frame.ref, frame.topic, 'phx_reply', JSON.stringify({ status, response }));
}

const isRef = (value: unknown): value is string | null => value === null || typeof value === 'string';
