import { pino, type DestinationStream, type Logger as PinoLogger } from 'pino';
import { createRedactor, type Redactor } from './redact.js';

/** Structured log, pino's own shape. Children carry the ids that join the hops of one message. */
export type Logger = PinoLogger;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export interface LogOptions {
  /** Default `info`. */
  level?: LogLevel;
  /** Where lines go; default standard error, since standard output belongs to ACP. */
  destination?: DestinationStream;
  redactor?: Redactor;
}

/**
 * A logger whose every finished line passes the redactor, so that a secret inside a message, a stack or a URL is
 * hidden as well as one in a field of its own.
 */
export function createLogger({ level = 'info', destination, redactor = createRedactor() }: LogOptions = {}): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: ['apiKey', '*.apiKey', 'authorization', '*.authorization', 'headers["x-api-key"]', 'token', '*.token'],
        censor: '[redacted]',
      },
      hooks: { streamWrite: (line) => redactor(line) },
    },
    destination ?? pino.destination({ dest: 2, sync: true }),
  );
}

/** A logger that says nothing. */
export const silentLogger: Logger = pino({ level: 'silent' });
