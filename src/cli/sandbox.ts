import path from 'node:path';
import { systemClock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import { createRedactor } from '../base/redact.js';
import { namedSettings, withoutPrefix } from '../config/names.js';
import { flagHelp } from '../config/describe.js';
import { loadConfig, readDotenv } from '../config/load.js';
import { ConfigError } from '../config/problems.js';
import { serviceSettings } from '../config/settings.js';
import { createConsole } from '../sandbox/console/index.js';
import { startSandbox } from '../sandbox/index.js';
import { parseArgs, type CommandFlag } from './args.js';
import { wrongUse, type Command } from './command.js';
import { runUntilSignal } from './run-until-signal.js';
import { DEMO_WORLD, readKnownSeed, seedProblem } from './sandbox-seed.js';
import { createServiceLog } from './service-log.js';
import { startFailure } from './start-failure.js';

const SETTINGS = withoutPrefix(namedSettings(serviceSettings.tree), 'sandbox').filter(({ path }) =>
  ['sandbox', 'log_level', 'log_file'].includes(path[0] ?? ''),
);

const SEED_FLAG: CommandFlag = {
  name: 'seed',
  value: 'FILE',
  help: 'YAML or JSON with the users and agents to begin with instead of the demo; a folder with rooms in it keeps its own.',
};

const STOP_DEADLINE_MS = 5_000;

/** `sandbox`: the embedded platform alone, for developing an agent or an adapter against. */
export const sandboxCommand: Command = {
  usage: 'sandbox [--host 127.0.0.1] [--port 4000] [--data DIR] [--seed FILE]',
  summary: 'Run the embedded platform alone: REST, socket and a console, with nobody connected yet.',
  async run(args, world) {
    const { settings, problems, positionals, own } = parseArgs(args, { settings: SETTINGS, own: [SEED_FLAG] });
    const wrong = [...problems, ...positionals.map((word) => `${word} is one word too many`)];
    if (wrong.length > 0) return wrongUse(world, 'sandbox', wrong);
    let service;
    try {
      ({ service } = await loadConfig({
        env: onlyKnown(world.env),
        dotenv: onlyKnown(readDotenv(world.cwd)),
        cwd: world.cwd,
        // It is about agents, which this command does not run.
        file: false,
        flags: settings,
        bridgeNames: [],
        bridgeGroups: () => Promise.resolve([]),
      }));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      world.err(`${error.message}\n`);
      return 2;
    }
    const log = createServiceLog(service, createRedactor());
    const { host, port, data } = service.sandbox;
    let sandbox;
    let known = DEMO_WORLD;
    try {
      if (typeof own['seed'] === 'string') known = await readKnownSeed(path.resolve(world.cwd, own['seed']));
      sandbox = await startSandbox({
        host,
        port,
        dataDir: data ?? null,
        clock: systemClock,
        log,
        seed: known.seed,
        extraRoutes: createConsole(known.consoleKey === null ? {} : { apiKey: known.consoleKey }),
      });
    } catch (error) {
      if (isGatewayError(error, 'SANDBOX_REFUSED')) return wrongUse(world, 'sandbox', [seedProblem(error)]);
      return startFailure(world, 'sandbox', error, port);
    }
    const running = sandbox;
    // Before the greeting: whoever reads it may send a signal at once.
    const ended = runUntilSignal({ world, log, stop: () => running.close(), deadlineMs: STOP_DEADLINE_MS });
    world.out(
      [
        `Sandbox at ${running.restUrl} (console: ${running.restUrl}/), ${data === undefined ? 'nothing is kept' : `kept in ${data}`}.`,
        '',
        `  BAND_REST_URL=${running.restUrl}`,
        `  BAND_WS_URL=${running.wsUrl}`,
        '',
        ...known.lines(running.dev.state()),
        '',
      ].join('\n'),
    );
    return await ended;
  },
  help: () => {
    const seed = `  --${SEED_FLAG.name} ${SEED_FLAG.value ?? ''}\n      ${SEED_FLAG.help}`;
    return Promise.resolve(`\n${seed}\n${flagHelp(SETTINGS).join('\n')}`);
  },
};

/** The variables that this command reads; what else is set belongs to agents. */
function onlyKnown(env: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const names = SETTINGS.flatMap(({ env: name, setting }) => [name, ...setting.aliases]);
  return Object.fromEntries(names.map((name) => [name, env[name]]));
}
