import { toError } from '../base/errors.js';
import { DEMO, DEMO_SEED, readSeed, type DevState, type Seed } from '../sandbox/index.js';

/** Who is in a sandbox at its start, each with a key that can be told to the person who started it. */
export interface KnownSeed {
  readonly seed: Seed;
  /** Whose key a visitor of the console on this machine is lent. */
  readonly consoleKey: string | null;
  /** What the greeting says about agents, given who is there after all. */
  lines(state: DevState): readonly string[];
}

export const DEMO_WORLD: KnownSeed = {
  seed: DEMO_SEED,
  consoleKey: DEMO.user.apiKey,
  lines: () => [
    'Agents without a process, free for yours:',
    ...[DEMO.editor, DEMO.helpdesk].map(({ handle, id, apiKey }) => agentLine(handle, id, apiKey)),
  ],
};

/**
 * Reads a seed file. Keys that it leaves out become `band_u_<handle>` and `band_a_<owner>_<name>`, so that they are the
 * same at every start.
 *
 * @throws {GatewayError} `SANDBOX_REFUSED` when the file cannot be read, or with every field that is wrong
 */
export async function readKnownSeed(file: string): Promise<KnownSeed> {
  const { users, agents } = await readSeed(file);
  const seed = {
    users: users.map((user) => ({ ...user, apiKey: user.apiKey ?? `band_u_${word(user.handle)}` })),
    agents: agents.map((agent) => ({
      ...agent,
      apiKey: agent.apiKey ?? `band_a_${word(agent.ownerHandle)}_${word(agent.name)}`,
    })),
  };
  return {
    seed,
    consoleKey: seed.users[0]?.apiKey ?? null,
    lines(state) {
      const people = seed.users.filter(({ handle }) => state.users.some((one) => one.handle === handle));
      if (people.length < seed.users.length) return [`The folder has its own users and agents: ${file} was not used.`];
      const [first] = people;
      return [
        ...(first ? [`Console key of ${first.handle}: ${first.apiKey}`] : []),
        'Agents without a process, free for yours:',
        ...seed.agents.flatMap(({ name, ownerHandle, apiKey }) => {
          const found = state.agents.find(
            (one) => one.name === name.trim() && one.handle.startsWith(`${ownerHandle}/`),
          );
          return found ? [agentLine(found.handle, found.id, apiKey)] : [];
        }),
      ];
    },
  };
}

/** A problem with a seed, with what the file system or the parser said about it. */
export function seedProblem(error: Error): string {
  const cause = error.cause === undefined ? '' : toError(error.cause).message;
  // What is wrong with the fields stands in the message already.
  return error.message.includes('\n') || cause === '' || cause === error.message
    ? error.message
    : `${error.message} ${cause.trim()}`;
}

const agentLine = (handle: string, id: string, apiKey: string): string =>
  `  ${handle}  BAND_AGENT_ID=${id} BAND_API_KEY=${apiKey}`;

const word = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_');
