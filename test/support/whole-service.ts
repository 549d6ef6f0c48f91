import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { createLogger } from '../../src/base/log.js';
import { createRedactor } from '../../src/base/redact.js';
import { loadConfig } from '../../src/config/load.js';
import { loadedOnUse, loadedOnUseWith, type BridgeTable } from '../../src/gateway/bridge-table.js';
import { createGateway, type Gateway } from '../../src/gateway/create-gateway.js';
import type { GatewayReport } from '../../src/gateway/report.js';
import { createServicePorts } from '../../src/gateway/service-ports.js';
import { DEMO, type Sandbox } from '../../src/sandbox/index.js';
import type { Acme } from './slack/acme.js';

export const PARTNER_KEY = 'partner-key-0123456789';

/** The bridges as the program has them. */
const bridges: BridgeTable = {
  slack: loadedOnUseWith(
    async () => ({
      slack: (await import('../../bridges/slack/settings.js')).slackSettings,
      relay: (await import('../../src/adapters/relay-settings.js')).relaySettings,
    }),
    async () => (await import('../../bridges/slack/index.js')).slackBridge,
  ),
  a2a: loadedOnUse(
    async () => (await import('../../bridges/a2a/settings.js')).a2aSettings,
    async () => (await import('../../bridges/a2a/index.js')).a2aBridge,
  ),
  acp: loadedOnUse(
    async () => (await import('../../bridges/acp/settings.js')).acpSettings,
    async () => (await import('../../bridges/acp/index.js')).acpBridge,
  ),
};

export interface LogLine {
  readonly level: number;
  readonly msg?: string;
  readonly [field: string]: unknown;
}

/** The whole service in this process, as `start` puts it together from a settings file. */
export interface RunningService {
  readonly gateway: Gateway;
  readonly url: string;
  readonly port: number;
  /** Lines of the log so far. */
  readonly log: readonly LogLine[];
  readonly readiness: () => Promise<Readiness>;
  /** Asks until the answer is as wanted. */
  readonly untilReadiness: (fits: (answer: Readiness) => boolean, limitMs?: number) => Promise<Readiness>;
  readonly ready: (limitMs?: number) => Promise<void>;
  readonly report: () => Promise<GatewayReport>;
  readonly stop: () => Promise<void>;
}

export interface Readiness {
  readonly status: number;
  readonly blockers: readonly { readonly name: string; readonly message: string; readonly action: string }[];
}

export interface ServiceSettings {
  readonly folder: string;
  /** Default `<folder>/data`. */
  readonly dataDir?: string;
  readonly sandbox: Pick<Sandbox, 'restUrl' | 'wsUrl'>;
  /** Lines at the top of the file. */
  readonly top?: string;
  /** Entries under `agents`; see {@link frontDoor} and {@link helpdesk}. */
  readonly agents: readonly string[];
  readonly clock?: Clock;
}

/** Starts and does not wait until it is ready. */
export async function openService(settings: ServiceSettings): Promise<RunningService> {
  const { folder, sandbox, clock = systemClock, top = 'http: { port: 0 }' } = settings;
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    path.join(folder, 'gateway.yaml'),
    `platform: { rest_url: ${sandbox.restUrl}, ws_url: ${sandbox.wsUrl} }
data_dir: ${settings.dataDir ?? path.join(folder, 'data')}
shutdown: { timeout_seconds: 2 }
${top}
agents:
${settings.agents.join('\n')}
`,
  );
  const config = await loadConfig({
    env: {},
    cwd: folder,
    bridgeNames: Object.keys(bridges),
    bridgeGroups: async (name) => (await bridges[name]?.settings()) ?? [],
  });
  const redactor = createRedactor(config.secrets);
  const log: LogLine[] = [];
  const logger = createLogger({
    redactor,
    destination: { write: (line) => void log.push(JSON.parse(line) as LogLine) },
  });
  const ports = createServicePorts(config.service, { clock, log: logger, redactor, version: '0.0.0' });
  const gateway = createGateway(config, bridges, ports);
  await gateway.start();
  const url = gateway.http.localUrl;

  const readiness = async (): Promise<Readiness> => {
    const answer = await fetch(`${url}/readyz`);
    return { ...((await answer.json()) as Omit<Readiness, 'status'>), status: answer.status };
  };
  const untilReadiness = async (fits: (answer: Readiness) => boolean, limitMs = 20_000): Promise<Readiness> => {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const answer = await readiness();
      if (fits(answer)) return answer;
      if (Date.now() > deadline) throw new Error(`readiness is still ${JSON.stringify(answer)}`);
      await pause(25);
    }
  };
  let stopped: Promise<void> | null = null;
  return {
    gateway,
    url,
    port: gateway.http.port ?? 0,
    log,
    readiness,
    untilReadiness,
    ready: async (limitMs) => {
      await untilReadiness(({ status }) => status === 200, limitMs);
    },
    report: async () =>
      (await (await fetch(`${url}/`, { headers: { accept: 'application/json' } })).json()) as GatewayReport,
    stop: () => (stopped ??= gateway.stop()),
  };
}

/** An A2A entry for `demo/gateway`, open to the partner's key, without rate limits. */
export const frontDoor = (more = ''): string => `  front-door:
    agent_id: ${DEMO.gateway.id}
    api_key: ${DEMO.gateway.apiKey}
    bridge: a2a
    single_instance: false
    a2a:
      auth: { api_keys: [{ name: partner, key: ${PARTNER_KEY} }] }
      limits: { rate_per_min: 0, ip_rate_per_min: 0 }
${more}`;

/** A Slack entry for `demo/helpdesk` with `demo/echo` behind it. */
export const helpdesk = ({ slack, app, botToken }: Acme, more = ''): string => `  helpdesk:
    agent_id: ${DEMO.helpdesk.id}
    api_key: ${DEMO.helpdesk.apiKey}
    bridge: slack
    single_instance: false
    relay: { peer: demo/echo }
    slack:
      bot_token: ${botToken}
      ${app.socketMode ? `app_token: ${app.appToken}` : `signing_secret: ${app.signingSecret}\n      transport: http`}
      slack_api_url: ${slack.apiUrl}
${more}`;

/** Where Slack sends its events when the service serves them by HTTP. */
export function pointSlackAt({ app }: Acme, url: string): void {
  const door = `${url}/slack/main`;
  app.urls = { events: `${door}/events`, interactions: `${door}/interactions`, commands: `${door}/commands` };
}

/** Looks until something holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 20_000): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await pause(25);
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
