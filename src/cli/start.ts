import { systemClock } from '../base/clock.js';
import { GatewayError } from '../base/errors.js';
import { createRedactor } from '../base/redact.js';
import type { AgentEntry, Config } from '../config/load.js';
import { createGateway, type Gateway } from '../gateway/create-gateway.js';
import { DEMO_GATEWAY } from '../gateway/demo-gateway.js';
import { startDemo, type Demo } from '../gateway/demo.js';
import { createServicePorts } from '../gateway/service-ports.js';
import { DEMO } from '../sandbox/seed.js';
import type { Command } from './command.js';
import { runUntilSignal } from './run-until-signal.js';
import { createServiceLog } from './service-log.js';
import { loadFromArgs, settingsHelp, CONFIG_FLAG } from './settings-args.js';
import { startFailure } from './start-failure.js';
import { packageVersion } from './version.js';

/** Time for everything but running turns to end. */
const STOP_SLACK_MS = 8_000;

/** `start`: every configured Agent, or, with nothing configured, a sandbox with a gateway in front of it. */
export const startCommand: Command = {
  usage: 'start [--config FILE] [flags]',
  summary: 'Run every configured agent. With neither a file nor BAND_AGENT_ID: sandbox mode.',
  async run(args, world, bridges) {
    const loaded = await loadFromArgs({ command: 'start', args, world, bridges, defaultAgent: DEMO_GATEWAY });
    if (loaded.kind === 'refused') return loaded.exitCode;
    const { config } = loaded;
    const redactor = createRedactor(config.secrets);
    const sandboxed = config.mode === 'default';
    const log = createServiceLog(sandboxed ? quietUnlessAsked(config) : config.service, redactor);
    world.onCrash((kind, error) => {
      log.fatal(
        { err: error },
        kind === 'rejection' ? 'a failure that nobody waited for' : 'unexpected failure: ending',
      );
      if (kind === 'exception') world.exit(1);
    });
    const clock = systemClock;
    const { sandbox: sandboxOptions, shutdown } = config.service;

    let demo: Demo | null = null;
    let gateway: Gateway | null = null;
    try {
      if (sandboxed) {
        const { host, port, data } = sandboxOptions;
        demo = await startDemo({ host, port, dataDir: data ?? null }, { clock, log });
      }
      const settled = demo ? withSandbox(config, demo) : config;
      const ports = createServicePorts(settled.service, { clock, log, redactor, version: packageVersion() });
      gateway = createGateway(settled, bridges, ports);
      await gateway.start();
    } catch (error) {
      await demo?.stop();
      if (!(error instanceof GatewayError)) log.fatal({ err: error }, 'could not start');
      return startFailure(world, 'start', error, sandboxOptions.port);
    }
    const running = gateway;
    const stop = async (): Promise<void> => {
      await running.stop();
      await demo?.stop();
    };
    const deadlineMs = shutdown.delayMs + shutdown.timeoutSeconds * 1_000 + STOP_SLACK_MS;
    const reload = async (): Promise<void> => {
      const next = await loaded.reread();
      if (next.mode !== 'file') throw new GatewayError('CONFIG_INVALID', { message: 'The settings file is gone.' });
      for (const secret of next.secrets) redactor.add(secret);
      const { taken, restart } = await running.reload(next);
      log.info({ taken }, 'the settings were read again');
      if (restart.length > 0) log.warn({ restart }, 'some changed settings want a restart');
    };
    // A terminal that closes says so by the same signal, and then it is time to go.
    const mayReload = !world.isTerminal && config.mode === 'file';
    // Before the greeting: whoever reads it may send a signal at once.
    const ended = runUntilSignal({ world, log, stop, deadlineMs, ...(mayReload && { reload }) });
    if (demo) await Promise.all(running.agents.map((hosted) => hosted.settled));
    world.out(demo ? sandboxGreeting(demo, running) : greeting(config, running));
    return await ended;
  },
  async help(bridges) {
    const own = `  --${CONFIG_FLAG.name} ${CONFIG_FLAG.value ?? ''}\n      ${CONFIG_FLAG.help}`;
    return `\n${own}\n${await settingsHelp(bridges)}`;
  },
};

/** In sandbox mode the terminal is for the person who tries it out, unless they ask for the log. */
function quietUnlessAsked(config: Config): Config['service'] {
  const asked = config.settled.some(({ key, origin }) => key === 'log_level' && origin.kind !== 'default');
  return asked ? config.service : { ...config.service, logLevel: 'warn' };
}

function withSandbox(config: Config, { sandbox }: Demo): Config {
  const platform = { restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl };
  const agents = isLoopback(config.service.http.host) ? config.agents : config.agents.map(openToAll);
  return { ...config, agents, service: { ...config.service, platform, store: 'memory' } };
}

/**
 * In a container the server is bound to all addresses, and who reaches it is decided outside. Behind it is a sandbox
 * with made-up people, so it answers whoever gets there.
 */
function openToAll(entry: AgentEntry): AgentEntry {
  const a2a = entry.groups['a2a'] as { readonly auth?: { readonly anonymous?: string } };
  if (a2a.auth?.anonymous !== 'loopback') return entry;
  return { ...entry, groups: { ...entry.groups, a2a: { ...a2a, auth: { ...a2a.auth, anonymous: 'always' } } } };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

function sandboxGreeting({ sandbox }: Demo, { http }: Gateway): string {
  const url = http.localUrl;
  const console = sandbox.restUrl.replace('//0.0.0.0:', '//127.0.0.1:');
  const message = `{"messageId":"'$(date +%s%N)'","role":"ROLE_USER","parts":[{"text":"hello"}]}`;
  const body = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${message}}}`;
  return [
    `Sandbox mode: sandbox at ${console} with the agents demo/echo and demo/dice; gateway at ${url} in front of them.`,
    '',
    'Ask an agent something through a room (A2A):',
    '',
    `  curl -s ${url}/agents/echo -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '${body}'`,
    '',
    `Watch the room fill:  ${console}/  (key, where it asks for one: ${DEMO.user.apiKey})`,
    `Status of the gateway: ${url}/`,
    '',
    'Nothing leaves this machine, and nothing is kept. Ctrl+C ends it.',
    '',
  ].join('\n');
}

function greeting(config: Config, { http }: Gateway): string {
  const agents = config.agents.map(({ name, options }) => `${name} (${options.bridge})`).join(', ');
  const source = config.file ?? 'environment and flags';
  return [
    `Gateway at ${http.localUrl} for ${agents}; platform ${config.service.platform.restUrl}; settings from ${source}.`,
    '',
  ].join('\n');
}
