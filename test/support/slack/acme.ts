import {
  startSlackDouble,
  type App,
  type Channel,
  type Installation,
  type Person,
  type SlackDouble,
  type SlackDoubleOptions,
  type Team,
  type AppSpec,
  type InstallSpec,
} from './double.js';
import type { User } from './world.js';

/** A workspace with one installed app, two people, an administrator and three channels. */
export interface Acme {
  readonly slack: SlackDouble;
  readonly team: Team;
  readonly app: App;
  readonly bot: Installation;
  readonly alice: Person;
  readonly bob: Person;
  /** A workspace administrator. */
  readonly carol: Person;
  readonly general: Channel;
  /** Private. */
  readonly rooms: Channel;
  /** The bot is not in it. */
  readonly outside: Channel;
  readonly botToken: string;
}

/** The bot's handle is `gateway`; ids are fixed so that payloads can be written by hand. */
export async function startAcme(
  options: SlackDoubleOptions & { team?: Partial<Team>; app?: AppSpec; install?: InstallSpec } = {},
): Promise<Acme> {
  const slack = await startSlackDouble(options);
  const team = slack.team({ id: 'T07GATE0001', name: 'Acme', domain: 'acme', ...options.team });
  const app = slack.app({
    id: 'A07GATE0001',
    name: 'gateway',
    signingSecret: '8f742231b10e8888abcd99yyyzzz85a5',
    ...options.app,
  });
  const bot = slack.install(app, team, {
    botUserId: 'U07GATEBOT1',
    botId: 'B07GATEBOT1',
    botToken: 'xoxb-test-team-one',
    ...options.install,
  });
  const person = (spec: Partial<User> & { name: string; id: string }) => slack.person(slack.user(team, spec), app);
  const alice = person({ id: 'U07MEMBER01', name: 'alice', realName: 'Alice Smith', displayName: 'Alice' });
  const bob = person({ id: 'U07MEMBER02', name: 'bob', realName: 'Bob [QA]', displayName: 'Bob [QA]' });
  const carol = person({
    id: 'U07MEMBER03',
    name: 'carol',
    realName: 'Carol Jones',
    displayName: 'Carol',
    admin: true,
  });
  const everyone = [alice.id, bob.id, carol.id];
  const general = slack.channel(team, { id: 'C07ROOMS001', name: 'general', members: [...everyone, bot.botUserId] });
  const rooms = slack.channel(team, {
    id: 'C07ROOMS002',
    name: 'rooms',
    kind: 'group',
    members: [...everyone, bot.botUserId],
  });
  const outside = slack.channel(team, { id: 'C07ROOMS003', name: 'outside', members: everyone });
  return { slack, team, app, bot, alice, bob, carol, general, rooms, outside, botToken: bot.tokens[0]!.value };
}
