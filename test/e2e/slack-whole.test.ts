import { describe, expect, it, onTestFinished } from 'vitest';
import { RelayAdapter } from '../../src/adapters/relay.js';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { SlackAdapter } from '../../bridges/slack/adapter.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { startAcme } from '../support/slack/acme.js';
import type { Said } from '../support/slack/people.js';
import type { Json } from '../support/slack/world.js';

/** Slack with two apps → bridge → sandbox → the two demo agents, as `npm start` has them → and back. */
async function startWhole() {
  const acme = await startAcme({ app: { socketMode: true, surface: 'agent' } });
  const { slack, team } = acme;
  const desk = slack.app({ name: 'desk', socketMode: true });
  const deskBot = slack.install(desk, team, { botToken: 'xoxb-test-team-desk' });
  const demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
  const store = createMemoryStore();
  const inner = new RelayAdapter({ peer: 'demo/echo' }, { store, prefix: 'slack/t/relay' });
  const apps = [
    { slug: 'main', botToken: acme.botToken, appToken: acme.app.appToken },
    { slug: 'desk', botToken: 'xoxb-test-team-desk', appToken: desk.appToken },
  ];
  const adapter = new SlackAdapter({ inner, apps, slackApiUrl: slack.apiUrl }, { store, prefix: 'slack/t' });
  const agent = sandboxAgent(demo.sandbox, { adapter, agentId: DEMO.helpdesk.id, apiKey: DEMO.helpdesk.apiKey });
  await agent.start();
  onTestFinished(async () => {
    await agent.stop();
    await demo.stop();
    await slack.stop();
  });
  const ready = () => [acme.app, desk].every((app) => slack.sockets.open(app).some(({ saidHello }) => saidHello));
  await slack.until(ready, 'a connection of each app');

  const answers = (said: Said) => slack.botMessages(said.channel, said.threadTs);
  return {
    ...acme,
    desk,
    deskBot,
    answers,
    /** Nothing that came or goes waits in the bridge. */
    workedOff: () => expect.poll(() => adapter.report().queues.every(({ depth }) => depth === 0)).toBe(true),
    /** What Slack shows of the agent's state in a thread. */
    session: ({ channel, threadTs }: Said) => slack.world.sessions.get(`${channel}:${threadTs}`)?.state,
    rooms: () => demo.sandbox.dev.state().rooms,
    answered: async (said: Said, count = 1) => {
      await slack.until(() => answers(said).length >= count, `${count} answers in the thread`, 15_000);
      await slack.settled();
      return answers(said);
    },
  };
}

const table = '| a | b |\n| --- | --- |\n| one | two |';
const words = (length: number): string =>
  'Grüße vom Büro. '
    .repeat(Math.ceil(length / 16))
    .slice(0, length)
    .trim();
const blockTypes = (blocks: readonly Json[] | null): unknown[] => (blocks ?? []).map(({ type }) => type);

describe('a workspace, two Slack apps and the demo’s agents', () => {
  it('S-065 a mention and a follow-up are answered in their thread, under the agent’s name, from one room', async () => {
    const { alice, answered, rooms, slack } = await startWhole();
    const said = alice.says('#general', '@gateway hello *there*');
    const [first] = await answered(said);
    expect(first).toMatchObject({ who: 'Echo', fromBot: true });
    expect(first!.shown).toContain('hello **there**');
    alice.replies(said, 'and once more');
    expect((await answered(said, 2))[1]!.shown).toContain('and once more');
    expect(rooms()).toHaveLength(1);
    slack.check();
  });

  it('S-060 a direct message is answered without a mention', async () => {
    const { alice, answered, slack } = await startWhole();
    expect((await answered(alice.says('dm', 'are you there?')))[0]!.shown).toContain('are you there?');
    slack.check();
  });

  it('S-140 a text file that a person attaches reaches the agent’s room and comes back quoted', async () => {
    const { alice, answered, slack } = await startWhole();
    const file = { name: 'notes.txt', bytes: 'milk\nbread <b>&amp;</b>\n' };
    const [answer] = await answered(alice.uploads('#general', [file], { typed: '@gateway keep this' }));
    expect(answer!.shown).toContain('keep this');
    expect(answer!.shown).toContain('notes.txt');
    expect(answer!.shown).toContain('bread <b>&amp;</b>');
    slack.check();
  });

  it('S-111 40,000 characters come back whole, in parts that Slack takes', async () => {
    const { alice, answers, slack } = await startWhole();
    const text = words(39_000);
    const said = alice.says('#general', `@gateway ${text}`);
    const shown = () => answers(said).map((one) => one.shown.replace(/\s+/g, ' ').trim());
    await slack.until(() => shown().join(' ').length >= text.length, 'the whole answer', 30_000);
    await slack.settled();
    expect(shown().join(' ').replace(/\s+/g, ' ')).toContain(text);
    slack.check();
  });

  it('S-141 what is too long for messages comes back as a preview and a file that holds every word', async () => {
    const { alice, answers, slack } = await startWhole();
    const file = { name: 'long.txt', bytes: words(150_000) };
    const said = alice.uploads('#general', [file], { typed: '@gateway keep this' });
    await slack.until(() => answers(said).some(({ files }) => files.length > 0), 'the file', 15_000);
    await slack.settled();
    const kept = slack.files().find(({ name }) => name === 'reply.md')!;
    expect(kept.bytes.toString('utf8')).toContain(file.bytes);
    slack.check();
  });

  it('S-112 a table comes back as a table', async () => {
    const { alice, answered, slack } = await startWhole();
    const file = { name: 'table.md', bytes: table };
    const [answer] = await answered(alice.uploads('#general', [file], { typed: '@gateway show' }));
    expect(blockTypes(answer!.blocks)).toContain('markdown');
    expect(answer!.shown).toContain('| one | two |');
    slack.check();
  });

  it('S-150 an edit of what was answered is not answered again, and a mention that an edit adds is', async () => {
    const { alice, answered, slack } = await startWhole();
    const said = alice.says('#general', '@gateway helo');
    await answered(said);
    alice.edits(said, '@gateway hello');
    const other = alice.says('#general', 'is anybody there?');
    alice.edits(other, '@gateway is anybody there?');
    expect((await answered(other))[0]!.shown).toContain('is anybody there?');
    expect(await answered(said)).toHaveLength(1);
    slack.check();
  });

  it('S-152 a message that is deleted before it was delivered is never asked', async () => {
    const { alice, answered, rooms, slack, workedOff } = await startWhole();
    slack.events.hold = [];
    const said = alice.says('#general', '@gateway a secret');
    alice.deletes(said);
    const held = slack.events.hold;
    slack.events.hold = null;
    // The deletion overtakes its message.
    for (const outgoing of held.toReversed()) {
      slack.events.send(outgoing);
      await slack.settled(workedOff);
    }
    await answered(alice.says('#general', '@gateway something else'));
    expect(slack.botMessages(said.channel, said.threadTs)).toEqual([]);
    expect(JSON.stringify(rooms())).not.toContain('a secret');
    slack.check();
  });

  it('S-162 a stop of somebody whose agent does not answer is confirmed, with what goes on', async () => {
    const { alice, answers, answered, session, slack } = await startWhole();
    // Nobody runs this agent.
    const said = alice.says('#general', '@gateway ask demo/editor: are you awake?');
    await slack.until(() => session(said) === 'processing', 'the status');
    alice.stopsAgent(said);
    const [line] = await answered(said);
    expect(line!.shown).toMatch(/^⏸|stopped/i);
    expect(line!.shown).toContain('cannot be stopped from here');
    expect(answers(said)).toHaveLength(1);
    await slack.until(() => session(said) !== 'processing', 'the end of the status');
    slack.check();
  });

  it('S-073 two people in one thread are told apart by the agent, and answered in their order', async () => {
    const { alice, bob, answered, rooms, slack } = await startWhole();
    const said = alice.says('#general', '@gateway I am first');
    await answered(said);
    bob.replies(said, 'I am second');
    const [first, second] = await answered(said, 2);
    expect(first!.shown).toContain('Alice');
    expect(second!.shown).toContain('Bob');
    expect(rooms()).toHaveLength(1);
    slack.check();
  });

  it('a second agent that is asked for in the thread answers under its own name, in the same room', async () => {
    const { alice, answered, rooms, slack } = await startWhole();
    const said = alice.says('#general', '@gateway hello');
    await answered(said);
    alice.replies(said, 'ask dice: 2d6');
    const [, roll] = await answered(said, 2);
    expect(roll).toMatchObject({ who: 'Dice' });
    expect(roll!.shown).toMatch(/2d6: \d+/);
    expect(rooms()).toHaveLength(1);
    slack.check();
  });

  it('S-034 two Slack apps of one workspace are two doors: each answers what it was asked, as itself', async () => {
    const { alice, deskBot, desk, slack, team, answered, rooms } = await startWhole();
    const lobby = slack.channel(team, { name: 'lobby', members: [alice.id, 'U07GATEBOT1', deskBot.botUserId] });
    const one = alice.says(lobby.id, '@gateway for the first');
    const two = alice.says(lobby.id, '@desk for the second');
    const both: [Said, string][] = [
      [one, 'for the first'],
      [two, 'for the second'],
    ];
    for (const [said, text] of both) {
      const shown = await answered(said);
      expect(shown).toHaveLength(1);
      expect(shown[0]!.shown).toContain(text);
    }
    const tokensOf = (said: Said) =>
      slack
        .calls('chat.postMessage')
        .filter(({ args }) => args['thread_ts'] === said.threadTs)
        .map(({ app }) => app);
    expect(tokensOf(one)).not.toContain(desk.id);
    expect(new Set(tokensOf(two))).toEqual(new Set([desk.id]));
    expect(rooms()).toHaveLength(2);
    slack.check();
  });
});
