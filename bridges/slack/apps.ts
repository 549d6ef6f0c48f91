import { ValueError } from '../../src/base/band-errors.js';
import type { SlackOptions } from './settings.js';

export type SlackTransport = 'http' | 'socket';

/** One Slack app: one bot user, with its own route, secret and tokens. */
export interface SlackAppConfig {
  readonly slug: string;
  readonly botToken: string;
  /** Any of them; empty for an app that only uses the socket. */
  readonly signingSecrets: readonly string[];
  readonly appToken: string | null;
  readonly transport: SlackTransport;
  readonly persona: { readonly name: string; readonly icon: string | null } | null;
  readonly surface: 'agent' | 'assistant' | 'none' | null;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

type AppOptions = NonNullable<SlackOptions['apps']>[number];

/**
 * The apps of the settings, complete for their transport.
 *
 * @param usual - transport where the settings name none and the tokens leave a choice
 * @throws {ValueError} no app, two of one slug, an unknown transport, or an app that lacks what its transport needs;
 *   the message names the fields and every offending slug
 */
export function resolveApps(options: SlackOptions, usual: SlackTransport = 'http'): readonly SlackAppConfig[] {
  const given = options.apps ?? singleApp(options);
  if (given.length === 0) throw new ValueError('at least one SlackApp is required');
  const slugs = given.map(({ slug }) => slug);
  const twice = slugs.find((slug, index) => slugs.indexOf(slug) !== index);
  if (twice !== undefined) throw new ValueError(`Duplicate SlackApp slug: ${twice}`);

  const transport = transportOf(options.transport, given, usual);
  const apps = given.map((one) => toConfig(one, one.transport ?? transport, options));
  requireTokens(apps, 'http', 'signing_secret and bot_token', (app) => app.signingSecrets.length > 0);
  requireTokens(apps, 'socket', 'app_token and bot_token', (app) => app.appToken !== null);
  return apps;
}

/** The app whose fields stand directly in the group. */
function singleApp(options: SlackOptions): readonly AppOptions[] {
  const { slug, botToken, signingSecret, appToken } = options;
  if (botToken === undefined && signingSecret === undefined && appToken === undefined) return [];
  return [{ slug, botToken: botToken ?? '', signingSecret, appToken }];
}

function transportOf(named: string | undefined, apps: readonly AppOptions[], usual: SlackTransport): SlackTransport {
  if (named === 'http' || named === 'socket') return named;
  if (named !== undefined) throw new ValueError(`Unknown transport: ${named}; use http or socket`);
  const socketOnly = apps.every((app) => app.appToken !== undefined && app.signingSecret === undefined);
  return socketOnly ? 'socket' : usual;
}

function toConfig(app: AppOptions, transport: SlackTransport, options: SlackOptions): SlackAppConfig {
  return {
    slug: app.slug,
    botToken: app.botToken,
    signingSecrets: [app.signingSecret ?? []].flat(),
    appToken: app.appToken ?? null,
    transport,
    persona: app.persona ? { name: app.persona.name, icon: app.persona.icon ?? null } : null,
    surface: app.surface ?? null,
    allow: app.allow ?? options.allow,
    deny: [...options.deny, ...(app.deny ?? [])],
  };
}

function requireTokens(
  apps: readonly SlackAppConfig[],
  transport: SlackTransport,
  fields: string,
  complete: (app: SlackAppConfig) => boolean,
): void {
  const lacking = apps.filter((app) => app.transport === transport && !(complete(app) && app.botToken !== ''));
  if (lacking.length === 0) return;
  throw new ValueError(
    `transport ${transport} needs ${fields} for every app; missing for: ${lacking.map(({ slug }) => slug).join(', ')}`,
  );
}
