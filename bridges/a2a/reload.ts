import { isDeepStrictEqual } from 'node:util';
import type { A2AOptions } from './settings.js';

/** Options of which {@link takeOver} may change parts: whoever holds them sees the change. */
export function changeable(options: A2AOptions): A2AOptions {
  return { ...options, peers: { ...options.peers }, auth: { ...options.auth }, limits: { ...options.limits } };
}

/**
 * Takes over what may change while requests are served: the overrides of peers, the API keys, and the limits.
 *
 * @param options - made by {@link changeable}
 * @returns the names of other settings that differ; they stay as they were
 */
export function takeOver(options: A2AOptions, next: A2AOptions): readonly string[] {
  Object.assign(options.peers, { overrides: next.peers.overrides });
  Object.assign(options.auth, { apiKeys: next.auth.apiKeys });
  Object.assign(options.limits, next.limits);
  return differences(options, next, 'a2a');
}

function differences(before: object, after: object, path: string): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const [old, now] = [before, after].map((side) => (side as Readonly<Record<string, unknown>>)[name]);
    if (isDeepStrictEqual(old, now)) return [];
    const where = `${path}.${snakeCase(name)}`;
    return isGroup(old) && isGroup(now) && path === 'a2a' ? differences(old, now, where) : [where];
  });
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
