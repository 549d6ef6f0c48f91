import { isGatewayError } from '../base/errors.js';
import type { CommandFlag } from './args.js';
import {
  askControlSocket,
  type ControlAnswer,
  type ControlRequest,
  type OwnedDeadLetter,
} from '../gateway/control-socket.js';
import { DEMO_GATEWAY } from '../gateway/demo-gateway.js';
import { wrongUse, type Command } from './command.js';
import { loadFromArgs } from './settings-args.js';
import type { CliWorld, ExitCode } from './world.js';

const JSON_FLAG: CommandFlag = { name: 'json', help: 'One JSON array instead of lines.' };

/** `dead list|retry|drop`: what could not be delivered, through the running service. */
export const deadCommand: Command = {
  usage: 'dead list [--json] | dead retry AGENT ID | dead drop AGENT ID',
  summary:
    'List what could not be delivered, or give one entry a second chance, or drop it. The service must be running.',
  async run(args, world, bridges) {
    const loaded = await loadFromArgs({
      command: 'dead',
      args,
      world,
      bridges,
      own: [JSON_FLAG],
      maxPositionals: 3,
      defaultAgent: DEMO_GATEWAY,
    });
    if (loaded.kind === 'refused') return loaded.exitCode;
    const request = requestOf(loaded.args.positionals);
    if (!request) {
      const message = 'say list, or retry or drop with an agent and an id';
      return wrongUse(world, 'dead', [message]);
    }
    const { dataDir } = loaded.config.service;
    let answer: ControlAnswer;
    try {
      answer = await askControlSocket(dataDir, request);
    } catch (error) {
      if (!isGatewayError(error, 'CONTROL_UNREACHABLE')) throw error;
      world.err(`band-gateway dead: no running gateway answers for the data directory ${dataDir}.\n`);
      return 1;
    }
    return show(answer, world, loaded.args.own['json'] === true);
  },
  help: () =>
    Promise.resolve(
      `\n  --${JSON_FLAG.name}\n      ${JSON_FLAG.help}\n  --data-dir <text>\n      The data directory of the service.`,
    ),
};

function requestOf([verb, agent, id]: readonly string[]): ControlRequest | null {
  if (verb === 'list' && agent === undefined) return { verb: 'dead.list' };
  if ((verb === 'retry' || verb === 'drop') && agent !== undefined && id !== undefined) {
    return { verb: `dead.${verb}`, agent, id };
  }
  return null;
}

function show(answer: ControlAnswer, world: CliWorld, asJson: boolean): ExitCode {
  switch (answer.kind) {
    case 'letters':
      if (asJson) world.out(`${JSON.stringify(answer.letters)}\n`);
      else world.out(answer.letters.length === 0 ? 'Nothing is given up on.\n' : answer.letters.map(line).join(''));
      return 0;
    case 'done':
      world.out('Done.\n');
      return 0;
    case 'refused':
      world.err(`band-gateway dead: ${answer.message}\n`);
      return 1;
  }
}

function line({ agent, id, queue, conversation, code, reason, at }: OwnedDeadLetter): string {
  return `${new Date(at).toISOString()}  ${agent}  ${id}  ${queue}  ${conversation}  ${code}: ${reason}\n`;
}
