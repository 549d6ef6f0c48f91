import { GatewayError } from '../base/errors.js';
import type { Stored } from './port.js';

/** Owners' records stand behind this prefix, the store's own before it. */
export const DATA = 'd';
/** The revision of the last committed group; an 8-byte number like the one before each record. */
export const META_REVISION = 'm/revision';
/** The layout of everything in the folder, a number like a revision; absent in a folder that was never opened. */
export const META_VERSION = 'm/version';
/** Grows when a folder of this version can no longer be read by the program before it. */
export const STORE_VERSION = 1;
/** Stands while the folder was closed in order. */
export const META_CLEAN = 'm/clean';

const REVISION_BYTES = 8;
const HIGH_WORD = 2 ** 32;

/** A record on disk: its revision, 8 bytes, most significant first, then the value. */
export function encodeStored(value: Uint8Array | string, revision: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(REVISION_BYTES + Buffer.byteLength(value));
  bytes.writeUInt32BE(Math.floor(revision / HIGH_WORD), 0);
  bytes.writeUInt32BE(revision % HIGH_WORD, 4);
  if (typeof value === 'string') bytes.write(value, REVISION_BYTES);
  else bytes.set(value, REVISION_BYTES);
  return bytes;
}

/** @throws {GatewayError} `STORE_DAMAGED` for fewer bytes than a revision takes */
export function decodeStored(bytes: Uint8Array): Stored {
  const revision = decodeRevision(bytes);
  const value = new Uint8Array(bytes.buffer, bytes.byteOffset + REVISION_BYTES, bytes.byteLength - REVISION_BYTES);
  return { value, revision };
}

export function decodeRevision(bytes: Uint8Array): number {
  if (bytes.byteLength < REVISION_BYTES) throw new GatewayError('STORE_DAMAGED');
  return Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0));
}
