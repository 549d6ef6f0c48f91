import type { z } from 'zod';
import { GatewayError } from '../base/errors.js';

const decoder = new TextDecoder();

/** A JSON value as the bytes the store keeps. */
export function toBytes(value: unknown): Uint8Array {
  return jsonBytes(JSON.stringify(value));
}

/** JSON text as the bytes the store keeps. */
export function jsonBytes(text: string): Uint8Array {
  return Buffer.from(text);
}

/** @throws {GatewayError} `STORE_DAMAGED` when the bytes are not JSON of that shape */
export function readJson<S extends z.ZodType>(bytes: Uint8Array, schema: S): z.output<S> {
  try {
    return schema.parse(JSON.parse(decoder.decode(bytes)));
  } catch (cause) {
    throw new GatewayError('STORE_DAMAGED', { cause, message: 'A stored record could not be read.' });
  }
}
