import type { Dispatcher } from 'undici';
import { backoffMs } from '../../src/base/backoff.js';
import type { Clock } from '../../src/base/clock.js';
import { isGatewayError, type GatewayError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { SlackAppConfig } from './apps.js';
import { createSlackClient, type SlackClient } from './client.js';
import { SlackDirectory } from './directory.js';
import { judgeFault } from './errors.js';
import { createGuardedClient } from './guarded-client.js';
import { createThrottledClient } from './outbound/throttled-client.js';
import { authTest, type SlackIdentity } from './web-methods.js';

export interface InstallationsDeps {
  readonly slackApiUrl: string | undefined;
  readonly dispatcher: Dispatcher | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly random: () => number;
  /** Scopes that the configuration needs, each with the feature that is off without it. */
  readonly neededScopes: (app: SlackAppConfig) => ReadonlyMap<string, string>;
  /** Slack said who the bot is: its token works, or works again. */
  readonly onKnown: (installation: Installation, identity: SlackIdentity) => void;
  /** Slack refuses the token: what is to be sent waits. */
  readonly onRefused?: (installation: Installation, error: GatewayError) => void;
}

const IDENTITY_BACKOFF = { baseMs: 1_000, maxMs: 60_000 } as const;

/** One app in one workspace: its client, its names, and who its bot is. */
export class Installation {
  readonly app: SlackAppConfig;
  readonly client: SlackClient;
  readonly directory: SlackDirectory;
  readonly #deps: InstallationsDeps;
  readonly #stopping = new AbortController();
  #identity: SlackIdentity | null = null;
  #refused: GatewayError | null = null;
  #since: number;
  #resolving: Promise<void> | null = null;

  constructor(app: SlackAppConfig, deps: InstallationsDeps) {
    const { clock, log, metrics, random, slackApiUrl, dispatcher } = deps;
    this.app = app;
    this.#deps = deps;
    this.#since = clock.now();
    const warned = new Set<string>();
    const client = createSlackClient({
      token: app.botToken,
      slackApiUrl,
      dispatcher,
      clock,
      metrics,
      onWarning: (method, warning) => {
        if (warned.has(warning)) return;
        warned.add(warning);
        log.warn({ app: app.slug, method, warning }, 'Slack answered with a warning');
      },
    });
    this.client = createGuardedClient(createThrottledClient(client, { clock, metrics, random }), {
      slug: app.slug,
      clock,
      log,
      onRefused: (error) => {
        this.#deps.onRefused?.(this, error);
      },
    });
    this.directory = new SlackDirectory(this.client, clock, log);
  }

  /** Who the bot is; null until Slack has said so. A failure is never taken for an answer (S-015). */
  get identity(): SlackIdentity | null {
    return this.#identity;
  }

  /** Why Slack refuses the token, until it is exchanged; null while it is good or not known. */
  get refused(): GatewayError | null {
    return this.#refused;
  }

  get since(): number {
    return this.#since;
  }

  /** Asks Slack who the bot is, again and again until it says so or refuses the token. */
  start(): void {
    this.#resolving ??= this.#resolve();
  }

  /** The token was refused, revoked or the app uninstalled: what is to be sent waits until it is reinstalled. */
  park(error: GatewayError): void {
    if (this.#refused) return;
    this.#refused = error;
    this.#since = this.#deps.clock.now();
    this.#deps.log.error({ err: error, app: this.app.slug }, 'Slack refuses this app: its work is kept and waits');
    this.#deps.onRefused?.(this, error);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('stopped'));
    await this.#resolving;
    this.client.close();
  }

  async #resolve(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#stopping;
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        this.#identity = await authTest(this.client, { signal });
        this.#refused = null;
        this.#since = clock.now();
        this.#compareScopes(this.#identity);
        this.#deps.onKnown(this, this.#identity);
        log.info({ app: this.app.slug, team: this.#identity.teamId }, 'Slack knows this app');
        return;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (isGatewayError(error) && isRefusal(error)) this.park(error);
        else log.warn({ err: error, app: this.app.slug }, 'Slack did not say who the bot is');
        await clock.sleep(backoffMs(tries, IDENTITY_BACKOFF), signal).catch(() => undefined); // stopped: the loop ends
      }
    }
  }

  #compareScopes({ scopes }: SlackIdentity): void {
    if (!scopes) return;
    for (const [scope, feature] of this.#deps.neededScopes(this.app)) {
      if (scopes.includes(scope)) continue;
      this.#deps.log.warn({ app: this.app.slug, scope, feature }, 'the app lacks a scope: a feature is off');
    }
  }
}

/** Slack will not take this token, or not take it here, however often it is asked. */
function isRefusal(error: GatewayError): boolean {
  const { fault } = judgeFault(error, 'auth.test');
  return (
    fault.kind === 'refresh' || (fault.kind === 'park' && (fault.what === 'installation' || fault.what === 'team'))
  );
}
