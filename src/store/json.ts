import type { z } from 'zod';
import { GatewayError } from '../base/errors.js';

const decoder = new TextDecoder();

/** JSON whose largest part stands as bytes already: text, those bytes, text. */
export interface JsonAround {
  readonly before: string;
  readonly bytes: Uint8Array;
  readonly after: string;
}

/** A JSON value as the bytes the store keeps. */
export function toBytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/** The same for JSON that was not made here: it is kept as it came, without becoming text in between. */
export function aroundToBytes({ before, bytes, after }: JsonAround): Uint8Array {
  const from = Buffer.byteLength(before);
  const to = from + bytes.byteLength;
  const whole = Buffer.allocUnsafe(to + Buffer.byteLength(after));
  whole.write(before, 0);
  whole.set(bytes, from);
  whole.write(after, to);
  return whole;
}

/** @throws {GatewayError} `STORE_DAMAGED` when the bytes are not JSON of that shape */
export function readJson<S extends z.ZodType>(bytes: Uint8Array, schema: S): z.output<S> {
  try {
    return schema.parse(JSON.parse(decoder.decode(bytes)));
  } catch (cause) {
    throw new GatewayError('STORE_DAMAGED', { cause, message: 'A stored record could not be read.' });
  }
}
