import { toError } from '../base/errors.js';

/**
 * Code and words of a failed connection. Node reports the addresses of a name that it tried in vain as an
 * AggregateError without words; any one of them tells why.
 */
export function networkFault(error: unknown): { readonly code: string; readonly message: string } {
  const outer = toError(error);
  const inner = outer instanceof AggregateError && outer.errors.length > 0 ? toError(outer.errors[0]) : outer;
  const code = (outer as NodeJS.ErrnoException).code ?? (inner as NodeJS.ErrnoException).code ?? '';
  return { code, message: inner.message || outer.message || code || 'unknown network failure' };
}
