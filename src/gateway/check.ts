import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { request, type Dispatcher } from 'undici';
import { z } from 'zod';
import type { Clock } from '../base/clock.js';
import { childSignal } from '../base/async.js';
import { toError } from '../base/errors.js';
import type { AgentEntry, Config } from '../config/load.js';
import { resolvePlatformUrls } from '../config/platform-urls.js';
import type { Finding } from '../core/bridge.js';
import type { BridgeTable } from './bridge-table.js';
import { askControlSocket } from './control-socket.js';

export interface CheckPorts {
  readonly clock: Clock;
  /** The working folder, where `.env` and `agent_config.yaml` may lie. */
  readonly cwd: string;
  readonly dispatcher?: Dispatcher;
}

/** Longest wait for one answer from outside. */
const CALL_TIMEOUT_MS = 8_000;
/** Slack refuses requests that are signed five minutes off. */
const SKEW_ERROR_MS = 300_000;
const SKEW_WARNING_MS = 30_000;

/**
 * Looks at everything a start depends on, without starting and without changing anything outside: data directory,
 * port, platform, each agent's credentials, and what each bridge says about itself.
 */
export async function checkConfig(
  config: Config,
  bridges: BridgeTable,
  ports: CheckPorts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { service } = config;
  const running = await isRunning(service.dataDir);
  const here = [
    settingsFinding(config),
    running
      ? ok('data directory', `${service.dataDir} is in use by a running gateway`)
      : dataDirFinding(service.dataDir, service.store),
    ...secretFileFindings(config, ports.cwd),
    running
      ? ok('port', `${service.http.port} is the running gateway's`)
      : await portFinding(service.http.host, service.http.port),
  ];
  // In sandbox mode there is nothing outside to look at.
  if (config.mode === 'default')
    return [...here, await portFinding(service.sandbox.host, service.sandbox.port, 'sandbox port')];
  const outside = await Promise.all([
    socketFinding(service.platform.wsUrl, ports, signal),
    ...config.agents.map((entry) => agentFindings(entry, config, bridges, ports, signal)),
  ]);
  return [...here, ...addressFindings(config), ...outside.flat()];
}

async function isRunning(dataDir: string): Promise<boolean> {
  return askControlSocket(dataDir, { verb: 'dead.list', limit: 1 }).then(
    () => true,
    () => false,
  );
}

function settingsFinding({ file, agents, mode }: Config): Finding {
  const source = file ?? (mode === 'environment' ? 'environment and flags' : 'none: sandbox mode');
  return ok('settings', `${source}; agents: ${agents.map(({ name }) => name).join(', ')}`);
}

function dataDirFinding(dataDir: string, kind: 'leveldb' | 'memory'): Finding {
  const subject = 'data directory';
  if (kind === 'memory') {
    return warning(subject, 'store is memory: everything accepted is forgotten at exit', 'Leave store at leveldb.');
  }
  const full = path.resolve(dataDir);
  const mend = 'Make the folder writable for this user, or set data_dir to one that is.';
  try {
    if (!existsSync(full)) {
      const parent = nearestExisting(full);
      if (!statSync(parent).isDirectory()) return problem(subject, `${parent} is no folder`, mend);
      accessSync(parent, constants.W_OK);
      return ok(subject, `${full} will be made`);
    }
    accessSync(full, constants.R_OK | constants.W_OK);
    const { mode } = statSync(full);
    if (process.platform !== 'win32' && (mode & 0o007) !== 0) {
      return warning(subject, `${full} is open to every user of this machine`, `chmod o-rwx ${full}`);
    }
    return ok(subject, full);
  } catch (error) {
    return problem(subject, `${full} cannot be written (${codeOf(error)})`, mend);
  }
}

/** Files that hold secrets: by their nature, because a setting names them, or because a secret stands in them. */
function secretFileFindings({ file, secrets, secretFiles }: Config, cwd: string): Finding[] {
  if (process.platform === 'win32') return [];
  const settings = file === null ? null : path.resolve(cwd, file);
  const beside = settings === null ? cwd : path.dirname(settings);
  const files = new Set([path.join(cwd, '.env'), path.join(beside, 'agent_config.yaml'), ...secretFiles]);
  if (settings !== null && holdsAny(settings, secrets)) files.add(settings);
  return [...files].flatMap((full) => {
    const found = statSync(full, { throwIfNoEntry: false });
    if (!found) return [];
    if ((found.mode & 0o007) !== 0) {
      return [warning('secrets', `${full} may be read by every user of this machine`, `chmod go-rwx ${full}`)];
    }
    // A file that somebody else owns is open to a group on purpose: it is how this user may read it.
    if ((found.mode & 0o070) === 0 || found.uid !== process.getuid?.()) return [];
    return [warning('secrets', `${full} may be read by the group of its owner`, `chmod go-rwx ${full}`)];
  });
}

function holdsAny(full: string, secrets: readonly string[]): boolean {
  try {
    const text = readFileSync(full, 'utf8');
    return secrets.some((secret) => text.includes(secret));
  } catch {
    return false; // It was there a moment ago; whatever it holds now, it was read.
  }
}

async function portFinding(host: string, port: number, subject = 'port'): Promise<Finding> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
    return ok(subject, port === 0 ? 'any free one' : `${port} on ${host} is free`);
  } catch (error) {
    return problem(subject, `${port} on ${host}: ${codeOf(error)}`, 'Stop what uses it, or choose another.');
  } finally {
    server.close();
  }
}

function addressFindings({ service, settled }: Config): Finding[] {
  const findings: Finding[] = [];
  const given = (key: string, value: string) =>
    settled.some((one) => one.key === key && one.origin.kind !== 'default') ? value : null;
  const { warning: urls } = resolvePlatformUrls(
    {
      restUrl: given('platform.rest_url', service.platform.restUrl),
      wsUrl: given('platform.ws_url', service.platform.wsUrl),
    },
    {},
  );
  if (urls !== null) findings.push(warning('platform addresses', urls, 'Set both addresses, or neither.'));
  const { host, publicUrl } = service.http;
  const loopback = /^(127\.|localhost$|::1$)/.test(host);
  if (publicUrl === undefined && !loopback) {
    const message = 'http.public_url is not set, so cards and links name this machine as localhost';
    findings.push(warning('public address', message, 'Set http.public_url to the address people outside use.'));
  }
  return findings;
}

/** An ordinary request to the socket's address: whatever answers shows that the way there is open. */
async function socketFinding(wsUrl: string, ports: CheckPorts, signal: AbortSignal): Promise<Finding> {
  const url = new URL(wsUrl);
  url.protocol = url.protocol === 'wss:' ? 'https:' : 'http:';
  try {
    await call(url, {}, ports, signal);
    return ok('platform socket', `${wsUrl} answers`);
  } catch (error) {
    return problem('platform socket', `${wsUrl}: ${codeOf(error)}`, NETWORK_MEND);
  }
}

const NETWORK_MEND = 'Look at the address, DNS, the firewall and HTTPS_PROXY.';

const meSchema = z.object({ data: z.object({ name: z.string(), description: z.string().nullish() }) });

async function agentFindings(
  entry: AgentEntry,
  { service }: Config,
  bridges: BridgeTable,
  ports: CheckPorts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const subject = `${entry.name}: platform`;
  const url = new URL(`${service.platform.restUrl.replace(/\/+$/, '')}/api/v1/agent/me`);
  const findings: Finding[] = [];
  try {
    const { statusCode, date, body } = await call(url, { 'x-api-key': entry.options.apiKey }, ports, signal);
    findings.push(identityFinding(subject, statusCode, body), ...clockFindings(date, ports.clock));
  } catch (error) {
    findings.push(problem(subject, `${url.origin} cannot be reached: ${codeOf(error)}`, NETWORK_MEND));
  }
  try {
    findings.push(...((await bridges[entry.options.bridge]?.check(entry, ports, signal)) ?? []));
  } catch (error) {
    findings.push(problem(`${entry.name}: ${entry.options.bridge}`, toError(error).message, 'Mend the settings.'));
  }
  return findings;
}

function identityFinding(subject: string, statusCode: number, body: unknown): Finding {
  if (statusCode === 401 || statusCode === 403) {
    return problem(
      subject,
      `refuses the credentials (${statusCode})`,
      "Look at agent_id and api_key; the key must be this agent's own.",
    );
  }
  const me = meSchema.safeParse(body);
  if (statusCode !== 200 || !me.success) {
    return problem(subject, `answers ${statusCode} to who am I`, 'Look at platform.rest_url: is it a Band platform?');
  }
  const { name, description } = me.data.data;
  if (!description)
    return problem(subject, `${name} has no description`, 'Give the agent a description at the platform.');
  return ok(subject, `knows the agent as ${name}`);
}

function clockFindings(date: string | null, clock: Clock): Finding[] {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return [];
  const skew = Math.abs(clock.now() - theirs);
  if (skew < SKEW_WARNING_MS) return [];
  const message = `this machine's clock is ${Math.round(skew / 1_000)} s off the platform's`;
  const mend = 'Let the machine keep its time by NTP.';
  return [skew < SKEW_ERROR_MS ? warning('clock', message, mend) : problem('clock', message, mend)];
}

async function call(
  url: URL,
  headers: Record<string, string>,
  { dispatcher, clock }: CheckPorts,
  signal: AbortSignal,
): Promise<{ statusCode: number; date: string | null; body: unknown }> {
  using child = childSignal(signal);
  const cancel = clock.after(CALL_TIMEOUT_MS, () => {
    child.abort(new Error('no answer in time'));
  });
  try {
    const answer = await request(url, { headers, signal: child.signal, ...(dispatcher && { dispatcher }) });
    const text = await answer.body.text();
    const { date } = answer.headers;
    return { statusCode: answer.statusCode, date: typeof date === 'string' ? date : null, body: jsonOf(text) };
  } finally {
    cancel();
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // Whatever it is, it is not what was asked for; the status says more.
  }
}

function nearestExisting(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(parent) || parent === folder ? parent : nearestExisting(parent);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? toError(error).message;
}

function ok(subject: string, message: string): Finding {
  return { level: 'ok', subject, message };
}

function warning(subject: string, message: string, mend: string): Finding {
  return { level: 'warning', subject, message, mend };
}

function problem(subject: string, message: string, mend: string): Finding {
  return { level: 'error', subject, message, mend };
}
