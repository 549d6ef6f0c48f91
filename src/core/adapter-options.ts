import { camelCase } from '../config/spelling.js';
import type { SettingsGroup } from '../config/setting.js';
import type { FeatureOptions } from './features.js';

/**
 * An adapter's options without its own settings: what its constructor hands to `super()`, which takes features and
 * refuses anything else.
 */
export function optionsBeside(group: SettingsGroup, options: object): FeatureOptions {
  const own = new Set(Object.keys(group.tree).map(camelCase));
  return Object.fromEntries(Object.entries(options).filter(([name]) => !own.has(name)));
}
