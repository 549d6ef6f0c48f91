import { UNFINISHED_TEXT } from '../../core/judge.js';
import type { AgentFailure } from '../../core/tools.js';
import { hasVisibleText } from '../../core/visible-text.js';
import { MAX_EVENT_METADATA_BYTES } from '../../platform/wire/objects.js';
import { eventText } from './event-text.js';

/** An `error` event as it is posted. */
export interface FailureEvent {
  readonly content: string;
  readonly metadata: {
    readonly failure: {
      readonly provider: string;
      readonly code: string | null;
      readonly message: string;
      readonly detail: unknown;
    };
  };
}

/**
 * A failure as the room sees it: secrets hidden everywhere, `detail` as plain JSON data, or null when it cannot
 * be written as JSON or is more than an event carries.
 */
export function failureEvent(failure: AgentFailure, redact: (text: string) => string): FailureEvent {
  const content = eventText(redact(hasVisibleText(failure.message) ? failure.message : UNFINISHED_TEXT));
  const withDetail = (detail: unknown): FailureEvent => ({
    content,
    metadata: {
      failure: {
        provider: redact(failure.provider),
        code: failure.code == null ? null : redact(failure.code),
        message: content,
        detail,
      },
    },
  });
  const event = withDetail(plainDetail(failure.detail, redact));
  return Buffer.byteLength(JSON.stringify(event.metadata)) <= MAX_EVENT_METADATA_BYTES ? event : withDetail(null);
}

function plainDetail(detail: unknown, redact: (text: string) => string): unknown {
  try {
    const json = JSON.stringify(detail, (_key, value: unknown) => (typeof value === 'string' ? redact(value) : value));
    // Functions and symbols have no JSON form, whatever the declared type says.
    return (json as string | undefined) === undefined ? null : redactKeys(JSON.parse(json), redact);
  } catch {
    return null; // circular, a bigint, or a toJSON that throws: the message must reach the room without it
  }
}

/** Keys may be secrets too, e.g. a map of tokens. */
function redactKeys(node: unknown, redact: (text: string) => string): unknown {
  if (Array.isArray(node)) return node.map((item) => redactKeys(item, redact));
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [redact(key), redactKeys(value, redact)]));
}
