import { BandConfigError } from '../base/band-errors.js';

/** What an adapter may show in the room beside its answers. */
export const Emit = {
  TOOL_CALLS: 'tool_calls',
  THOUGHTS: 'thoughts',
  TASK_EVENTS: 'task_events',
  USAGE: 'usage',
} as const;
export type Emit = (typeof Emit)[keyof typeof Emit];

/** Tool groups that are offered only on request. */
export const Capability = { MEMORY: 'memory', CONTACTS: 'contacts' } as const;
export type Capability = (typeof Capability)[keyof typeof Capability];

/** The feature options that every {@link SimpleAdapter} takes. */
export interface FeatureOptions {
  /** Left out: everything the adapter supports. Empty: nothing. */
  emit?: Emit | Iterable<Emit> | undefined;
  /** Left out: none. */
  capabilities?: Capability | Iterable<Capability> | undefined;
  /** Only these tools are offered. */
  includeTools?: Iterable<string> | undefined;
  /** These tools are not offered, whatever else is said. */
  excludeTools?: Iterable<string> | undefined;
  /** Only tools of these categories are offered: `chat`, `contacts`, `memory`. */
  includeCategories?: Iterable<string> | undefined;
}

/** The features in force, frozen; null means no filter. */
export interface AdapterFeatures {
  readonly emit: ReadonlySet<Emit>;
  readonly capabilities: ReadonlySet<Capability>;
  readonly includeTools: ReadonlySet<string> | null;
  readonly excludeTools: ReadonlySet<string> | null;
  readonly includeCategories: ReadonlySet<string> | null;
}

/** What an adapter class can do. */
export interface SupportedFeatures {
  readonly emit: ReadonlySet<Emit>;
  readonly capabilities: ReadonlySet<Capability>;
}

/** Nothing asked for and nothing left out: what an adapter without feature options has. */
export const NO_FEATURES: AdapterFeatures = Object.freeze({
  emit: new Set<Emit>(),
  capabilities: new Set<Capability>(),
  includeTools: null,
  excludeTools: null,
  includeCategories: null,
});

const OPTION_NAMES: ReadonlySet<string> = new Set([
  'emit',
  'capabilities',
  'includeTools',
  'excludeTools',
  'includeCategories',
]);

/**
 * The features of an adapter from its options.
 *
 * @param adapterName - the adapter's class name, for error texts
 * @throws {TypeError} for the first option that is no feature option; adapter settings belong in an `XAdapterConfig`
 * @throws {BandConfigError} for a value that the adapter does not support
 */
export function resolveFeatures(
  adapterName: string,
  options: FeatureOptions,
  supported: SupportedFeatures,
): AdapterFeatures {
  for (const name of Object.keys(options)) {
    if (OPTION_NAMES.has(name)) continue;
    throw new TypeError(`SimpleAdapter._resolve_features() got an unexpected keyword argument '${name}'`);
  }
  const emit = options.emit === undefined ? new Set(supported.emit) : setOf(options.emit);
  const capabilities = options.capabilities === undefined ? new Set<Capability>() : setOf(options.capabilities);
  refuseUnsupported(adapterName, 'emit kind(s)', emit, supported.emit);
  refuseUnsupported(adapterName, 'capability/-ies', capabilities, supported.capabilities);
  return Object.freeze({
    emit,
    capabilities,
    includeTools: filterOf(options.includeTools),
    excludeTools: filterOf(options.excludeTools),
    includeCategories: filterOf(options.includeCategories),
  });
}

/** A lone value is meant as a set of one; as a string it would otherwise be taken letter by letter. */
function setOf<T extends string>(value: T | Iterable<T>): Set<T> {
  return typeof value === 'string' ? new Set([value]) : new Set(value);
}

function filterOf(names: Iterable<string> | undefined): ReadonlySet<string> | null {
  return names === undefined ? null : setOf(names);
}

function refuseUnsupported(
  adapterName: string,
  what: string,
  asked: ReadonlySet<string>,
  supported: ReadonlySet<string>,
): void {
  const unsupported = [...asked].filter((value) => !supported.has(value)).sort();
  if (unsupported.length === 0) return;
  const choice = supported.size === 0 ? '(none)' : [...supported].sort().join(', ');
  throw new BandConfigError(`${adapterName} does not support ${what}: ${unsupported.join(', ')}. Supported: ${choice}`);
}
