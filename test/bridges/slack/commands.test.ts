import { describe, expect, it } from 'vitest';
import { USUAL_SCOPES } from '../../support/slack/double.js';
import { startBridge, say, type BridgeLab, type SlackTurn } from '../../support/slack/bridge-lab.js';

type Transport = 'http' | 'socket';
const both = [['http'], ['socket']] as const;

/** Everything the person sees for themselves in a place. */
const seen = (lab: BridgeLab, channel: string): string[] =>
  lab.slack.ephemerals(channel, lab.alice.id).map((one) => one.shown);
const told = async (lab: BridgeLab, count: number, channel = lab.general.id): Promise<string[]> => {
  await lab.slack.until(() => seen(lab, channel).length >= count, `${count} answers to a command`);
  return seen(lab, channel);
};
const acked = async (lab: BridgeLab, ran: ReturnType<BridgeLab['alice']['runs']>) => {
  await lab.slack.until(() => ran.delivery?.state !== 'under way', 'an acknowledgement');
  return ran.delivery!.attempts[0]!;
};
/** The root that the bot posted in a channel. */
const root = async (lab: BridgeLab, channel = lab.general) => {
  await lab.slack.until(() => lab.slack.messages(channel).some((one) => one.fromBot), 'a post of the bot');
  return lab.slack.messages(channel).find((one) => one.fromBot)!;
};
const start = async (transport: Transport, options: Parameters<typeof startBridge>[0] = {}) => {
  const lab = await startBridge({ transport, ...options });
  lab.slack.expectPing(lab.alice.id);
  return lab;
};

describe('the slash command', () => {
  it.each(both)('S-169 ask posts the question as the bot and answers in its thread (%s)', async (transport) => {
    const lab = await start(transport);
    const ran = lab.alice.runs('/band ask what about @bob, 1 < 2 & #general?', '#general');
    const attempt = await acked(lab, ran);
    expect(JSON.stringify(attempt.payload)).toMatch(/^\{"response_type":"ephemeral","text":"I pass your question on/);
    const question = await root(lab);
    expect(question.shown).toContain(`<@${lab.alice.id}> asks:`);
    expect(question.shown).toContain('> what about @bob');
    const said = { channel: lab.general.id, threadTs: question.ts };
    const answers = await lab.answered(said, 2);
    expect(answers[1]).toContain('echo: what about');
    expect(lab.heard).toHaveLength(1);
    expect(lab.heard[0]).toContain('[@bob](slack://user?team=T07GATE0001&id=U07MEMBER02)');
    expect(lab.heard[0]).toContain('1 \\< 2 &');
    expect(lab.turns[0]!.message.senderId).toBe(`slack:${lab.alice.id}`);
    lab.alice.replies({ ...said, ts: question.ts }, 'and now?');
    await lab.answered(said, 3);
    expect(await lab.rooms_()).toHaveLength(1);
    lab.slack.check();
  });

  it.each(both)('S-169 no words, help and unknown words are answered at once with the help (%s)', async (transport) => {
    const lab = await start(transport);
    for (const [command, count] of [
      ['/band', 1],
      ['/band help', 2],
      ['/band fly <away>', 3],
    ] as const) {
      const attempt = await acked(lab, lab.alice.runs(command, '#general'));
      expect(attempt.ackMs).toBeLessThan(3_000);
      expect(await told(lab, count)).toHaveLength(count);
    }
    const [empty, help, unknown] = seen(lab, lab.general.id);
    expect(empty).toBe(help);
    for (const word of ['ask', 'new', 'status', 'link', 'stop', 'play', 'interrupt', 'mute', 'unmute', 'help'])
      expect(help).toContain(`/band ${word}`);
    expect(unknown).toContain('I do not know `fly`');
    await acked(lab, lab.alice.runs('/band ask', '#general'));
    expect((await told(lab, 4))[3]).toContain('What do you want to ask?');
    await lab.idle();
    expect(lab.heard).toEqual([]);
    expect(lab.slack.calls('chat.postMessage')).toEqual([]);
    lab.slack.check();
  });

  it('S-169 the acknowledgement waits for the disk and for nothing else', async () => {
    const lab = await start('http');
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    lab.slack.fault({ method: 'chat.postMessage', times: 1, effect: { kind: 'hold', until, apply: 'after' } });
    const attempt = await acked(lab, lab.alice.runs('/band ask slow?', '#general'));
    expect(attempt.outcome).toBe('200');
    expect(lab.heard).toEqual([]);
    release();
    await lab.slack.until(() => lab.heard.includes('slow?'));
  });

  it('S-169 S-031 a command that could not be stored is not acknowledged', async () => {
    const lab = await start('http');
    const batch = lab.store.batch.bind(lab.store);
    lab.store.batch = () => Promise.reject(new Error('no disk'));
    expect((await acked(lab, lab.alice.runs('/band ask lost?', '#general'))).outcome).toBe('503');
    lab.store.batch = batch;
    expect(seen(lab, lab.general.id)).toEqual([]);
  });

  it('S-169 S-171 a command that comes twice is acknowledged twice and done once', async () => {
    const lab = await start('http');
    const ran = lab.alice.runs('/band ask once?', '#general');
    await acked(lab, ran);
    const again = lab.slack.deliverRaw(lab.app, ran.delivery!.body, 'slash_commands')!;
    await lab.slack.until(() => again.state !== 'under way');
    expect(again.attempts[0]!.outcome).toBe('200');
    const question = await root(lab);
    await lab.answered({ channel: lab.general.id, threadTs: question.ts }, 2);
    await lab.idle();
    expect(lab.heard).toEqual(['once?']);
    expect(lab.slack.messages(lab.general).filter((one) => one.fromBot)).toHaveLength(1);
  });

  it('S-169 where the bot is no member it says so to the person alone', async () => {
    const lab = await start('http');
    await acked(lab, lab.alice.runs('/band ask hello?', '#outside'));
    expect((await told(lab, 2, lab.outside.id))[1]).toContain('I am not in this channel. Invite me');
    expect(lab.heard).toEqual([]);
    lab.slack.check();
  });

  it('S-169 joins a public channel where it may', async () => {
    const scopes = [...USUAL_SCOPES, 'channels:join'];
    const lab = await start('http', { settings: { autoJoin: true }, acme: { install: { scopes } } });
    lab.alice.runs('/band ask hello?', '#outside');
    const question = await root(lab, lab.outside);
    await lab.answered({ channel: lab.outside.id, threadTs: question.ts }, 2);
    expect(lab.heard).toEqual(['hello?']);
  });

  it('S-169 works in a direct message with the bot, and begins a thread there', async () => {
    const lab = await start('http');
    const ran = lab.alice.runs('/band ask in private?', 'dm');
    await acked(lab, ran);
    const channel = lab.slack.world.channels.get(String(ran.delivery!.body['channel_id']))!;
    const question = await root(lab, channel);
    await lab.answered({ channel: channel.id, threadTs: question.ts }, 2);
    expect(lab.heard).toEqual(['in private?']);
  });

  it('S-169 S-068 who is refused is told so, and nothing is posted', async () => {
    const lab = await start('http', { settings: { deny: ['U07MEMBER01'] } });
    lab.alice.runs('/band ask may I?', '#general');
    expect((await told(lab, 2))[1]).toContain('not set up to answer you here');
    lab.alice.runs('/band new', '#general');
    await told(lab, 4);
    expect(lab.slack.calls('chat.postMessage')).toEqual([]);
    expect(lab.heard).toEqual([]);
  });

  it('S-169 new opens a thread with a room behind it, in which no mention is needed', async () => {
    const lab = await start('http');
    lab.alice.runs('/band new', '#general');
    const opening = await root(lab);
    await expect.poll(async () => (await lab.rooms_()).length).toBe(1);
    await lab.idle();
    expect(lab.heard).toEqual([]);
    expect(opening.shown).toContain('Write in this thread');
    lab.alice.replies({ channel: lab.general.id, ts: opening.ts, threadTs: opening.ts }, 'first words');
    await lab.answered({ channel: lab.general.id, threadTs: opening.ts }, 2);
    expect(lab.heard).toEqual(['first words']);
    expect(await lab.rooms_()).toHaveLength(1);
  });

  it('S-169 status and link list the person’s own conversations of the channel', async () => {
    const lab = await start('http');
    const mine = lab.alice.says('#general', '@gateway mine');
    const theirs = lab.bob.says('#general', '@gateway theirs');
    const elsewhere = lab.alice.says('#rooms', '@gateway elsewhere');
    for (const said of [mine, theirs, elsewhere]) await lab.answered(said);
    lab.alice.runs('/band status', '#general');
    const status = (await told(lab, 2))[1]!;
    const link = (ts: string) => `https://acme.slack.com/archives/C07ROOMS001/p${ts.replace('.', '')}`;
    expect(status).toContain(link(mine.ts));
    expect(status).toContain('waiting');
    expect(status).not.toContain(link(theirs.ts));
    // A ts is one message's only within its channel.
    expect(status).not.toContain(`/${elsewhere.channel}/`);
    lab.alice.runs('/band link', '#general');
    expect((await told(lab, 4))[3]).toContain(link(mine.ts));
    lab.carol.runs('/band status', '#general');
    await lab.slack.until(() => lab.slack.ephemerals(lab.general, lab.carol.id).length === 2);
    expect(lab.slack.ephemerals(lab.general, lab.carol.id)[1]!.shown).toContain('no such conversation of yours');
    lab.slack.check();
  });

  it('S-169 stop, play, interrupt, mute and unmute offer the conversations with buttons that do it', async () => {
    const cut: string[] = [];
    let goOn = (): void => undefined;
    const onTurn = async (turn: SlackTurn) => {
      if (turn.message.content.startsWith('work')) {
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => {
            cut.push(turn.message.content);
            resolve();
          });
          goOn = resolve;
        });
      }
      if (!turn.signal.aborted) await say(turn, `done ${turn.message.content}`);
    };
    const lab = await start('http', { onTurn });
    const where = { channel: lab.general.id };
    const said = lab.alice.says('#general', '@gateway work one');
    const other = lab.alice.says('#general', '@gateway quick');
    await lab.answered(other);
    await lab.slack.until(() => lab.heard.includes('work one'));

    lab.alice.runs('/band interrupt', '#general');
    const [, list] = await told(lab, 2);
    expect(list).toContain('working');
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)[1]!.buttons).toEqual(['Interrupt']);
    lab.alice.clicks('Interrupt', where);
    await expect.poll(() => cut).toEqual(['work one']);
    await lab.slack.until(
      () => seen(lab, lab.general.id)[1] === 'Interrupted by Alice.',
      'the list says what was done',
    );

    lab.alice.runs('/band stop', '#general');
    await told(lab, 4);
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)[3]!.buttons).toEqual(['Stop 1', 'Stop 2']);
    const first = /^1\. .*$/m.exec(seen(lab, lab.general.id)[3]!)![0];
    const stopped = first.includes(other.ts.replace('.', '')) ? other : said;
    lab.alice.clicks('Stop 1', where);
    await lab.slack.until(() => lab.answers(stopped).some((text) => text.startsWith('Stopped.')), 'a stopped thread');
    lab.alice.replies(stopped, 'kept');
    await lab.answered(lab.bob.says('#rooms', '@gateway meanwhile'));
    expect(lab.heard).not.toContain('kept');

    lab.alice.runs('/band play', '#general');
    await lab.slack.until(() =>
      lab.slack.ephemerals(lab.general, lab.alice.id).some((one) => one.shown.startsWith('Which one shall go on')),
    );
    lab.alice.clicks('Resume', where);
    await lab.slack.until(() => lab.heard.includes('kept'));

    lab.alice.runs('/band mute', '#general');
    await lab.slack.until(() => seen(lab, lab.general.id).some((text) => text.startsWith('Where shall I wait')));
    lab.alice.clicks('Mute 1', where);
    await lab.slack.until(() => seen(lab, lab.general.id).some((text) => text.startsWith('Muted by Alice')));
    await lab.slack.settled();
    lab.alice.replies(stopped, 'unheard');
    lab.alice.replies(stopped, '@gateway heard');
    await lab.slack.until(() => lab.heard.includes('heard'));
    expect(lab.heard).not.toContain('unheard');

    lab.alice.runs('/band unmute', '#general');
    await lab.slack.until(() =>
      seen(lab, lab.general.id).some((text) => text.startsWith('Where shall I answer again')),
    );
    lab.alice.clicks('Unmute', where);
    await lab.slack.until(() => seen(lab, lab.general.id).some((text) => text.startsWith('Unmuted by Alice')));
    lab.alice.replies(stopped, 'heard again');
    await lab.slack.until(() => lab.heard.includes('heard again'));
    goOn();
    lab.slack.check();
  });

  it('S-169 where the address of the command takes nothing, the person is told by an ephemeral message', async () => {
    const lab = await start('http');
    const until = new Promise<void>((resolve) => setImmediate(resolve));
    const ran = lab.alice.runs('/band status', '#general');
    // Used up before the answer comes.
    for (const place of lab.slack.world.responseUrls.values()) place.uses = 5;
    lab.slack.allow(/response_url used after/);
    await until;
    await acked(lab, ran);
    await told(lab, 2);
    expect(lab.slack.calls('chat.postEphemeral')).toHaveLength(1);
  });

  it('S-169 an address that is busy is tried again, and never more often than Slack allows', async () => {
    const lab = await start('http');
    lab.slack.respondFails(1);
    lab.alice.runs('/band link', '#general');
    await told(lab, 2);
    expect(lab.slack.otherRequests.filter(({ path }) => path.startsWith('/response/')).length).toBeLessThanOrEqual(3);
    expect(lab.slack.otherRequests.every(({ authorization }) => authorization === null)).toBe(true);
    lab.slack.check();
  });

  it('S-169 switched off, the command says so and does nothing', async () => {
    const lab = await start('http', { settings: { slashCommand: 'off' } });
    lab.alice.runs('/band ask anybody?', '#general');
    expect((await told(lab, 1))[0]).toContain('switched off');
    await lab.idle();
    expect(lab.heard).toEqual([]);
  });

  it('S-169 a question whose post nobody answered for stands there once, also after a restart', async () => {
    const lab = await start('http');
    const fault = lab.slack.fault({ method: 'chat.postMessage', times: 1, effect: { kind: 'drop', applied: true } });
    lab.alice.runs('/band ask twice?', '#general');
    await lab.slack.until(() => fault.hits() === 1);
    await lab.slack.until(() => lab.heard.includes('twice?'), 'the question');
    await lab.idle();
    expect(lab.slack.messages(lab.general).filter((one) => one.fromBot)).toHaveLength(1);
    expect(lab.heard).toEqual(['twice?']);
  });
});
