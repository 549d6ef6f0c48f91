import { exampleFile, fileSchema } from '../config/describe.js';
import { settledLines } from '../config/print.js';
import { DEMO_GATEWAY } from '../gateway/demo-gateway.js';
import { wrongUse, type Command } from './command.js';
import { exampleBridges, groupsOf, loadFromArgs, settingsHelp } from './settings-args.js';

/** `config print|schema|example`: the settings in force, their JSON Schema, an example file. */
export const configCommand: Command = {
  usage: 'config print|schema|example [--config FILE] [flags]',
  summary: 'Print the settings in force with their sources (print), a JSON Schema for editors, or an example file.',
  async run(args, world, bridges) {
    const [verb, ...rest] = args;
    switch (verb) {
      case 'print': {
        const loaded = await loadFromArgs({
          command: 'config',
          args: rest,
          world,
          bridges,
          defaultAgent: DEMO_GATEWAY,
        });
        if (loaded.kind === 'refused') return loaded.exitCode;
        world.out(`${settledLines(loaded.config.settled).join('\n')}\n`);
        return 0;
      }
      case 'schema':
        if (rest.length > 0) return wrongUse(world, 'config', ['schema takes nothing else']);
        world.out(`${JSON.stringify(fileSchema(await groupsOf(bridges)), null, 2)}\n`);
        return 0;
      case 'example':
        if (rest.length > 0) return wrongUse(world, 'config', ['example takes nothing else']);
        world.out(exampleFile(await exampleBridges(bridges)));
        return 0;
      default:
        return wrongUse(world, 'config', [
          verb === undefined ? 'print, schema or example?' : `there is no config ${verb}; print, schema or example?`,
        ]);
    }
  },
  help: settingsHelp,
};
