import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayError } from '../../../src/base/errors.js';
import { DEMO, startSandbox } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { startAcme } from '../../support/slack/acme.js';
import { startBridge, say, type BridgeLab } from '../../support/slack/bridge-lab.js';
import { callRest } from '../../support/rest-call.js';

const noReply = (turn: {
  tools: { executeToolCall: (name: string, args: Record<string, unknown>) => Promise<unknown> };
}) => turn.tools.executeToolCall('slack_no_reply', {}).then(() => undefined);
const rowsOf = async (lab: BridgeLab) => {
  const [room] = await lab.rooms_();
  return lab.roomRows(String(room?.['id']));
};
const gate = () => {
  let open = (): void => undefined;
  const closed = new Promise<void>((resolve) => (open = resolve));
  return { closed, open };
};

describe('a turn', () => {
  it('S-060 a direct message, a mention in a public and one in a private channel each get their answer', async () => {
    const lab = await startBridge();
    for (const place of ['dm', '#general', '#rooms']) {
      const said = lab.alice.says(place, place === 'dm' ? 'hello' : '@gateway hello');
      expect(await lab.answered(said)).toEqual(['echo: hello']);
    }
    expect(await lab.rooms_()).toHaveLength(3);
    lab.slack.check();
  });

  it('S-065 a follow-up without a mention goes on in the same room', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway one');
    await lab.answered(said);
    lab.bob.replies(said, 'two');
    await lab.answered(said, 2);
    expect(lab.heard).toEqual(['one', 'two']);
    expect(new Set(lab.turns.map((turn) => turn.roomId)).size).toBe(1);
  });

  it('S-082 S-077 the brain gets the note, the metadata, and on the first turn the past of the thread', async () => {
    const lab = await startBridge();
    const root = lab.bob.says('#general', 'we have a *problem*');
    lab.alice.replies(root, '@gateway what do you think, @bob?');
    await lab.answered(root);
    const [turn] = lab.turns;
    expect(turn?.participantsMsg?.startsWith('[Slack]')).toBe(true);
    expect(turn?.isSessionBootstrap).toBe(true);
    expect(turn?.message).toMatchObject({ senderName: 'Alice', senderId: `slack:${lab.alice.id}` });
    expect(turn?.message.content).toBe(`what do you think, [@Bob QA](slack://user?team=T07GATE0001&id=${lab.bob.id})?`);
    expect(turn?.message.metadata).toMatchObject({
      slack_channel_name: 'general',
      slack_user_handle: 'alice',
      slack_thread_ts: root.ts,
    });
    expect(turn?.history.raw.map((entry) => entry.content)).toEqual(['we have a **problem**']);
  });

  it('S-077 the past of a thread in use costs no call, holds own answers, and is read anew after an edit', async () => {
    const lab = await startBridge();
    const root = lab.bob.says('#general', 'root');
    lab.alice.replies(root, '@gateway one');
    await lab.answered(root);
    for (const [index, word] of ['two', 'three', 'four'].entries()) {
      await lab.slack.settled();
      lab.alice.replies(root, word);
      await lab.answered(root, index + 2);
    }
    const last = () => lab.turns.at(-1)!.history.raw.map(({ role, content }) => `${role}: ${content}`);
    expect(last()).toEqual([
      'user: root',
      'user: one',
      'assistant: echo: one',
      'user: two',
      'assistant: echo: two',
      'user: three',
      'assistant: echo: three',
    ]);
    const reads = () => lab.slack.calls('conversations.replies').length;
    const before = reads();
    expect(before).toBeLessThanOrEqual(2);
    lab.bob.edits(root, 'root, corrected');
    await lab.slack.settled();
    lab.alice.replies(root, 'five');
    await lab.answered(root, 5);
    expect(reads()).toBe(before + 1);
    expect(last()[0]).toBe('user: root, corrected');
  });

  it.each(['a delivery was refused', 'no connection was open', 'Slack dropped events'] as const)(
    'S-077 the past of a thread in use is read anew after %s, so that it holds what never came',
    async (why) => {
      const transport = why === 'no connection was open' ? 'socket' : 'http';
      const store = createMemoryStore();
      const lab = await startBridge({ store, transport, settings: { socket: { connections: 1 } } });
      const root = lab.bob.says('#general', 'root');
      lab.alice.replies(root, '@gateway one');
      await lab.answered(root);
      lab.alice.replies(root, 'two');
      await lab.answered(root, 2);
      await lab.idle();
      lab.slack.events.hold = [];
      lab.bob.replies(root, 'never came');
      lab.slack.events.hold = null;
      if (why === 'a delivery was refused') {
        const batch = store.batch.bind(store);
        store.batch = () => Promise.reject(new GatewayError('STORE_TRIPPED'));
        lab.bob.says('#rooms', 'of something else');
        await lab.slack.until(() => lab.slack.deliveries().at(-1)!.attempts[0]?.outcome === '503');
        store.batch = batch;
      } else if (why === 'no connection was open') {
        const [socket] = lab.slack.sockets.open(lab.app);
        lab.slack.sockets.sever(socket!);
        await lab.slack.until(() => lab.slack.sockets.open(lab.app).some((one) => one !== socket && one.saidHello));
      } else {
        const dropped = { type: 'app_rate_limited', team_id: lab.team.id, minute_rate_limited: 1 };
        const told = lab.slack.deliverRaw(lab.app, dropped);
        await lab.slack.until(() => told?.state === 'acked');
      }
      lab.alice.replies(root, 'three');
      await lab.slack.until(() => lab.heard.includes('three'));
      expect(lab.turns.at(-1)!.history.raw.map(({ content }) => content)).toContain('never came');
    },
  );

  it('S-085 what the person wrote stands in the room as a thought before the brain begins', async () => {
    const before: number[] = [];
    const lab: BridgeLab = await startBridge({
      onTurn: async (turn) => {
        before.push((await lab.roomRows(turn.roomId)).filter((row) => row['message_type'] === 'thought').length);
        await say(turn, 'ok');
      },
    });
    const said = lab.alice.says('#general', '@gateway look *here*');
    await lab.answered(said);
    expect(before).toEqual([1]);
    const thought = (await rowsOf(lab)).find((row) => row['message_type'] === 'thought');
    expect(thought?.['content']).toBe('💬 Slack · #general — Alice (@alice): look **here**');
    expect(thought?.['metadata']).toMatchObject({ slack_mirror: true, slack_ts: said.ts });
  });

  it('S-085 the mirror can be off', async () => {
    const lab = await startBridge({ settings: { mirrorSlackContext: false } });
    await lab.answered(lab.alice.says('#general', '@gateway hi'));
    expect((await rowsOf(lab)).map((row) => row['message_type'])).toEqual(['task']);
  });

  it('S-080 two messages of one thread never run at once', async () => {
    let running = 0;
    let most = 0;
    const lab = await startBridge({
      onTurn: async (turn) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        await say(turn, turn.message.content);
        running -= 1;
      },
    });
    const said = lab.alice.says('#general', '@gateway 0');
    for (let index = 1; index < 6; index += 1) lab.alice.replies(said, `@gateway ${index}`);
    expect(await lab.answered(said, 6)).toEqual(['0', '1', '2', '3', '4', '5']);
    expect(most).toBe(1);
  });

  it('S-081 of many threads at once no more run than allowed, and all are answered', async () => {
    let running = 0;
    let most = 0;
    const count = Number(process.env['SLACK_THREADS'] ?? 24);
    const lab = await startBridge({
      settings: { maxConcurrentTurns: 7, mirrorSlackContext: false, status: 'off' },
      onTurn: async (turn) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setTimeout(resolve, 2));
        await say(turn, 'ok');
        running -= 1;
      },
    });
    // Three threads a channel, since Slack takes a burst of three posts in one.
    const channels = Array.from({ length: Math.ceil(count / 3) }, (_, index) =>
      lab.slack.channel(lab.team, { name: `room-${index}`, members: [lab.alice.id, lab.bot.botUserId] }),
    );
    const threads = Array.from({ length: count }, (_, index) =>
      lab.alice.says(channels[index % channels.length]!.id, `@gateway ${index}`),
    );
    await lab.slack.until(() => threads.every((said) => lab.answers(said).length === 1), 'all answers', 19_000);
    expect(most).toBe(7);
  });

  it('S-086 a turn that shows nothing ends with a notice, unless it said that there is nothing to say', async () => {
    const lab = await startBridge({
      onTurn: (turn) => (turn.message.content === 'decline' ? noReply(turn) : Promise.resolve()),
    });
    const silent = lab.alice.says('#general', '@gateway silence');
    const [notice] = await lab.answered(silent);
    expect(notice).not.toBe('');
    expect(lab.slack.botMessages(lab.general, silent.ts)[0]?.metadata?.event_payload).toMatchObject({ t: 'notice' });
    const declined = lab.alice.says('#general', '@gateway decline');
    await lab.slack.until(() => lab.heard.includes('decline'));
    await lab.idle();
    expect(lab.answers(declined)).toEqual([]);
  });

  it('S-086 an answer that went to the room alone ends with the notice as well', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        await turn.tools.executeToolCall('band_send_event', { content: 'looking', message_type: 'thought' });
        await turn.tools.executeToolCall('band_add_participant', { identifier: 'demo/echo' });
        await turn.tools.executeToolCall('band_send_message', { content: 'over there', mentions: ['@demo/echo'] });
      },
    });
    const said = lab.alice.says('#general', '@gateway tell echo');
    await lab.slack.until(
      () => lab.slack.botMessages(lab.general, said.ts).some((one) => one.metadata?.event_payload['t'] === 'notice'),
      'a notice',
    );
  });

  it('S-086 the notice can be off', async () => {
    const lab = await startBridge({ settings: { silentTurn: 'none' }, onTurn: () => Promise.resolve() });
    const said = lab.alice.says('#general', '@gateway silence');
    await lab.slack.until(() => lab.heard.length === 1);
    await lab.idle();
    expect(lab.answers(said)).toEqual([]);
  });

  it('S-087 a turn that throws gives a notice with a reference and Retry, an error in the room, and the next message works', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (turn.message.content === 'break') throw new Error('internal detail <!channel>');
        await say(turn, 'fine');
      },
    });
    const said = lab.alice.says('#general', '@gateway break');
    const [notice] = await lab.answered(said);
    const reference = /[A-Za-z0-9_-]{6,}/.exec(notice!.split('eference').at(-1) ?? '')?.[0];
    expect(reference).toBeDefined();
    expect(notice).not.toContain('internal detail');
    expect(lab.slack.botMessages(lab.general, said.ts)[0]?.buttons).toEqual(['Retry']);
    await expect.poll(async () => (await rowsOf(lab)).some((row) => row['message_type'] === 'error')).toBe(true);
    lab.alice.replies(said, 'again');
    expect((await lab.answered(said, 2)).at(-1)).toBe('fine');
    lab.slack.check();
  });

  it('S-087 a turn that takes too long is cut with a notice and Retry, and what it does later is refused', async () => {
    const { closed, open } = gate();
    const late: unknown[] = [];
    const lab = await startBridge({
      settings: { turnTimeoutSeconds: 0.2 },
      onTurn: async (turn) => {
        await closed;
        late.push(await say(turn, 'too late'));
      },
    });
    const said = lab.alice.says('#general', '@gateway slow');
    await lab.answered(said);
    expect(lab.slack.botMessages(lab.general, said.ts)[0]?.buttons).toEqual(['Retry']);
    open();
    await lab.slack.until(() => late.length === 1).catch(() => undefined);
    await expect.poll(() => late.length).toBe(1);
    expect(JSON.stringify(late[0])).toContain('turn_ended');
    expect(lab.answers(said)).toHaveLength(1);
  });

  it('S-088 Retry runs the same message once more, once', async () => {
    let fails = true;
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (fails) throw new Error('no');
        await say(turn, `second try of ${turn.message.content}`);
      },
    });
    const said = lab.alice.says('#general', '@gateway task');
    await lab.answered(said);
    fails = false;
    const press = () => lab.alice.clicks('Retry', { channel: lab.general.id, threadTs: said.ts });
    const first = press();
    const second = lab.slack.deliverRaw(lab.app, { ...first.delivery!.body, trigger_id: 'other' }, 'interactive');
    await lab.slack.until(() => first.delivery?.state === 'acked' && second?.state === 'acked');
    await lab.slack.until(() => lab.answers(said).includes('second try of task'));
    await lab.idle();
    expect(lab.heard).toEqual(['task', 'task']);
    expect(lab.answers(said).filter((text) => text.startsWith('second try'))).toHaveLength(1);
  });

  it.each([
    ['by a defect', new Error('then it broke')],
    ['since Band was out of reach', new GatewayError('BAND_UNREACHABLE')],
    ['since the store was', new GatewayError('STORE_TRIPPED')],
  ])('S-089 a turn that has posted is not run again by itself after it failed %s', async (_how, error) => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        await say(turn, 'half of it');
        throw error;
      },
    });
    const said = lab.alice.says('#general', '@gateway go');
    await lab.answered(said, 2);
    await lab.idle();
    expect(lab.heard).toEqual(['go']);
    expect(lab.answers(said)).toHaveLength(2);
    expect(lab.answers(said)[0]).toBe('half of it');
    expect(lab.slack.botMessages(lab.general, said.ts).at(-1)?.buttons).toEqual(['Retry']);
  });

  it('S-133 the status is shown before the brain begins and taken away after it, also when it throws', async () => {
    const shown: (string | null)[] = [];
    const lab: BridgeLab = await startBridge({
      onTurn: async (turn) => {
        const ts = (turn.message.metadata as { slack_thread_ts: string }).slack_thread_ts;
        await lab.slack.until(() => lab.slack.status(lab.general.id, ts) !== null, 'a status');
        shown.push(lab.slack.status(lab.general.id, ts));
        if (turn.message.content === 'break') throw new Error('no');
        await noReply(turn);
      },
    });
    for (const word of ['fine', 'break']) {
      const said = lab.alice.says('#general', `@gateway ${word}`);
      await lab.slack.until(() => lab.heard.includes(word));
      await lab.slack.until(() => lab.slack.status(lab.general.id, said.ts) === null, 'no status');
    }
    expect(shown).toEqual(['is thinking…', 'is thinking…']);
  });

  it('S-133 a refused status changes nothing', async () => {
    const lab = await startBridge();
    lab.slack.fault({
      method: 'assistant.threads.setStatus',
      times: 50,
      effect: { kind: 'error', error: 'not_allowed_token_type' },
    });
    const said = lab.alice.says('#general', '@gateway hi');
    expect(await lab.answered(said)).toEqual(['echo: hi']);
  });

  it('S-083 S-084 a message of the room reaches the brain with the note in front, and its reply reaches the thread', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        await say(turn, turn.message.senderType === 'User' ? 'for Slack, from the room' : 'hello');
      },
    });
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.answered(said);
    const roomId = lab.turns[0]!.roomId;
    const person = (method: string, path: string, body?: unknown) =>
      callRest(lab.sandbox.restUrl, method, `/api/v1${path}`, DEMO.helpdesk.apiKey, body);
    await person('POST', `/agent/chats/${roomId}/participants`, {
      participant: { participant_id: DEMO.user.id, role: 'member' },
    });
    await callRest(lab.sandbox.restUrl, 'POST', `/api/v1/me/chats/${roomId}/messages`, DEMO.user.apiKey, {
      message: { content: '@helpdesk tell them', mentions: [{ id: DEMO.helpdesk.id }] },
    });
    expect(await lab.answered(said, 2)).toEqual(['hello', 'for Slack, from the room']);
    const note = lab.turns[1]?.participantsMsg ?? '';
    expect(note.startsWith('[Slack]')).toBe(true);
    expect(note).toContain('\n\n');
  });

  it('S-079 S-083 so does a reply in a room that the reference opened, which names no workspace', async () => {
    const world = await startAcme({ rates: false });
    onTestFinished(() => world.slack.stop());
    const said = world.alice.says('#general', 'hello');
    const sandbox = await startSandbox({ port: 0 });
    onTestFinished(() => sandbox.close());
    const agent = async (path: string, body: unknown) =>
      (await callRest(sandbox.restUrl, 'POST', `/api/v1/agent${path}`, DEMO.helpdesk.apiKey, body)).body as {
        data: { id: string };
      };
    const { data: room } = await agent('/chats', { chat: {} });
    const metadata = {
      slack_app_slug: 'main',
      slack_channel_id: said.channel,
      slack_thread_ts: said.ts,
      slack_user_id: world.alice.id,
      slack_room_id: room.id,
    };
    const event = { content: 'Slack thread context', message_type: 'task', metadata };
    await agent(`/chats/${room.id}/events`, { event });
    await agent(`/chats/${room.id}/participants`, { participant: { participant_id: DEMO.user.id, role: 'member' } });
    const lab = await startBridge({ world, sandbox, onTurn: (turn) => say(turn, 'for Slack').then(() => undefined) });
    await callRest(sandbox.restUrl, 'POST', `/api/v1/me/chats/${room.id}/messages`, DEMO.user.apiKey, {
      message: { content: '@helpdesk tell them', mentions: [{ id: DEMO.helpdesk.id }] },
    });
    expect(await lab.answered(said)).toEqual(['for Slack']);
  });
});
