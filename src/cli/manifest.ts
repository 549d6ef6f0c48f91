import { ValidationError, ValueError } from '../base/band-errors.js';
import type { Manifest } from '../gateway/bridge-table.js';
import type { CommandFlag } from './args.js';
import { wrongUse, type Command } from './command.js';
import { CONFIG_FLAG, loadFromArgs } from './settings-args.js';

const FLAGS: readonly CommandFlag[] = [
  { name: 'app', value: 'SLUG', help: 'Which of several Slack apps; default the only one.' },
  { name: 'format', value: 'yaml|json', help: 'Default yaml.' },
  {
    name: 'agent',
    value: 'NAME',
    help: "Which agent's entry in the settings file; default the only one of the bridge.",
  },
];

/** `manifest slack`: what to paste into Slack to make the app, from the settings in force. */
export const manifestCommand: Command = {
  usage: 'manifest slack [--app SLUG] [--format yaml|json] [--agent NAME]',
  summary:
    'Print the manifest of a Slack app for the settings in force; what no manifest can set is said on standard error.',
  async run(args, world, bridges) {
    const [bridgeName, ...rest] = args;
    const door = bridgeName === undefined ? undefined : bridges[bridgeName];
    if (bridgeName === undefined || !door?.manifest) {
      const known = Object.entries(bridges).flatMap(([name, one]) => (one.manifest ? [name] : []));
      return wrongUse(world, 'manifest', [`name one of: ${known.join(', ')}`]);
    }
    const loaded = await loadFromArgs({
      command: 'manifest',
      args: rest,
      world,
      bridges,
      own: FLAGS,
      // A manifest is printed before there is an app, hence before there are credentials.
      defaultAgent: { name: 'agent', values: { agent_id: 'none', api_key: 'none', bridge: bridgeName }, groups: {} },
    });
    if (loaded.kind === 'refused') return loaded.exitCode;
    const { config, args: parsed } = loaded;
    const { app = null, format = 'yaml', agent: wanted } = parsed.own;
    if (format !== 'yaml' && format !== 'json') return wrongUse(world, 'manifest', ['--format is yaml or json']);
    const entries = config.agents.filter(
      ({ name, options }) => options.bridge === bridgeName && (wanted === undefined || name === wanted),
    );
    const [entry] = entries;
    if (!entry || entries.length > 1) {
      const names = entries.map(({ name }) => name).join(', ');
      return wrongUse(world, 'manifest', [
        entry
          ? `which agent? --agent one of: ${names}`
          : `no agent ${String(wanted ?? '')} has the bridge ${bridgeName}`,
      ]);
    }
    const publicUrl = config.service.http.publicUrl ?? null;
    const options = { app: app === true ? null : app, format, publicUrl } as const;
    let manifest: Manifest;
    try {
      manifest = await door.manifest(entry, options);
    } catch (error) {
      if (!(error instanceof ValueError || error instanceof ValidationError)) throw error;
      return wrongUse(world, 'manifest', [error.message]);
    }
    const { text, notes } = manifest;
    world.out(text.endsWith('\n') ? text : `${text}\n`);
    for (const note of notes) world.err(`${note}\n`);
    return 0;
  },
  help: () =>
    Promise.resolve(
      [CONFIG_FLAG, ...FLAGS].map(({ name, value, help }) => `\n  --${name} ${value ?? ''}\n      ${help}`).join(''),
    ),
};
