import { systemClock } from '../base/clock.js';
import { toError } from '../base/errors.js';
import { createRedactor } from '../base/redact.js';
import { flagHelp } from '../config/describe.js';
import { namedSettings, withoutPrefix, type NamedSetting } from '../config/names.js';
import { ConfigError } from '../config/problems.js';
import { agentSettings, serviceSettings } from '../config/settings.js';
import type { BridgeTable } from '../gateway/bridge-table.js';
import { expandShortFlags, shortFlagHelp } from './acp-flags.js';
import { readAcpSettings, type AcpSettings, type AcpSettingsRequest } from './acp-settings.js';
import { claimStdout, drained } from './acp-stdout.js';
import { parseArgs, type CommandFlag } from './args.js';
import { wrongUse, type Command } from './command.js';
import { createServiceLog } from './service-log.js';
import { packageVersion } from './version.js';
import type { CliWorld, ExitCode } from './world.js';

const OWN_FLAGS: readonly CommandFlag[] = [
  {
    name: 'config',
    value: 'FILE',
    help: 'The settings file; default GATEWAY_CONFIG, or gateway.yaml in the working folder.',
  },
  { name: 'agent', value: 'NAME', help: 'Which entry of the file, where it has several with bridge: acp.' },
];

const PARENT_CHECK_MS = 2_000;
const LAST_BYTES_MS = 500;
const EXIT_SLACK_MS = 500;

/** `acp`: one editor on standard input and output; the log goes to standard error. */
export const acpCommand: Command = {
  usage: 'acp [--peer PEER] [flags]',
  summary: 'Serve an editor on standard input and output (Agent Client Protocol).',
  async run(args, world, bridges) {
    const door = bridges['acp'];
    if (!door?.stdio) {
      world.err('band-gateway acp: this program has no ACP bridge\n');
      return 1;
    }
    const expanded = expandShortFlags(args);
    const parsed = parseArgs(expanded.args, { settings: await acpFlags(bridges), own: OWN_FLAGS });
    const extra = parsed.positionals.map((word) => `${word} is one word too many`);
    const problems = [...expanded.problems, ...parsed.problems, ...extra];
    if (problems.length > 0) return wrongUse(world, 'acp', problems);
    const { config: file, agent } = parsed.own;
    const request: AcpSettingsRequest = {
      world,
      bridges,
      flags: parsed.settings,
      file: typeof file === 'string' ? file : null,
      agent: typeof agent === 'string' ? agent : null,
    };
    let settings: AcpSettings;
    try {
      settings = await readAcpSettings(request);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      world.err(`${error.message}\n`);
      return 2;
    }
    if (!settings.credentials && process.stdin.isTTY) {
      return wrongUse(world, 'acp', ['BAND_AGENT_ID and BAND_API_KEY (or BAND_API_KEY_FILE) are missing']);
    }
    if (parsed.settings.some(({ path, isFile }) => path === 'api_key' && !isFile)) {
      world.err('band-gateway acp: a key on the command line shows in process lists; --api-key-file hides it\n');
    }
    return serve(settings, request, world, await door.stdio());
  },
  async help(bridges) {
    const own = OWN_FLAGS.map(({ name, value, help }) => `  --${name} ${value ?? ''}\n      ${help}`);
    return ['', ...own, '', 'Short forms:', ...shortFlagHelp, '', ...flagHelp(await acpFlags(bridges))].join('\n');
  },
};

async function acpFlags(bridges: BridgeTable): Promise<readonly NamedSetting[]> {
  const groups = (await bridges['acp']?.settings()) ?? [];
  const own = groups.flatMap((group) => withoutPrefix(namedSettings(group.tree, [group.name]), 'acp'));
  const taken = new Set(own.map(({ flag }) => flag));
  const others = [...namedSettings(serviceSettings.tree), ...namedSettings(agentSettings.tree)];
  return [...own, ...others.filter(({ flag }) => !taken.has(flag))];
}

async function serve(
  settings: AcpSettings,
  request: AcpSettingsRequest,
  world: CliWorld,
  serveStdio: NonNullable<Awaited<ReturnType<NonNullable<NonNullable<BridgeTable[string]>['stdio']>>>>,
): Promise<ExitCode> {
  const output = claimStdout(process);
  const redactor = createRedactor(settings.config.secrets);
  if (settings.credentials) redactor.add(settings.credentials.apiKey);
  const log = createServiceLog(settings.config.service, redactor);
  const life = new AbortController();
  let isOver = false;
  const end = (reason: string) => {
    if (isOver) return;
    isOver = true;
    log.info({ reason }, 'stopping');
    life.abort(new Error(reason));
    // Whatever still hangs then is left to the end of the process.
    setTimeout(
      () => {
        world.exit(0);
      },
      shutdownMs(settings.values) + EXIT_SLACK_MS,
    ).unref();
  };
  const offSignals = world.onSignal((signal) => {
    if (isOver) world.exit(1);
    else end(signal);
  });
  const onRejection = (error: unknown) => {
    log.error({ err: toError(error) }, 'work in the background failed');
  };
  process.on('unhandledRejection', onRejection);
  const parent = process.ppid;
  const offParent = systemClock.every(PARENT_CHECK_MS, () => {
    if (process.ppid !== parent) end('the parent process is gone');
  });
  let current = settings;
  try {
    await serveStdio({
      input: process.stdin,
      output,
      values: settings.values,
      credentials: async (fresh = false) => {
        if (fresh) current = await reread(request, current);
        if (current.credentials) redactor.add(current.credentials.apiKey);
        return current.credentials;
      },
      clock: systemClock,
      log,
      version: packageVersion(),
      signal: life.signal,
    });
    await drained(output, LAST_BYTES_MS);
    return 0;
  } catch (error) {
    log.fatal({ err: toError(error) }, 'the editor cannot be served any longer');
    return 1;
  } finally {
    offSignals();
    offParent();
    process.off('unhandledRejection', onRejection);
  }
}

async function reread(request: AcpSettingsRequest, before: AcpSettings): Promise<AcpSettings> {
  try {
    return await readAcpSettings(request);
  } catch (error) {
    // A file that is just being edited: what was read before still holds.
    if (error instanceof ConfigError) return before;
    throw error;
  }
}

function shutdownMs(values: unknown): number {
  const given = (values as { shutdown_ms?: unknown } | null)?.shutdown_ms;
  return typeof given === 'number' ? given : 2_000;
}
