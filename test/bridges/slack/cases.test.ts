import { describe, expect, it } from 'vitest';
import { RelayAdapter } from '../../../src/adapters/relay.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { callRest } from '../../support/rest-call.js';
import { say, startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import type { Said } from '../../support/slack/people.js';

/** The bridge with the relay as its brain, and a peer whose words the test writes. */
async function relayed(options: BridgeLabOptions = {}) {
  const lab = await startBridge({ ...options, inner: new RelayAdapter({ peer: 'demo/editor' }) });
  const peer = (method: string, path: string, body?: unknown) =>
    callRest(lab.sandbox.restUrl, method, `/api/v1/agent${path}`, DEMO.editor.apiKey, body);
  /** What the peer finds in its rooms, newest room first. */
  const asked = async (): Promise<{ roomId: string; texts: string[] }[]> => {
    const rooms = ((await peer('GET', '/chats')).body as { data: { id: string }[] }).data;
    return Promise.all(
      rooms.map(async ({ id }) => {
        const rows = ((await peer('GET', `/chats/${id}/messages?status=all`)).body as { data: { content: string }[] })
          .data;
        return { roomId: id, texts: rows.map((row) => row.content) };
      }),
    );
  };
  const roomOf = async (words: string): Promise<string> => {
    let found: string | undefined;
    await expect
      .poll(
        async () => (found = (await asked()).find(({ texts }) => texts.some((text) => text.includes(words)))?.roomId),
        { timeout: 8_000 },
      )
      .toBeDefined();
    return found!;
  };
  const answer = (roomId: string, content: string) =>
    peer('POST', `/chats/${roomId}/messages`, { message: { content, mentions: [{ id: DEMO.helpdesk.id }] } });
  return { ...lab, asked, roomOf, answer };
}

/** Markdown as a reader sees it: escapes taken away. */
const read = (markdown: string) => markdown.replace(/\\([!-/:-@[-`{-~])/g, '$1');
/** The part of the thread's texts that holds these words. */
const texts = (lab: BridgeLab, said: Said) => lab.answers(said);

describe('failures seen elsewhere', () => {
  it('SLK-01 entities are decoded once, links kept, and the bot’s own mention is gone', async () => {
    const lab = await relayed();
    const text =
      '<@U07GATEBOT1> write &amp;lt;br&amp;gt; not &lt;br&gt; when a &amp;&amp; b, keep &amp;#39; as is, see <https://docs.example.test/q?a=1&amp;b=2|the docs>';
    lab.alice.saysRaw('#general', { text });
    const roomId = await lab.roomOf('the docs');
    const posts = (await lab.asked()).find((room) => room.roomId === roomId)!.texts;
    expect(posts).toHaveLength(1);
    const shown = read(posts[0]!);
    const places = ['&lt;br&gt;', '<br>', 'a && b', '&#39;'].map((run) => shown.indexOf(run));
    expect(places.every((place, index) => place >= 0 && (index === 0 || place > places[index - 1]!))).toBe(true);
    expect(posts[0]).toContain('[the docs](https://docs.example.test/q?a=1&b=2)');
    expect(posts[0]).not.toMatch(/&amp;|<@U07GATEBOT1>/);
  });

  it('SLK-03 S-118 what a peer writes pages nobody, in text, blocks and fallback', async () => {
    const lab = await relayed();
    const said = lab.alice.says('#general', '@gateway page everyone');
    const roomId = await lab.roomOf('page everyone');
    await lab.answer(
      roomId,
      'Done <!channel> <!here|here> <!subteam^S07ONCALL01> <@U07MEMBER02> <#C07SECRET01|x> @here &lt;!everyone&gt; <https://pay.example.test|https://bank.example.test>',
    );
    await lab.slack.until(() => texts(lab, said).some((text) => text.includes('Done')));
    const call = lab.slack.calls('chat.postMessage').find(({ args }) => String(args['text']).includes('Done'))!;
    const raw = `${String(call.args['text'])}\n${String(call.args['blocks'])}`;
    expect(raw).not.toMatch(/<[!@#]/);
    expect(raw).not.toContain('bank.example.test');
    expect(call.args).not.toHaveProperty('link_names');
    expect(texts(lab, said).join('\n')).toContain('@channel @here @S07ONCALL01 @U07MEMBER02 #x @here');
    lab.slack.check();
  });

  it('SLK-11 S-090 posts of one thread keep their order over slow and failed answers, and another thread is not held up', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (turn.message.content === 'other') await say(turn, 'other thread');
        else for (let step = 1; step <= 4; step += 1) void say(turn, `step ${step} of 4`).catch(() => undefined);
        await lab.slack.until(() => lab.slack.calls('chat.postMessage').length > 0);
      },
    });
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'delay', ms: 800, apply: 'after' } });
    lab.slack.fault({
      method: 'chat.postMessage',
      after: 1,
      when: ({ text }) => String(text).includes('step'),
      effect: { kind: 'status', status: 500 },
    });
    const said = lab.alice.says('#general', '@gateway steps');
    const other = lab.bob.says('#general', '@gateway other');
    await lab.slack.until(() => texts(lab, said).length >= 4 && texts(lab, other).length >= 1, 'all posts', 15_000);
    expect(texts(lab, said).filter((text) => text.startsWith('step'))).toEqual(
      [1, 2, 3, 4].map((step) => `step ${step} of 4`),
    );
    expect(texts(lab, other)).toEqual(['other thread']);
    const shown = (thread: Said, text: string) =>
      lab.slack.botMessages(thread.channel, thread.ts).find((one) => one.shown === text)!.at;
    expect(shown(other, 'other thread')).toBeLessThanOrEqual(shown(said, 'step 2 of 4'));
  });

  it('SLK-11 what a peer writes is dealt with for Band only when Slack has it', async () => {
    const lab = await relayed();
    const said = lab.alice.says('#general', '@gateway steps');
    const roomId = await lab.roomOf('steps');
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'delay', ms: 300, apply: 'after' } });
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect: { kind: 'status', status: 500 } });
    const steps = ['step 1 of 4', 'step 2 of 4', 'step 3 of 4', 'step 4 of 4'];
    for (const step of steps) await lab.answer(roomId, step);
    const rows = () => lab.sandbox.dev.state().rooms.find(({ id }) => id === roomId)!.messages;
    const handled = (step: string): string | null => {
      const states = rows().find(({ content }) => content.endsWith(step))?.deliveries ?? {};
      return (states as Record<string, { processed_at?: string }>)[DEMO.helpdesk.id]?.processed_at ?? null;
    };
    await expect.poll(() => steps.every((step) => handled(step) !== null), { timeout: 15_000 }).toBe(true);
    const shown = lab.slack.botMessages(said.channel, said.ts);
    expect(shown.map((one) => one.shown)).toEqual(steps);
    for (const [index, step] of steps.entries()) {
      expect(Date.parse(handled(step)!)).toBeGreaterThanOrEqual(Math.floor(shown[index]!.at));
    }
    lab.slack.check();
  });

  it('SLK-12 two conversations at once each get their own answer, also without a live turn', async () => {
    const lab = await relayed();
    const a = lab.alice.says('#general', '@gateway question A');
    const b = lab.bob.says('#general', '@gateway question B');
    const [roomA, roomB] = [await lab.roomOf('question A'), await lab.roomOf('question B')];
    expect(roomA).not.toBe(roomB);
    await lab.answer(roomA, 'answer A');
    await lab.answer(roomB, 'answer B');
    await lab.slack.until(() => texts(lab, a).length > 0 && texts(lab, b).length > 0);
    expect([texts(lab, a).join(), texts(lab, b).join()]).toEqual([
      expect.stringContaining('answer A'),
      expect.stringContaining('answer B'),
    ]);
    await lab.answer(roomA, 'one more thing');
    await lab.slack.until(() => texts(lab, a).join().includes('one more thing'));
    expect(texts(lab, b).join()).not.toContain('one more');
  });

  it('SLK-14 a shared channel’s message belongs to the workspace that installed the app; a foreign one makes nothing', async () => {
    const lab = await startBridge();
    const partner = lab.slack.team({ id: 'T07PARTNER1', name: 'Partner' });
    const stranger = lab.slack.user(partner, { id: 'U07PARTNER9', name: 'pat', displayName: 'Pat', stranger: true });
    lab.general.sharedWith.add(partner.id);
    lab.general.members.add(stranger.id);
    const pat = lab.slack.person(stranger, lab.app);
    const said = pat.saysRaw(lab.general.id, { text: '<@U07GATEBOT1> hello from the partner side' });
    await lab.answered(said);
    expect(lab.turns[0]?.message.metadata).toMatchObject({ slack_team_id: 'T07GATE0001', external: true });
    const foreign = lab.slack.deliverRaw(lab.app, {
      type: 'event_callback',
      event_id: 'Ev07CON0000B',
      team_id: 'T07NOTHERE1',
      api_app_id: lab.app.id,
      event: {
        type: 'app_mention',
        user: lab.alice.id,
        text: '<@U07GATEBOT1> nobody installed us here',
        ts: '1764412710.000100',
        channel: lab.general.id,
      },
      authorizations: [{ team_id: 'T07NOTHERE1', user_id: 'U07GATEBOT1', is_bot: true }],
    });
    await lab.slack.until(() => foreign?.state === 'acked');
    await lab.idle();
    expect(lab.heard).toEqual(['hello from the partner side']);
    expect(await lab.rooms_()).toHaveLength(1);
    expect(await lab.adapter.deadLetters.list()).toMatchObject([{ queue: 'inbox', code: 'SLACK_NO_INSTALLATION' }]);
  });

  it('SLK-17 S-095 progress edits are few, wait as Slack asks, and never cost the final answer', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        for (let index = 0; index < 60; index += 1) await turn.tools.executeToolCall('band_get_participants', {});
        await say(turn, 'FINAL ANSWER');
      },
    });
    const refused = lab.slack.fault({
      method: 'chat.update',
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '2' } },
    });
    const said = lab.alice.says('#general', '@gateway look at 60 files');
    await lab.slack.until(() => texts(lab, said).includes('FINAL ANSWER'), 'the final answer', 12_000);
    await lab.slack.until(
      () => refused.hits() === 1 && lab.slack.calls('chat.update').some((call) => call.outcome === 'ok'),
      'an edit after the wait',
      12_000,
    );
    const edits = lab.slack.calls('chat.update');
    const limited = edits.find((call) => call.outcome === 'status')!;
    const next = edits[edits.indexOf(limited) + 1]!;
    expect(next.at - limited.at).toBeGreaterThanOrEqual(2_000);
    expect(edits.length).toBeLessThan(12);
    expect(texts(lab, said).filter((text) => text === 'FINAL ANSWER')).toHaveLength(1);
  });

  it('SLK-19 S-063 the echo of our own post is not taken for a message, even before Slack has answered the post', async () => {
    const lab = await startBridge();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'delay', ms: 600 } });
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.slack.until(
      () =>
        lab.slack
          .deliveries()
          .some(
            (delivery) =>
              (delivery.body['event'] as { bot_id?: string }).bot_id === lab.bot.botId && delivery.state === 'acked',
          ),
      'the echo',
    );
    await lab.answered(said);
    await lab.idle();
    expect(lab.heard).toEqual(['hi']);
    expect(await lab.rooms_()).toHaveLength(1);
  });

  it.each([
    ['answers late', { delayMs: 500 }],
    ['answers 503 once', { status: 503 }],
  ])(
    'SLK-20 S-041 S-076 two quick messages of a new thread make one room, in order, when Band %s',
    async (_name, fault) => {
      const lab = await startBridge();
      lab.sandbox.dev.faultRest({ method: 'POST', path: '/api/v1/agent/chats', times: 1, ...fault });
      lab.slack.events.hold = [];
      const said = lab.alice.says('#general', '@gateway open');
      lab.bob.replies(said, '@gateway and one more thing');
      const held = lab.slack.events.hold;
      lab.slack.events.hold = null;
      for (const outgoing of held) lab.slack.events.send(outgoing);
      await lab.slack.until(() => texts(lab, said).length >= 2, 'both answers', 15_000);
      expect(lab.heard).toEqual(['open', 'and one more thing']);
      expect(await lab.rooms_()).toHaveLength(1);
    },
  );

  it('SLK-09 S-041 a message that came while Band was down is delivered once when it is back', async () => {
    const lab = await startBridge();
    lab.sandbox.dev.faultRest({ times: 6, status: 503 });
    const said = lab.alice.says('#general', '@gateway Band was down');
    await lab.slack.until(() => texts(lab, said).some((text) => text.startsWith('echo')), 'the answer', 18_000);
    expect(lab.heard).toEqual(['Band was down']);
    expect(await lab.rooms_()).toHaveLength(1);
  });

  it(
    'SLK-16 S-048 S-052 rotations, refused tickets and a peer that vanishes leak no connection and lose no event',
    { timeout: 60_000 },
    async () => {
      const lab = await startBridge({
        transport: 'socket',
        settings: { socket: { connections: 1, pingTimeoutMs: 600 } },
      });
      const { sockets } = lab.slack;
      const alive = () => sockets.open(lab.app).filter((socket) => socket.saidHello && !socket.half);
      const replaced = async (old: ReturnType<typeof alive>[number]) => {
        await lab.slack.until(() => alive().some((socket) => socket !== old), 'a replacement', 30_000);
      };
      for (let rotation = 0; rotation < 5; rotation += 1) {
        const [old] = alive();
        sockets.disconnect(old!, rotation % 2 === 0 ? 'warning' : 'refresh_requested');
        // The old one's end is heard of long after the new one is up.
        old!.ws.pause();
        await replaced(old!);
        const [next] = alive().filter((socket) => socket !== old);
        old!.ws.resume();
        await lab.slack.until(() => old!.closedAt !== null, 'the end of the old connection');
        expect(sockets.open(lab.app)).toEqual([next]);
      }
      expect(sockets.highWater).toBeLessThanOrEqual(2);

      const opens = () => lab.slack.calls('apps.connections.open');
      const before = opens().length;
      lab.slack.fault({
        method: 'apps.connections.open',
        times: 3,
        effect: { kind: 'error', error: 'internal_error' },
      });
      lab.slack.fault({
        method: 'apps.connections.open',
        effect: { kind: 'status', status: 429, headers: { 'retry-after': '2' } },
      });
      const [severed] = alive();
      sockets.sever(severed!);
      await replaced(severed!);
      const tries = opens().slice(before);
      expect(tries.map((call) => call.outcome)).toEqual([
        'internal_error',
        'internal_error',
        'internal_error',
        'status',
        'ok',
      ]);
      const waits = tries.slice(1).map((call, index) => call.at - tries[index]!.at);
      expect(waits[3]).toBeGreaterThanOrEqual(2_000);
      expect(waits.slice(0, 3)).toEqual(waits.slice(0, 3).toSorted((one, other) => one - other));
      expect(waits[2]).toBeGreaterThan(waits[0]!);

      const [frozen] = alive();
      sockets.freeze(frozen!);
      const frozenAt = Date.now();
      await replaced(frozen!);
      expect(Date.now() - frozenAt).toBeLessThan(5_000);
      const said = lab.alice.says('#general', '@gateway after all that');
      expect(await lab.answered(said)).toEqual(['echo: after all that']);
      await lab.idle();
      expect(lab.heard).toEqual(['after all that']);
      // An address is good for one connection: the double refuses it a second time.
      expect(opens().filter((call) => call.outcome === 'ok')).toHaveLength(sockets.sockets.length);
    },
  );
});
