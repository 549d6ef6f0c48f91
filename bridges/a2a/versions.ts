import { refusal } from './errors.js';

/** Protocol versions this bridge speaks. */
export type Dialect = '1.0' | '0.3';

const FORM = /^(\d{1,4})\.(\d{1,4})(?:\.\d{1,9})?$/;

/**
 * The version a request asks for: the header `A2A-Version` or the query parameter of that name; the patch part does not
 * count.
 *
 * @returns null when it names none
 * @throws {GatewayError} `A2A_VERSION` for another form, two different values, or a version that is not served
 */
export function requestedVersion(
  header: string | undefined,
  query: URLSearchParams,
  served: readonly Dialect[],
): Dialect | null {
  const values = [
    header,
    ...[...query].filter(([name]) => name.toLowerCase() === 'a2a-version').map(([, value]) => value),
  ];
  const given = new Set<string>();
  for (const value of values) {
    const text = value?.trim() ?? '';
    if (text === '') continue;
    const [, major, minor] = FORM.exec(text) ?? [];
    if (major === undefined || minor === undefined) throw unsupported(served);
    given.add(`${Number(major)}.${Number(minor)}`);
  }
  const [version, other] = given;
  if (version === undefined) return null;
  const dialect = served.find((one) => one === version);
  if (other !== undefined || dialect === undefined) throw unsupported(served);
  return dialect;
}

export function unsupported(served: readonly Dialect[]) {
  return refusal('A2A_VERSION', { supported: served.join(', ') });
}
