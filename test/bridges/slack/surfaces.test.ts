import { describe, expect, it } from 'vitest';
import { USUAL_EVENTS } from '../../support/slack/double.js';
import { startBridge, type BridgeLab } from '../../support/slack/bridge-lab.js';

const prompts = [
  { title: 'Build', message: 'Is the build green?' },
  { title: 'On call', message: 'Who is on call?' },
];
const agent = (settings = {}) =>
  startBridge({ settings, acme: { app: { surface: 'agent', events: [...USUAL_EVENTS, 'app_context_changed'] } } });
const assistant = (settings = {}) =>
  startBridge({
    settings,
    acme: {
      app: {
        surface: 'assistant',
        events: [...USUAL_EVENTS, 'assistant_thread_started', 'assistant_thread_context_changed'],
      },
    },
  });
const dmOf = (lab: BridgeLab) => lab.slack.directChannel(lab.alice.user, lab.bot);
const shown = (lab: BridgeLab) => lab.slack.world.prompts.get(dmOf(lab).id);
const looks = (value: string) => ({ entities: [{ type: 'slack#/types/channel_id', value, team_id: 'T07GATE0001' }] });
const contextOf = (lab: BridgeLab, turn = 0) =>
  (lab.turns[turn]!.message.metadata as { slack_context?: unknown }).slack_context;

describe('suggested prompts', () => {
  it('S-137 stand above the conversation of an agent app, without a thread', async () => {
    const lab = await agent({ suggestedPrompts: prompts });
    lab.alice.opensDm();
    await lab.slack.until(() => shown(lab) !== undefined, 'prompts');
    expect(shown(lab)).toEqual(prompts);
    const [call] = lab.slack.calls('assistant.threads.setSuggestedPrompts');
    expect(call!.args).not.toHaveProperty('thread_ts');
    lab.slack.check();
  });

  it('S-137 stand in the new thread of an assistant app', async () => {
    const lab = await assistant({ suggestedPrompts: prompts });
    const channel = dmOf(lab).id;
    const thread = { user_id: lab.alice.id, channel_id: channel, thread_ts: '1764412000.000100', context: {} };
    lab.slack.emitEvent(lab.app, lab.team.id, { type: 'assistant_thread_started', assistant_thread: thread });
    await lab.slack.until(() => shown(lab) !== undefined, 'prompts');
    expect(lab.slack.calls('assistant.threads.setSuggestedPrompts')[0]!.args).toMatchObject({
      thread_ts: '1764412000.000100',
    });
    lab.slack.check();
  });

  it('S-137 are not asked for where there are none, and a refusal disturbs nothing', async () => {
    const none = await agent();
    none.alice.opensDm();
    await none.idle();
    expect(none.slack.calls('assistant.threads.setSuggestedPrompts')).toEqual([]);
    const lab = await agent({ suggestedPrompts: prompts });
    const error = 'unknown_method';
    lab.slack.fault({ method: 'assistant.threads.setSuggestedPrompts', effect: { kind: 'error', error } });
    lab.alice.opensDm();
    await lab.answered(lab.alice.says('dm', 'hello'));
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
  });

  it('S-137 are four at most', async () => {
    await expect(agent({ suggestedPrompts: Array.from({ length: 5 }, () => prompts[0]!) })).rejects.toThrow();
  });
});

describe('what a person looks at', () => {
  it('S-138 reaches the brain with what they write to the app directly, until they look elsewhere', async () => {
    const lab = await agent();
    const look = async (context: object) => {
      lab.slack.emitEvent(lab.app, lab.team.id, { type: 'app_context_changed', user: lab.alice.id, context });
      await lab.slack.settled();
    };
    await look(looks('C07ROOMS001'));
    const said = lab.alice.says('dm', 'what is this about?');
    await lab.answered(said);
    expect(contextOf(lab)).toEqual(looks('C07ROOMS001'));
    await lab.answered(lab.alice.says('#general', '@gateway and here?'));
    expect(contextOf(lab, 1)).toBeUndefined();
    await lab.answered(lab.bob.says('dm', 'and for me?'));
    expect(contextOf(lab, 2)).toBeUndefined();
    await look({});
    lab.alice.replies(said, 'and now?');
    await lab.answered(said, 2);
    expect(contextOf(lab, 3)).toBeUndefined();
  });

  it('S-138 comes folded into the message itself as well, and that counts', async () => {
    const lab = await agent();
    const channel = dmOf(lab);
    const event = {
      type: 'message',
      channel: channel.id,
      channel_type: 'im',
      user: lab.alice.id,
      text: 'look',
      ts: lab.slack.world.nextTs(channel),
      app_context: looks('C07ROOMS002'),
    };
    lab.slack.emitEvent(lab.app, lab.team.id, {
      type: 'app_context_changed',
      user: lab.alice.id,
      context: looks('C1'),
    });
    await lab.slack.settled();
    lab.slack.deliverRaw(lab.app, {
      type: 'event_callback',
      event_id: 'EvFolded',
      team_id: lab.team.id,
      event,
      authorizations: [{ team_id: lab.team.id, user_id: lab.bot.botUserId, is_bot: true }],
    });
    await lab.slack.until(() => lab.heard.length === 1);
    expect(contextOf(lab)).toEqual(looks('C07ROOMS002'));
  });

  it('S-138 an assistant’s thread has the context that its events tell', async () => {
    const lab = await assistant();
    const said = lab.alice.says('dm', 'one');
    await lab.answered(said);
    const thread = { user_id: lab.alice.id, channel_id: said.channel, thread_ts: said.ts };
    const context = { channel_id: 'C07ROOMS001', team_id: lab.team.id };
    lab.slack.emitEvent(lab.app, lab.team.id, {
      type: 'assistant_thread_context_changed',
      assistant_thread: { ...thread, context },
    });
    await lab.slack.settled();
    lab.alice.replies(said, 'two');
    await lab.answered(said, 2);
    expect(contextOf(lab, 1)).toEqual(context);
  });
});
