/** `max_cycle_seconds` → `maxCycleSeconds`, in types. */
export type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;

/** `max_cycle_seconds` → `maxCycleSeconds`. */
export function camelCase(snake: string): string {
  return snake.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The environment name of a setting: `['slack', 'bot_token']` → `SLACK_BOT_TOKEN`. */
export function envName(path: readonly string[]): string {
  return path.join('_').toUpperCase();
}

/** The flag of a setting, without its dashes: `['slack', 'bot_token']` → `slack-bot-token`. */
export function flagName(path: readonly string[]): string {
  return path.join('-').replaceAll('_', '-');
}
