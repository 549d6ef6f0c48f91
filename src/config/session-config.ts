import { ValidationError, type ValidationIssue } from '../base/band-errors.js';
import { caselessEnv } from './env-lookup.js';
import {
  parseField,
  SESSION_FIELDS,
  snakeName,
  workingStateProblem,
  type SessionConfigFields,
  type SessionFieldName,
} from './session-fields.js';

/** Fields by name; an unknown property is allowed and ignored. */
type SessionConfigInit = {
  readonly [Field in SessionFieldName]?: SessionConfigFields[Field] | undefined;
} & Readonly<Record<string, unknown>>;

const TITLE = 'SessionConfig';
const FIELD_NAMES = Object.keys(SESSION_FIELDS) as SessionFieldName[];

/**
 * How an Agent treats its rooms; frozen. Each field takes the constructor's value, else the environment variable of
 * its snake_case name in any case (`IDLE_RESYNC_SECONDS`), else its default. A value of `undefined` counts as left
 * out, `null` as given. Unknown properties are ignored.
 */
export class SessionConfig implements SessionConfigFields {
  declare readonly enableContextCache: boolean;
  declare readonly contextCacheTtlSeconds: number;
  declare readonly maxContextMessages: number;
  declare readonly maxMessageRetries: number;
  declare readonly enableContextHydration: boolean;
  declare readonly idleResyncSeconds: number;
  declare readonly enableWorkingState: boolean;
  declare readonly workingKeepAliveSeconds: number;
  declare readonly workingRequestTimeoutSeconds: number;
  declare readonly maxWorkingStateSeconds: number | null;
  declare readonly maxCycleSeconds: number | null;
  declare readonly reportTurnFailuresToRoom: boolean;
  declare readonly idleResyncMaxSeconds: number;
  declare readonly stoppedResyncSeconds: number | null;

  /**
   * @param init - fields by name; texts are read as numbers and booleans
   * @throws {TypeError} for anything but an object
   * @throws {ValidationError} with every field that is wrong; once all are sound, with what is wrong between them
   */
  constructor(init: SessionConfigInit = {}) {
    if (typeof init !== 'object' || (init as object | null) === null || Array.isArray(init)) {
      throw new TypeError('SessionConfig takes its fields by name, in one object');
    }
    Object.freeze(Object.assign(this, resolveFields(init, process.env)));
  }

  /** All fields as a plain object. */
  modelDump(): SessionConfigFields {
    return Object.fromEntries(FIELD_NAMES.map((field) => [field, this[field]])) as unknown as SessionConfigFields;
  }
}

function resolveFields(init: SessionConfigInit, env: NodeJS.ProcessEnv): SessionConfigFields {
  const lookup = caselessEnv(env);
  const issues: ValidationIssue[] = [];
  const values: Record<string, unknown> = {};
  for (const field of FIELD_NAMES) {
    const input = init[field] ?? (init[field] === null ? null : lookup(snakeName(field).toUpperCase()));
    const parsed = input === undefined ? { value: SESSION_FIELDS[field].default } : parseField(field, input);
    if ('issue' in parsed) issues.push(parsed.issue);
    else values[field] = parsed.value;
  }
  if (issues.length > 0) throw new ValidationError(TITLE, issues);
  const fields = values as unknown as SessionConfigFields;
  const problem = workingStateProblem(fields);
  if (problem !== null) {
    throw new ValidationError(TITLE, [
      { path: [], message: `Value error, ${problem}`, type: 'value_error', input: fields },
    ]);
  }
  return fields;
}
