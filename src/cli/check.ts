import { systemClock } from '../base/clock.js';
import { createRedactor } from '../base/redact.js';
import type { Finding } from '../core/bridge.js';
import { checkConfig } from '../gateway/check.js';
import { DEMO_GATEWAY } from '../gateway/demo-gateway.js';
import type { CommandFlag } from './args.js';
import type { Command } from './command.js';
import { CONFIG_FLAG, loadFromArgs } from './settings-args.js';

const JSON_FLAG: CommandFlag = { name: 'json', help: 'One JSON array instead of lines.' };

const SIGNS: Readonly<Record<Finding['level'], string>> = { ok: 'ok     ', warning: 'warning', error: 'error  ' };

/** `check`: settings, data directory, port, platform, credentials, and what each bridge says; changes nothing. */
export const checkCommand: Command = {
  usage: 'check [--config FILE] [--json]',
  summary: 'Look at settings, credentials and connections without starting. Exit 1 when a finding is an error.',
  async run(args, world, bridges) {
    const loaded = await loadFromArgs({
      command: 'check',
      args,
      world,
      bridges,
      own: [JSON_FLAG],
      defaultAgent: DEMO_GATEWAY,
    });
    if (loaded.kind === 'refused') return loaded.exitCode;
    const { config } = loaded;
    const stop = new AbortController();
    const stopListening = world.onSignal(() => {
      stop.abort(new Error('interrupted'));
    });
    try {
      const findings = await checkConfig(config, bridges, { clock: systemClock, cwd: world.cwd }, stop.signal);
      const hide = createRedactor(config.secrets);
      if (loaded.args.own['json'] === true) world.out(`${hide(JSON.stringify(findings))}\n`);
      else for (const finding of findings) world.out(hide(line(finding)));
      return findings.some(({ level }) => level === 'error') ? 1 : 0;
    } finally {
      stopListening();
    }
  },
  help: () =>
    Promise.resolve(
      [CONFIG_FLAG, JSON_FLAG]
        .map(({ name, value, help }) => `\n  --${name}${value === undefined ? '' : ` ${value}`}\n      ${help}`)
        .join(''),
    ),
};

function line({ level, subject, message, mend }: Finding): string {
  return `${SIGNS[level]}  ${subject}: ${message}${mend === undefined ? '' : `\n         ${mend}`}\n`;
}
