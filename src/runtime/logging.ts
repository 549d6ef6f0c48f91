import { pino } from 'pino';
import { silentLogger, type Logger } from '../base/log.js';
import { createRedactor, type Redactor } from '../base/redact.js';
import { caselessEnv } from '../config/env-lookup.js';
import { ValueError } from '../base/band-errors.js';
import { openLogFile, type LogFile } from './log-file.js';
import { formatJson, formatStandard, type LogRecord } from './log-format.js';

/** Levels by the names that the settings use; `WARN` and `FATAL` are read as their longer forms. */
const LEVELS = { DEBUG: 20, INFO: 30, WARNING: 40, ERROR: 50, CRITICAL: 60 } as const;
export type LogLevelName = keyof typeof LEVELS;

export interface LogSettingsInit {
  /** Least level of the `band.*` loggers; env `BAND_LOG_LEVEL`, default INFO. */
  readonly level?: string | undefined;
  /** Least level of every other logger; env `BAND_LOG_ROOT_LEVEL`, default WARNING. */
  readonly rootLevel?: string | undefined;
  /** Also write here; env `BAND_LOG_FILE`, default none. */
  readonly file?: string | null | undefined;
  /** Least level of the file; env `BAND_LOG_FILE_LEVEL`, default that of each logger. */
  readonly fileLevel?: string | null | undefined;
  /** Size at which the file starts anew; env `BAND_LOG_MAX_BYTES`, default 0: never. */
  readonly maxBytes?: number | string | undefined;
  /** Older files kept; env `BAND_LOG_BACKUPS`, default 1. */
  readonly backups?: number | string | undefined;
  /** `standard` or `json`; env `BAND_LOG_CONSOLE_STYLE`, default standard. */
  readonly consoleStyle?: string | undefined;
  /** `stderr` or `stdout`; env `BAND_LOG_STREAM`, default stderr. */
  readonly stream?: string | undefined;
  /** Logger name to level; env `BAND_LOG_OVERRIDES` as JSON, default none. A name covers the loggers below it. */
  readonly overrides?: Readonly<Record<string, string>> | string | undefined;
}

/** Where finished lines go; the process's own streams unless a test brings others. */
export interface LogStreams {
  readonly stderr: { write(text: string): unknown };
  readonly stdout: { write(text: string): unknown };
}

/**
 * How the library logs, for programs that want to see it: nothing is printed until {@link configure} was called
 * . Each field takes the constructor's value, else its environment variable in any case, else its default.
 */
export class LogSettings {
  readonly level: LogLevelName;
  readonly rootLevel: LogLevelName;
  readonly file: string | null;
  readonly fileLevel: LogLevelName | null;
  readonly maxBytes: number;
  readonly backups: number;
  readonly consoleStyle: 'standard' | 'json';
  readonly stream: 'stderr' | 'stdout';
  readonly overrides: Readonly<Record<string, LogLevelName>>;

  /** @throws {ValueError} for a value that no field can have, with the field's environment name */
  constructor(init: LogSettingsInit = {}, env: NodeJS.ProcessEnv = process.env) {
    const lookup = caselessEnv(env);
    const pick = <T>(given: T | undefined, name: string) => (given === undefined ? lookup(name) : given);
    this.level = levelOf(pick(init.level, 'BAND_LOG_LEVEL') ?? 'INFO', 'BAND_LOG_LEVEL');
    this.rootLevel = levelOf(pick(init.rootLevel, 'BAND_LOG_ROOT_LEVEL') ?? 'WARNING', 'BAND_LOG_ROOT_LEVEL');
    this.file = pick(init.file, 'BAND_LOG_FILE') ?? null;
    const fileLevel = pick(init.fileLevel, 'BAND_LOG_FILE_LEVEL') ?? null;
    this.fileLevel = fileLevel === null ? null : levelOf(fileLevel, 'BAND_LOG_FILE_LEVEL');
    this.maxBytes = countOf(pick(init.maxBytes, 'BAND_LOG_MAX_BYTES') ?? 0, 'BAND_LOG_MAX_BYTES');
    this.backups = countOf(pick(init.backups, 'BAND_LOG_BACKUPS') ?? 1, 'BAND_LOG_BACKUPS');
    this.consoleStyle = oneOf(
      pick(init.consoleStyle, 'BAND_LOG_CONSOLE_STYLE') ?? 'standard',
      ['standard', 'json'],
      'BAND_LOG_CONSOLE_STYLE',
    );
    this.stream = oneOf(pick(init.stream, 'BAND_LOG_STREAM') ?? 'stderr', ['stderr', 'stdout'], 'BAND_LOG_STREAM');
    this.overrides = overridesOf(pick(init.overrides, 'BAND_LOG_OVERRIDES') ?? {});
    Object.freeze(this);
  }

  /** Puts these settings in force for every Agent started from now on. */
  configure(streams: LogStreams = process): void {
    inForce?.file?.close();
    const file = this.file === null ? null : openLogFile(this.file, this);
    inForce = { settings: this, streams, file, redact: libraryRedactor };
  }

  /** Least level at which a logger of this name is heard. */
  levelFor(name: string): LogLevelName {
    for (let at = name; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
      const override = this.overrides[at];
      if (override) return override;
    }
    return name === 'band' || name.startsWith('band.') ? this.level : this.rootLevel;
  }
}

/** `new LogSettings(init).configure()`. */
export function configureLogging(init: LogSettingsInit = {}, streams?: LogStreams): void {
  new LogSettings(init).configure(streams);
}

interface Sink {
  readonly settings: LogSettings;
  readonly streams: LogStreams;
  readonly file: LogFile | null;
  readonly redact: (text: string) => string;
}

/** Hides the keys of every Agent of this process, since the log is the process's own. */
export const libraryRedactor: Redactor = createRedactor();

// The one thing of the library that is the process's and nobody's argument: whether and where it logs.
let inForce: Sink | null = null;

/** A logger by name; silent while nobody configured logging. */
export function bandLogger(name: string): Logger {
  if (!inForce) return silentLogger;
  const sink = inForce;
  const level = sink.settings.levelFor(name);
  return pino(
    { level: pinoLevel(level), base: null, timestamp: pino.stdTimeFunctions.epochTime },
    {
      write: (line) => {
        write(sink, name, JSON.parse(line) as LogRecord);
      },
    },
  );
}

function write(sink: Sink, name: string, record: LogRecord): void {
  const { settings, streams, file, redact } = sink;
  const format = settings.consoleStyle === 'json' ? formatJson : formatStandard;
  const level = levelName(record.level);
  streams[settings.stream].write(redact(format(name, level, record)));
  const fileLevel = settings.fileLevel === null ? 0 : LEVELS[settings.fileLevel];
  if (file && record.level >= fileLevel) file.write(redact(formatStandard(name, level, record)));
}

function levelName(level: number): LogLevelName {
  const names = Object.keys(LEVELS) as LogLevelName[];
  return names.findLast((name) => level >= LEVELS[name]) ?? 'DEBUG';
}

function pinoLevel(name: LogLevelName): string {
  return { DEBUG: 'debug', INFO: 'info', WARNING: 'warn', ERROR: 'error', CRITICAL: 'fatal' }[name];
}

function levelOf(value: unknown, variable: string): LogLevelName {
  const name = typeof value === 'string' ? value.trim().toUpperCase() : '';
  const known = { WARN: 'WARNING', FATAL: 'CRITICAL', TRACE: 'DEBUG' }[name] ?? name;
  return oneOf(known, Object.keys(LEVELS) as LogLevelName[], variable);
}

function oneOf<T extends string>(value: string, choices: readonly T[], variable: string): T {
  const found = choices.find((choice) => choice.toLowerCase() === value.trim().toLowerCase());
  if (!found) throw new ValueError(`${variable} must be one of ${choices.join(', ')}, got '${value}'`);
  return found;
}

function countOf(value: number | string, variable: string): number {
  const count = typeof value === 'number' ? value : Number(value.trim() || Number.NaN);
  if (!Number.isSafeInteger(count) || count < 0) {
    throw new ValueError(`${variable} must be a whole number of 0 or more, got '${value}'`);
  }
  return count;
}

function overridesOf(value: Readonly<Record<string, string>> | string): Readonly<Record<string, LogLevelName>> {
  const variable = 'BAND_LOG_OVERRIDES';
  let map: unknown = value;
  if (typeof value === 'string') {
    try {
      map = JSON.parse(value);
    } catch (error) {
      throw new ValueError(`${variable} must be a JSON object of logger names and levels`, { cause: error });
    }
  }
  if (typeof map !== 'object' || map === null || Array.isArray(map)) {
    throw new ValueError(`${variable} must be a JSON object of logger names and levels`);
  }
  return Object.freeze(
    Object.fromEntries(Object.entries(map).map(([name, level]) => [name, levelOf(level, `${variable} (${name})`)])),
  );
}
