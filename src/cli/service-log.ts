import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import { createLogger, type Logger } from '../base/log.js';
import type { Redactor } from '../base/redact.js';
import type { ServiceOptions } from '../config/load.js';

/** The service's log: JSON lines on standard error or in a file, with every configured secret hidden. */
export function createServiceLog(
  { logLevel, logFile }: Pick<ServiceOptions, 'logLevel' | 'logFile'>,
  redactor: Redactor,
): Logger {
  if (logFile === undefined) return createLogger({ level: logLevel, redactor });
  mkdirSync(path.dirname(logFile), { recursive: true });
  return createLogger({ level: logLevel, redactor, destination: pino.destination({ dest: logFile, sync: true }) });
}
