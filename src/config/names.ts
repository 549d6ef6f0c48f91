import { isSetting, type Setting, type SettingTree } from './setting.js';

/** One setting with the names it goes by. */
export interface NamedSetting {
  readonly setting: Setting;
  /** Where it stands, e.g. `['slack', 'bot_token']`; in the file joined by dots. */
  readonly path: readonly string[];
  /** Environment name, e.g. `SLACK_BOT_TOKEN`; a secret also goes by this name with `_FILE`. */
  readonly env: string;
  /** Flag without dashes, e.g. `slack-bot-token`; a secret also goes by this flag with `-file`. */
  readonly flag: string;
}

/**
 * Every setting of a tree under its names, in the order of the declarations.
 *
 * @param prefix - where the tree stands: `[]` at the top of the file, `['slack']` for a bridge's group
 */
export function namedSettings(tree: SettingTree, prefix: readonly string[] = []): NamedSetting[] {
  return Object.entries(tree).flatMap(([key, node]) => {
    const path = [...prefix, key];
    if (!isSetting(node)) return namedSettings(node, path);
    const env = node.env ?? path.join('_').toUpperCase();
    const flag = node.flag ?? path.join('-').replaceAll('_', '-');
    return [{ setting: node, path, env, flag }];
  });
}

/** The same settings for a command that is named like their group: `--port` for `sandbox.port`. */
export function withoutPrefix(settings: readonly NamedSetting[], group: string): NamedSetting[] {
  return settings.map((one) =>
    one.path[0] === group ? { ...one, flag: one.flag.replace(new RegExp(`^${group}-`), '') } : one,
  );
}
