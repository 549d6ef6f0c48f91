import type { SettledValue } from './collect.js';
import { defaultText } from './describe.js';
import { originText } from './problems.js';
import { maskSecrets } from './secret-values.js';

/** Lines of `config print`: every setting, its value and where that came from; secrets are masked. */
export function settledLines(settled: readonly SettledValue[]): string[] {
  const rows = settled.map(({ named, key, value, origin }) => {
    const shown =
      value === undefined ? (defaultText(named.setting) ?? '(none)') : text(maskSecrets(named.setting, value));
    return { left: `${key} = ${shown}`, origin: originText(origin) };
  });
  const width = Math.min(60, Math.max(0, ...rows.map(({ left }) => left.length)));
  return rows.map(({ left, origin }) => `${left.padEnd(width)}  # ${origin}`);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
