import type { IncomingMessage } from 'node:http';
import type { Dialect } from './versions.js';

/** Limits that apply to a caller, as a part of the extended card. */
export const LIMITS_EXTENSION = 'urn:band-gateway:a2a:limits';

const MAX_NAMED = 32;

/** 0.3 names the header with an X; either is read, whatever the dialect. */
const REQUEST_HEADERS = ['a2a-extensions', 'x-a2a-extensions'] as const;

/**
 * The extensions that a request names and this gateway has, each once, in the request's order. Others, and what is no
 * list of URIs, are ignored, as the protocol wants it.
 */
export function activeExtensions(request: IncomingMessage, offered: readonly string[]): readonly string[] {
  const named = REQUEST_HEADERS.flatMap((name) => request.headers[name] ?? [])
    .flatMap((value) => value.split(','))
    .slice(0, MAX_NAMED)
    .map((uri) => uri.trim());
  return [...new Set(named)].filter((uri) => offered.includes(uri));
}

/** The header that tells which extensions are active, in the dialect's spelling. */
export function extensionsHeader(dialect: Dialect): string {
  return dialect === '0.3' ? 'x-a2a-extensions' : 'a2a-extensions';
}
