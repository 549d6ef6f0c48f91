import type { ValidationIssue } from '../base/band-errors.js';
import { booleanFromText } from './text-value.js';

/** The fields of a session's configuration; durations in seconds. */
export interface SessionConfigFields {
  /** Accepted for parity; has no effect. Default true. */
  readonly enableContextCache: boolean;
  /** Lifetime of a cached context; 0 or less: always expired. Default 300. */
  readonly contextCacheTtlSeconds: number;
  /** Accepted for parity; has no effect. Default 100. */
  readonly maxContextMessages: number;
  /** Attempts per message before it fails for good: 1, the default, means one try and no second one. */
  readonly maxMessageRetries: number;
  /** Whether a session starts from the room's history; participants are loaded either way. Default true. */
  readonly enableContextHydration: boolean;
  /** Smallest interval of the search for missed messages, and of retries. Default 60. */
  readonly idleResyncSeconds: number;
  /** Whether the working indicator is reported while the agent reasons. Default true. */
  readonly enableWorkingState: boolean;
  /** Interval of those reports, under 5. Default 3. */
  readonly workingKeepAliveSeconds: number;
  /** Deadline of one report, under the interval. Default 2. */
  readonly workingRequestTimeoutSeconds: number;
  /** Stop reporting after this long; the reasoning goes on. Default null: never. */
  readonly maxWorkingStateSeconds: number | null;
  /** Cancel one reasoning cycle after this long. Default null: never. */
  readonly maxCycleSeconds: number | null;
  /** Whether the room is told when a message failed its last attempt. Default true. */
  readonly reportTurnFailuresToRoom: boolean;
  /** Largest interval of that search; an empty one doubles the interval up to it. Default 120. */
  readonly idleResyncMaxSeconds: number;
  /** Fixed interval of that search while a stop pauses the room. Default null: `idleResyncSeconds`. */
  readonly stoppedResyncSeconds: number | null;
}

export type SessionFieldName = keyof SessionConfigFields;
type FieldValue = SessionConfigFields[SessionFieldName];

interface FieldRule {
  readonly kind: 'boolean' | 'integer' | 'number';
  readonly default: FieldValue;
  readonly nullable?: true;
  readonly finite?: true;
  readonly positive?: true;
  readonly atLeast?: number;
}

export const SESSION_FIELDS = {
  enableContextCache: { kind: 'boolean', default: true },
  contextCacheTtlSeconds: { kind: 'integer', default: 300 },
  maxContextMessages: { kind: 'integer', default: 100 },
  maxMessageRetries: { kind: 'integer', default: 1, atLeast: 1 },
  enableContextHydration: { kind: 'boolean', default: true },
  idleResyncSeconds: { kind: 'number', default: 60, finite: true, positive: true },
  enableWorkingState: { kind: 'boolean', default: true },
  workingKeepAliveSeconds: { kind: 'number', default: 3 },
  workingRequestTimeoutSeconds: { kind: 'integer', default: 2 },
  maxWorkingStateSeconds: { kind: 'number', default: null, nullable: true },
  maxCycleSeconds: { kind: 'number', default: null, nullable: true, positive: true },
  reportTurnFailuresToRoom: { kind: 'boolean', default: true },
  idleResyncMaxSeconds: { kind: 'number', default: 120, finite: true, positive: true },
  stoppedResyncSeconds: { kind: 'number', default: null, nullable: true, finite: true, positive: true },
} as const satisfies Record<SessionFieldName, FieldRule>;

/** `idleResyncSeconds` as issues and environments name it: `idle_resync_seconds`. */
export function snakeName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

type Parsed = { readonly value: FieldValue } | { readonly issue: ValidationIssue };

/** A field's value from what a caller or the environment gave; texts are trimmed and read as the field's kind. */
export function parseField(field: SessionFieldName, input: unknown): Parsed {
  const rule: FieldRule = SESSION_FIELDS[field];
  const refuse = (type: string, message: string): Parsed => ({
    issue: { path: [snakeName(field)], message, type, input },
  });
  if (input === null && rule.nullable) return { value: null };
  const value = VALUE_OF[rule.kind](input);
  if (value === undefined) return refuse(`${rule.kind}_type`, `Input should be a valid ${rule.kind}`);
  if (typeof value === 'boolean') return { value };
  if (rule.finite && !Number.isFinite(value)) return refuse('finite_number', 'Input should be a finite number');
  if (rule.positive && !(value > 0)) return refuse('greater_than', 'Input should be greater than 0');
  if (rule.atLeast !== undefined && value < rule.atLeast) {
    return refuse('greater_than_equal', `Input should be greater than or equal to ${rule.atLeast}`);
  }
  return { value };
}

const VALUE_OF = { boolean: booleanOf, integer: integerOf, number: numberOf } as const satisfies Record<
  FieldRule['kind'],
  (input: unknown) => boolean | number | undefined
>;

function booleanOf(input: unknown): boolean | undefined {
  if (typeof input === 'boolean') return input;
  return typeof input === 'string' ? booleanFromText(input) : undefined;
}

function integerOf(input: unknown): number | undefined {
  const value = numberOf(input);
  return Number.isSafeInteger(value) ? value : undefined;
}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
// Spelled out they are numbers too, so that the complaint names what is wrong with them.
const NOT_FINITE = /^(?:([+-])?inf(?:inity)?|nan)$/i;

function numberOf(input: unknown): number | undefined {
  if (typeof input === 'number') return input;
  if (typeof input !== 'string') return undefined;
  const text = input.trim();
  if (DECIMAL.test(text)) return Number(text);
  const special = NOT_FINITE.exec(text);
  if (!special) return undefined;
  if (text.toLowerCase() === 'nan') return Number.NaN;
  return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

/** What is wrong with the working indicator's timing, the first thing only; null when it is sound or switched off. */
export function workingStateProblem(fields: SessionConfigFields): string | null {
  if (!fields.enableWorkingState) return null;
  const keepAlive = fields.workingKeepAliveSeconds;
  const timeout = fields.workingRequestTimeoutSeconds;
  const most = fields.maxWorkingStateSeconds;
  // Written so that NaN fails every comparison.
  if (!(keepAlive > 0)) return `working_keep_alive_seconds must be > 0 (got ${floatText(keepAlive)})`;
  if (!(keepAlive < 5)) {
    return `working_keep_alive_seconds must be < TTL/2 (5.0) to keep TTL headroom (got ${floatText(keepAlive)})`;
  }
  if (!(timeout > 0)) return `working_request_timeout_seconds must be > 0 (got ${timeout})`;
  if (!(timeout < keepAlive)) {
    return `working_request_timeout_seconds must be < working_keep_alive_seconds (${floatText(keepAlive)}) (got ${timeout})`;
  }
  if (most !== null && !(most > 0)) return `max_working_state_seconds must be > 0 when set (got ${floatText(most)})`;
  return null;
}

/** A value of a float field as texts show it: always with a decimal point, `5` as `5.0`. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const text = String(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}
