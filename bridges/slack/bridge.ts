import { RelayAdapter } from '../../src/adapters/relay.js';
import type { RelayOptions } from '../../src/adapters/relay-settings.js';
import { ValueError } from '../../src/base/band-errors.js';
import { isGatewayError } from '../../src/base/errors.js';
import type { BridgeModule, Finding } from '../../src/core/bridge.js';
import { SlackAdapter } from './adapter.js';
import { resolveApps, type SlackAppConfig } from './apps.js';
import { createSlackClient } from './client.js';
import { slackErrorOf } from './errors.js';
import { manifestText, neededScopes, slackManifest } from './manifest.js';
import { createProxy } from './proxy.js';
import type { SlackOptions } from './settings.js';
import { authTest } from './web-methods.js';

/** An entry's own settings, and those of the brain that needs no model. */
export interface SlackEntryOptions {
  readonly slack: SlackOptions;
  readonly relay: RelayOptions;
}

/** The Slack bridge as the service opens it: the relay is its brain, so bot token and app token are enough (S-016). */
export const slackBridge: BridgeModule<SlackEntryOptions> = {
  open({ name, options }, ports) {
    const { clock, log, metrics, store, http, dataDir, dispatcher } = ports;
    const prefix = `slack/${name}`;
    const inner = new RelayAdapter(options.relay, { clock, log, store, prefix: `${prefix}/relay` });
    for (const app of resolveApps(options.slack)) {
      for (const secret of [app.botToken, app.appToken ?? '', ...app.signingSecrets]) ports.redactor.add(secret);
    }
    const adapter = new SlackAdapter(
      { inner, ...options.slack },
      {
        clock,
        log,
        metrics,
        store,
        prefix,
        http,
        ...(dataDir === undefined ? {} : { dataDir }),
        ...(dispatcher === undefined ? {} : { dispatcher }),
      },
    );
    return Promise.resolve({
      adapter,
      report: () => adapter.report(),
      blockers: () => adapter.blockers(),
      deadLetters: adapter.deadLetters,
    });
  },

  async check({ options }, { dispatcher }, signal) {
    const apps = resolveApps(options.slack);
    const checked = await Promise.all(
      apps.map(async (app): Promise<Finding[]> => {
        const { proxy } = options.slack;
        const viaProxy = proxy === undefined ? null : createProxy(proxy);
        const client = createSlackClient({
          token: app.botToken,
          slackApiUrl: options.slack.slackApiUrl,
          dispatcher: viaProxy ?? dispatcher,
        });
        try {
          const { teamName, scopes } = await authTest(client, { signal });
          return [
            {
              level: 'ok',
              subject: `slack.${app.slug}`,
              message: `Slack knows this app in the workspace ${teamName}.`,
            },
            ...missingScopes(app, options.slack, scopes),
          ];
        } catch (error) {
          if (signal.aborted || !isGatewayError(error)) throw error;
          return [
            {
              level: 'error',
              subject: `slack.${app.slug}`,
              message: `${error.message} (${slackErrorOf(error) ?? error.code})`,
              mend: 'Look at the bot token (xoxb-…) under OAuth & Permissions, and reinstall the app if it changed.',
            },
          ];
        } finally {
          client.close();
          await viaProxy?.destroy();
        }
      }),
    );
    return checked.flat();
  },
};

function missingScopes(app: SlackAppConfig, options: SlackOptions, scopes: readonly string[] | null): Finding[] {
  if (!scopes) return [];
  return [...neededScopes(options, app)]
    .filter(([scope]) => !scopes.includes(scope))
    .map(([scope, feature]) => ({
      level: 'warning',
      subject: `slack.${app.slug}`,
      message: `The scope ${scope} is missing: ${feature} does not work.`,
      mend: 'Add it under OAuth & Permissions, or paste the manifest again, then reinstall the app.',
    }));
}

/** The manifest of one app of an entry; before there are tokens, of an app called `main`. */
export function entryManifest(
  options: SlackOptions,
  wanted: { readonly app: string | null; readonly format: 'yaml' | 'json'; readonly publicUrl: string | null },
): { text: string; notes: readonly string[] } {
  const known = knownApps(options);
  const app = wanted.app === null ? known[0] : known.find(({ slug }) => slug === wanted.app);
  if (!app) throw new ValueError(`no Slack app is called ${wanted.app ?? ''}`);
  const made = slackManifest({ options, app, publicUrl: wanted.publicUrl });
  return { text: manifestText(made, wanted.format), notes: wanted.format === 'json' ? made.notes : [] };
}

function knownApps(
  options: SlackOptions,
): readonly Pick<SlackAppConfig, 'slug' | 'transport' | 'persona' | 'surface'>[] {
  const hasTokens = options.apps !== undefined || options.botToken !== undefined;
  if (hasTokens) return resolveApps(options);
  return [
    { slug: options.slug, transport: options.transport === 'http' ? 'http' : 'socket', persona: null, surface: null },
  ];
}
