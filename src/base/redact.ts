const MASK = '[redacted]';

/**
 * Shapes of secrets that can turn up anywhere in a line: Band keys, Slack tokens, bearer and basic credentials,
 * keys in query strings, JSON Web Tokens.
 */
const SHAPES: readonly [RegExp, string][] = [
  [/\b(?:band|thnv)_[au]_[A-Za-z0-9_-]+/g, MASK],
  [/\bx(?:ox[a-z]|app)(?:\.[a-z]+)?-[A-Za-z0-9-]+/g, MASK],
  [/\bxoxe\.[A-Za-z0-9._-]+/g, MASK],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*/g, MASK],
  [/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{4,}/gi, `$1 ${MASK}`],
  [/([?&](?:api_key|apikey|token|access_token|key|secret|signature|sig)=)[^&\s"'\\]+/gi, `$1${MASK}`],
];

/** Hides secrets in finished text: what looks like one, and every value that was registered as one. */
export interface Redactor {
  (text: string): string;
  /** Registers a configured secret, whatever its shape. Values under six characters are too common to search for. */
  add(secret: string): void;
}

const SHORTEST_SECRET_CHARS = 6;

export function createRedactor(secrets: Iterable<string> = []): Redactor {
  const known = new Set<string>();
  let pattern: RegExp | null = null;

  const redact = (text: string): string => {
    let out = text;
    if (pattern) out = out.replace(pattern, MASK);
    for (const [shape, mask] of SHAPES) out = out.replace(shape, mask);
    return out;
  };
  const add = (secret: string): void => {
    if (secret.length < SHORTEST_SECRET_CHARS || known.has(secret)) return;
    known.add(secret);
    // A log line is JSON, so the escaped form of a secret is looked for as well.
    const forms = [...known].flatMap((value) => [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value)]);
    const unique = [...new Set(forms)].sort((a, b) => b.length - a.length);
    pattern = new RegExp(unique.map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
  };
  for (const secret of secrets) add(secret);
  return Object.assign(redact, { add });
}
