import type { FlagValue } from '../config/collect.js';
import { kindText } from '../config/describe.js';
import type { NamedSetting } from '../config/names.js';
import { nearest } from '../config/nearest.js';

/** A flag of a command that is no setting. */
export interface CommandFlag {
  readonly name: string;
  readonly help: string;
  /** What stands behind it in help texts; absent for a flag without a value. */
  readonly value?: string;
}

export interface ParsedArgs {
  /** Flags that are settings. */
  readonly settings: readonly FlagValue[];
  /** The command's own flags; `true` for one without a value. */
  readonly own: Readonly<Record<string, string | true>>;
  readonly positionals: readonly string[];
  /** Wrong use, a sentence each. */
  readonly problems: readonly string[];
}

/**
 * Reads a command line: `--flag value`, `--flag=value`, `--switch`, `--no-switch`, and `--` before what only looks like
 * a flag. Repeated list flags add up; of other repeated flags the last one counts.
 */
export function parseArgs(
  args: readonly string[],
  known: { readonly settings: readonly NamedSetting[]; readonly own: readonly CommandFlag[] },
): ParsedArgs {
  const settings: FlagValue[] = [];
  const own: Record<string, string | true> = {};
  const positionals: string[] = [];
  const problems: string[] = [];
  const lists = new Map<string, string>();

  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i] ?? '';
    if (arg === '--') {
      positionals.push(...args.slice(i + 1));
      break;
    }
    if (!arg.startsWith('-') || arg === '-') {
      positionals.push(arg);
      continue;
    }
    const equals = arg.indexOf('=');
    const shown = equals === -1 ? arg : arg.slice(0, equals);
    const name = shown.replace(/^--?/, '');
    const given = equals === -1 ? null : arg.slice(equals + 1);
    const takeValue = (): string | null => {
      if (given !== null) return given;
      const next = args[i + 1];
      if (next === undefined || (next.startsWith('--') && next !== '--')) {
        problems.push(`${shown} needs a value`);
        return null;
      }
      i += 1;
      return next;
    };

    const command = known.own.find((flag) => flag.name === name);
    if (command) {
      const value = command.value === undefined ? true : takeValue();
      if (value !== null) own[name] = value;
      continue;
    }
    const found = findSetting(name, known.settings);
    if (!found) {
      const meant = nearest(name, flagNames(known));
      problems.push(`${shown} is not a flag of this command${meant === null ? '' : `; did you mean --${meant}?`}`);
      continue;
    }
    const { setting, form } = found;
    const path = setting.path.join('.');
    if (form === 'no') settings.push({ name: shown, path, value: 'false' });
    else if (kindText(setting.setting.schema) === 'true|false') {
      // A word behind a switch belongs to it only when it is joined by `=`: `--switch FILE` is a switch and a file.
      settings.push({ name: shown, path, value: given ?? 'true' });
    } else {
      const value = takeValue();
      if (value === null) continue;
      const isFile = form === 'file';
      const list = kindText(setting.setting.schema) === 'list' && !isFile;
      const joined = list && lists.has(path) ? `${lists.get(path) ?? ''},${value}` : value;
      if (list) lists.set(path, joined);
      settings.push({ name: shown, path, value: joined, ...(isFile && { isFile }) });
    }
  }
  return { settings, own, positionals, problems };
}

function findSetting(
  name: string,
  settings: readonly NamedSetting[],
): { readonly setting: NamedSetting; readonly form: 'plain' | 'no' | 'file' } | null {
  for (const setting of settings) {
    if (setting.flag === name) return { setting, form: 'plain' };
    if (name === `no-${setting.flag}` && kindText(setting.setting.schema) === 'true|false')
      return { setting, form: 'no' };
    if (name === `${setting.flag}-file` && setting.setting.secret) return { setting, form: 'file' };
  }
  return null;
}

function flagNames(known: {
  readonly settings: readonly NamedSetting[];
  readonly own: readonly CommandFlag[];
}): string[] {
  return [...known.own.map(({ name }) => name), ...known.settings.map(({ flag }) => flag)];
}
