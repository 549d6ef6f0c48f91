/** A line as the logger makes it. */
export interface LogRecord {
  readonly level: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg?: string;
  readonly err?: { readonly stack?: string; readonly message?: string };
  readonly [field: string]: unknown;
}

/**
 * `2026-10-20 14:35:31 [INFO] band.agent: Agent started: …` in local time; other fields follow as `name=value`,
 * the stack of an error on lines of its own.
 */
export function formatStandard(logger: string, level: string, record: LogRecord): string {
  const { time, msg, err } = record;
  const fields = restOf(record).map(([key, value]) => ` ${key}=${typeof value === 'string' ? value : inJson(value)}`);
  const stack = err?.stack ?? err?.message;
  const trace = stack === undefined ? '' : `\n${stack}`;
  return `${localTime(new Date(time))} [${level}] ${logger}: ${msg ?? ''}${fields.join('')}${trace}\n`;
}

/** The same as one JSON object per line, with the time in ISO 8601. */
export function formatJson(logger: string, level: string, record: LogRecord): string {
  const { time, msg, err } = record;
  const line = {
    time: new Date(time).toISOString(),
    level,
    logger,
    message: msg ?? '',
    ...Object.fromEntries(restOf(record)),
    ...(err === undefined ? {} : { err }),
  };
  return `${inJson(line)}\n`;
}

const OWN_FIELDS = new Set(['level', 'time', 'msg', 'err']);

function restOf(record: LogRecord): [string, unknown][] {
  return Object.entries(record).filter(([key]) => !OWN_FIELDS.has(key));
}

const inJson = (value: unknown) => JSON.stringify(value);

function localTime(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${date} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
