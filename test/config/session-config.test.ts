import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ValidationError } from '../../src/base/band-errors.js';
import { SessionConfig } from '../../src/config/session-config.js';
import { floatText, SESSION_FIELDS, snakeName, type SessionConfigFields } from '../../src/config/session-fields.js';

const DEFAULTS: SessionConfigFields = {
  enableContextCache: true,
  contextCacheTtlSeconds: 300,
  maxContextMessages: 100,
  maxMessageRetries: 1,
  enableContextHydration: true,
  idleResyncSeconds: 60,
  enableWorkingState: true,
  workingKeepAliveSeconds: 3,
  workingRequestTimeoutSeconds: 2,
  maxWorkingStateSeconds: null,
  maxCycleSeconds: null,
  reportTurnFailuresToRoom: true,
  idleResyncMaxSeconds: 120,
  stoppedResyncSeconds: null,
};

/** A value of each field that differs from its default, as the environment spells it and as it is read. */
const OTHER: { [Field in keyof SessionConfigFields]: [string, SessionConfigFields[Field]] } = {
  enableContextCache: ['false', false],
  contextCacheTtlSeconds: ['7', 7],
  maxContextMessages: ['8', 8],
  maxMessageRetries: ['3', 3],
  enableContextHydration: ['no', false],
  idleResyncSeconds: ['30', 30],
  enableWorkingState: ['0', false],
  workingKeepAliveSeconds: ['4.5', 4.5],
  workingRequestTimeoutSeconds: ['1', 1],
  maxWorkingStateSeconds: ['90', 90],
  maxCycleSeconds: ['6e2', 600],
  reportTurnFailuresToRoom: ['off', false],
  idleResyncMaxSeconds: ['240.5', 240.5],
  stoppedResyncSeconds: ['15', 15],
};
const FIELDS = Object.keys(DEFAULTS) as (keyof SessionConfigFields)[];

function refusalOf(init: Record<string, unknown>): ValidationError {
  try {
    new SessionConfig(init);
  } catch (error) {
    if (error instanceof ValidationError) return error;
    throw error;
  }
  throw new Error('the values were accepted');
}

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (FIELDS.some((field) => snakeName(field) === name.toLowerCase())) vi.stubEnv(name, undefined);
  }
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('SessionConfig', () => {
  it('R-105 has fourteen fields with the documented defaults', () => {
    expect(new SessionConfig().modelDump()).toEqual(DEFAULTS);
    expect(Object.keys(SESSION_FIELDS)).toHaveLength(14);
    expect(Object.keys(new SessionConfig()).sort()).toEqual([...FIELDS].sort());
  });

  it.each(FIELDS)('R-106 %s is read from the environment under its snake_case name', (field) => {
    vi.stubEnv(snakeName(field).toUpperCase(), OTHER[field][0]);
    expect(new SessionConfig().modelDump()).toEqual({ ...DEFAULTS, [field]: OTHER[field][1] });
  });

  it('R-106 reads the environment at each construction', () => {
    vi.stubEnv('MAX_MESSAGE_RETRIES', '2');
    expect(new SessionConfig().maxMessageRetries).toBe(2);
    vi.stubEnv('MAX_MESSAGE_RETRIES', '5');
    expect(new SessionConfig().maxMessageRetries).toBe(5);
  });

  it('R-107 environment names match in any case', () => {
    vi.stubEnv('IDLE_RESYNC_SECONDS', '30');
    vi.stubEnv('max_cycle_seconds', '600');
    vi.stubEnv('Stopped_Resync_Seconds', '9');
    expect(new SessionConfig()).toMatchObject({ idleResyncSeconds: 30, maxCycleSeconds: 600, stoppedResyncSeconds: 9 });
  });

  it('R-107 of several spellings upper case wins, then lower case, then the first in order', () => {
    vi.stubEnv('Max_Cycle_Seconds', '4');
    vi.stubEnv('MAx_Cycle_Seconds', '3');
    expect(new SessionConfig().maxCycleSeconds).toBe(3);
    vi.stubEnv('max_cycle_seconds', '2');
    expect(new SessionConfig().maxCycleSeconds).toBe(2);
    vi.stubEnv('MAX_CYCLE_SECONDS', '1');
    expect(new SessionConfig().maxCycleSeconds).toBe(1);
  });

  it.each(FIELDS)('R-108 a value given for %s beats the environment', (field) => {
    vi.stubEnv(snakeName(field).toUpperCase(), OTHER[field][0]);
    // Null is a value of its own for fields that may be null.
    expect(new SessionConfig({ [field]: DEFAULTS[field] }).modelDump()).toEqual(DEFAULTS);
  });

  it('R-108 a property that is undefined counts as left out', () => {
    vi.stubEnv('IDLE_RESYNC_SECONDS', '30');
    expect(new SessionConfig({ idleResyncSeconds: undefined }).idleResyncSeconds).toBe(30);
  });

  it.each(FIELDS)('R-109 an empty environment value for %s leaves the default', (field) => {
    vi.stubEnv(snakeName(field).toUpperCase(), '');
    expect(new SessionConfig().modelDump()).toEqual(DEFAULTS);
  });

  it('R-109 an empty spelling gives way to another one that says something', () => {
    vi.stubEnv('IDLE_RESYNC_SECONDS', '');
    vi.stubEnv('idle_resync_seconds', '12');
    expect(new SessionConfig().idleResyncSeconds).toBe(12);
  });

  it('R-110 unknown properties are ignored and do not appear among the fields', () => {
    const config = new SessionConfig({ idle_resync_seconds: 5, nonsense: { deep: true }, maxMessageRetries: 4 });
    expect(config.modelDump()).toEqual({ ...DEFAULTS, maxMessageRetries: 4 });
    expect('nonsense' in config).toBe(false);
  });

  it('R-111 modelDump gives a plain object that can be changed without changing the configuration', () => {
    const config = new SessionConfig();
    const dump = config.modelDump() as { maxMessageRetries: number };
    expect(Object.getPrototypeOf(dump)).toBe(Object.prototype);
    dump.maxMessageRetries = 9;
    expect(config.maxMessageRetries).toBe(1);
  });

  it.each([[60], ['60'], [null], [true], [[60]], [() => 60]])(
    'R-112 fields are given by name only: %j is refused',
    (positional) => {
      expect(() => new SessionConfig(positional as unknown as Record<string, unknown>)).toThrow(TypeError);
    },
  );

  it('instances are frozen', () => {
    const config = new SessionConfig() as { maxMessageRetries: number };
    expect(() => {
      config.maxMessageRetries = 2;
    }).toThrow(TypeError);
  });
});

describe('SessionConfig › reading texts', () => {
  it.each(['true', '1', 'yes', 'on', 't', 'y', 'TRUE', ' Yes '])('%j is true', (text) => {
    vi.stubEnv('ENABLE_CONTEXT_CACHE', 'false');
    expect(new SessionConfig({ enableContextCache: text as unknown as boolean }).enableContextCache).toBe(true);
  });

  it.each(['false', '0', 'no', 'off', 'f', 'n', 'OFF', ' n '])('%j is false', (text) => {
    expect(new SessionConfig({ enableContextCache: text as unknown as boolean }).enableContextCache).toBe(false);
  });

  it.each([
    [' 12.5 ', 12.5],
    ['+3', 3],
    ['.5', 0.5],
    ['1.', 1],
    ['2E1', 20],
  ])('%j is a number', (text, value) => {
    expect(new SessionConfig({ idleResyncSeconds: text as unknown as number }).idleResyncSeconds).toBe(value);
  });
});

describe('SessionConfig › refused values', () => {
  it('R-113 a wrong value is refused at construction, from the environment as well', () => {
    expect(() => new SessionConfig({ idleResyncSeconds: -1 })).toThrow(ValidationError);
    vi.stubEnv('IDLE_RESYNC_SECONDS', '-1');
    expect(() => new SessionConfig()).toThrow(ValidationError);
    expect(() => new SessionConfig({ idleResyncSeconds: 5 })).not.toThrow();
  });

  it('R-114 idleResyncSeconds 0 reports that it should be greater than 0', () => {
    const error = refusalOf({ idleResyncSeconds: 0 });
    expect(error.title).toBe('SessionConfig');
    expect(error.issues).toEqual([
      { path: ['idle_resync_seconds'], message: 'Input should be greater than 0', type: 'greater_than', input: 0 },
    ]);
    expect(error.message).toBe(
      '1 validation error for SessionConfig\nidle_resync_seconds\n  Input should be greater than 0',
    );
  });

  it('R-113 all fields that are wrong are reported together', () => {
    const error = refusalOf({ idleResyncSeconds: 0, maxMessageRetries: 0, enableContextCache: 'perhaps' });
    expect(error.message.split('\n')).toEqual([
      '3 validation errors for SessionConfig',
      'enable_context_cache',
      '  Input should be a valid boolean',
      'max_message_retries',
      '  Input should be greater than or equal to 1',
      'idle_resync_seconds',
      '  Input should be greater than 0',
    ]);
  });

  it('R-115 workingKeepAliveSeconds 5 reports the headroom it needs, word for word', () => {
    const error = refusalOf({ workingKeepAliveSeconds: 5 });
    expect(error.message).toBe(
      '1 validation error for SessionConfig\n' +
        '  Value error, working_keep_alive_seconds must be < TTL/2 (5.0) to keep TTL headroom (got 5.0)',
    );
    expect(error.issues[0]).toMatchObject({ path: [], type: 'value_error' });
  });

  describe.each(['idleResyncSeconds', 'idleResyncMaxSeconds', 'stoppedResyncSeconds'] as const)('%s', (field) => {
    it.each([0, -0.5, '0'])('R-116 R-117 R-118 %j is refused as not greater than 0', (value) => {
      expect(refusalOf({ [field]: value }).issues).toMatchObject([
        { path: [snakeName(field)], message: 'Input should be greater than 0' },
      ]);
    });
    it.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 'nan', '-inf', 'Infinity', '1e999'])(
      'R-116 R-117 R-118 %j is refused as not finite',
      (value) => {
        expect(refusalOf({ [field]: value }).issues).toMatchObject([
          { path: [snakeName(field)], message: 'Input should be a finite number' },
        ]);
      },
    );
  });

  it('R-118 stoppedResyncSeconds may be null', () => {
    expect(new SessionConfig({ stoppedResyncSeconds: null }).stoppedResyncSeconds).toBeNull();
  });

  it.each([
    [0, 'Value error, working_keep_alive_seconds must be > 0 (got 0.0)'],
    [-1.5, 'Value error, working_keep_alive_seconds must be > 0 (got -1.5)'],
    [Number.NaN, 'Value error, working_keep_alive_seconds must be > 0 (got nan)'],
    [7.25, 'Value error, working_keep_alive_seconds must be < TTL/2 (5.0) to keep TTL headroom (got 7.25)'],
    [Infinity, 'Value error, working_keep_alive_seconds must be < TTL/2 (5.0) to keep TTL headroom (got inf)'],
  ])('R-119 workingKeepAliveSeconds %j is refused', (value, message) => {
    expect(refusalOf({ workingKeepAliveSeconds: value }).issues).toMatchObject([{ path: [], message }]);
  });

  it('R-119 workingKeepAliveSeconds just under 5 is accepted', () => {
    expect(new SessionConfig({ workingKeepAliveSeconds: 4.999 }).workingKeepAliveSeconds).toBe(4.999);
  });

  it.each([
    [{ workingRequestTimeoutSeconds: 0 }, 'working_request_timeout_seconds must be > 0 (got 0)'],
    [{ workingRequestTimeoutSeconds: -2 }, 'working_request_timeout_seconds must be > 0 (got -2)'],
    [
      { workingRequestTimeoutSeconds: 3 },
      'working_request_timeout_seconds must be < working_keep_alive_seconds (3.0) (got 3)',
    ],
    [
      { workingRequestTimeoutSeconds: 2, workingKeepAliveSeconds: 1.5 },
      'working_request_timeout_seconds must be < working_keep_alive_seconds (1.5) (got 2)',
    ],
  ])('R-120 %j is refused', (init, message) => {
    expect(refusalOf(init).issues).toMatchObject([{ path: [], message: `Value error, ${message}` }]);
  });

  it.each([
    [0, '0.0'],
    [-3, '-3.0'],
    [Number.NaN, 'nan'],
  ])('R-121 maxWorkingStateSeconds %j is refused', (value, shown) => {
    expect(refusalOf({ maxWorkingStateSeconds: value }).issues).toMatchObject([
      { path: [], message: `Value error, max_working_state_seconds must be > 0 when set (got ${shown})` },
    ]);
  });

  it.each([0, -1, Number.NaN, '0.0'])('R-122 maxCycleSeconds %j is refused', (value) => {
    expect(refusalOf({ maxCycleSeconds: value }).issues).toMatchObject([
      { path: ['max_cycle_seconds'], message: 'Input should be greater than 0' },
    ]);
  });

  it('R-122 maxCycleSeconds may be null or any positive number', () => {
    expect(new SessionConfig({ maxCycleSeconds: null }).maxCycleSeconds).toBeNull();
    expect(new SessionConfig({ maxCycleSeconds: 0.25 }).maxCycleSeconds).toBe(0.25);
  });

  it('R-123 with the working indicator off its timing is not checked', () => {
    const odd = { workingKeepAliveSeconds: 50, workingRequestTimeoutSeconds: -1, maxWorkingStateSeconds: 0 };
    expect(new SessionConfig({ ...odd, enableWorkingState: false }).modelDump()).toMatchObject(odd);
    expect(() => new SessionConfig({ ...odd, enableWorkingState: true })).toThrow(ValidationError);
  });

  it('R-123 the timing is looked at only once every field is sound', () => {
    const error = refusalOf({ workingKeepAliveSeconds: 50, idleResyncSeconds: 0 });
    expect(error.issues.map(({ path }) => path.join('.'))).toEqual(['idle_resync_seconds']);
  });

  it('R-128 a value that cannot be read is reported with the name of its field', () => {
    vi.stubEnv('idle_resync_seconds', 'soon');
    vi.stubEnv('MAX_MESSAGE_RETRIES', '1.5');
    vi.stubEnv('ENABLE_WORKING_STATE', 'maybe');
    const { issues } = refusalOf({});
    expect(issues.map(({ path, message, input }) => [path.join('.'), message, input])).toEqual([
      ['max_message_retries', 'Input should be a valid integer', '1.5'],
      ['idle_resync_seconds', 'Input should be a valid number', 'soon'],
      ['enable_working_state', 'Input should be a valid boolean', 'maybe'],
    ]);
  });

  it.each([
    ['contextCacheTtlSeconds', null, 'Input should be a valid integer'],
    ['contextCacheTtlSeconds', Number.NaN, 'Input should be a valid integer'],
    ['contextCacheTtlSeconds', 2 ** 60, 'Input should be a valid integer'],
    ['contextCacheTtlSeconds', '0x10', 'Input should be a valid integer'],
    ['idleResyncSeconds', null, 'Input should be a valid number'],
    ['idleResyncSeconds', '', 'Input should be a valid number'],
    ['idleResyncSeconds', true, 'Input should be a valid number'],
    ['idleResyncSeconds', {}, 'Input should be a valid number'],
    ['maxCycleSeconds', 'null', 'Input should be a valid number'],
    ['enableContextCache', null, 'Input should be a valid boolean'],
    ['enableContextCache', 2, 'Input should be a valid boolean'],
    ['maxMessageRetries', 0, 'Input should be greater than or equal to 1'],
  ])('%s %j is refused', (field, value, message) => {
    expect(refusalOf({ [field]: value }).issues).toMatchObject([{ path: [snakeName(field)], message }]);
  });

  it('R-129 null for a field that may be null beats the environment', () => {
    vi.stubEnv('MAX_CYCLE_SECONDS', '600');
    vi.stubEnv('STOPPED_RESYNC_SECONDS', '30');
    vi.stubEnv('MAX_WORKING_STATE_SECONDS', '90');
    const off = { maxCycleSeconds: null, stoppedResyncSeconds: null, maxWorkingStateSeconds: null };
    expect(new SessionConfig(off)).toMatchObject(off);
  });
});

describe('floatText', () => {
  it.each([
    [5, '5.0'],
    [-3, '-3.0'],
    [0.5, '0.5'],
    [600, '600.0'],
    [1e21, '1e+21'],
    [Number.NaN, 'nan'],
    [-Infinity, '-inf'],
  ])('%j reads %s', (value, text) => {
    expect(floatText(value)).toBe(text);
  });
});
