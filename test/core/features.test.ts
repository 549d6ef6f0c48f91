import { describe, expect, it } from 'vitest';
import { BandConfigError } from '../../src/base/band-errors.js';
import { resolveFeatures, type Capability, type Emit, type FeatureOptions } from '../../src/core/features.js';

const SUPPORTED = {
  emit: new Set<Emit>(['tool_calls', 'thoughts']),
  capabilities: new Set<Capability>(['memory']),
};
const resolve = (options: FeatureOptions) => resolveFeatures('WeatherAdapter', options, SUPPORTED);

describe('resolveFeatures', () => {
  it('R-155 emit left out is everything supported, an empty one nothing, capabilities left out none', () => {
    expect(resolve({})).toMatchObject({ emit: SUPPORTED.emit, capabilities: new Set() });
    expect(resolve({ emit: undefined }).emit).toEqual(SUPPORTED.emit);
    expect(resolve({ emit: [] }).emit).toEqual(new Set());
    expect(resolve({ emit: 'thoughts', capabilities: 'memory' })).toMatchObject({
      emit: new Set(['thoughts']),
      capabilities: new Set(['memory']),
    });
    expect(resolve({ emit: new Set<Emit>(['thoughts', 'tool_calls']) }).emit).toEqual(SUPPORTED.emit);
  });

  it('R-154 an unsupported emit kind is refused with what was asked and what is supported', () => {
    expect(() => resolve({ emit: ['usage', 'thoughts', 'task_events'] })).toThrow(
      new BandConfigError(
        'WeatherAdapter does not support emit kind(s): task_events, usage. Supported: thoughts, tool_calls',
      ),
    );
  });

  it('R-154 an unsupported capability is refused likewise, also where nothing is supported', () => {
    expect(() => resolve({ capabilities: 'contacts' })).toThrow(
      new BandConfigError('WeatherAdapter does not support capability/-ies: contacts. Supported: memory'),
    );
    const none = { emit: new Set<Emit>(), capabilities: new Set<Capability>() };
    expect(() => resolveFeatures('Plain', { capabilities: ['memory', 'contacts'] }, none)).toThrow(
      new BandConfigError('Plain does not support capability/-ies: contacts, memory. Supported: (none)'),
    );
  });

  it('R-152 the first option that is no feature is named', () => {
    expect(() => resolve({ emit: [], model: 'x', temperature: 1 } as FeatureOptions)).toThrow(
      new TypeError("SimpleAdapter._resolve_features() got an unexpected keyword argument 'model'"),
    );
  });

  it('filters are kept as sets, null where none was given', () => {
    expect(resolve({ includeTools: ['a', 'a'], excludeTools: [] })).toMatchObject({
      includeTools: new Set(['a']),
      excludeTools: new Set(),
      includeCategories: null,
    });
    expect(Object.isFrozen(resolve({}))).toBe(true);
  });
});
