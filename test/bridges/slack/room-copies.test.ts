import { describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../../src/adapters/generic.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { callRest } from '../../support/rest-call.js';
import { startBridge, say, type BridgeLab } from '../../support/slack/bridge-lab.js';

/** A peer in the thread's room, who says something to the agent there. */
async function peerSays(lab: BridgeLab, content: string): Promise<void> {
  const [room] = await lab.rooms_();
  const path = `/api/v1/agent/chats/${String(room!['id'])}`;
  const as = (key: string, method: string, at: string, body: object) =>
    callRest(lab.sandbox.restUrl, method, path + at, key, body);
  await as(DEMO.helpdesk.apiKey, 'POST', '/participants', { participant: { participant_id: DEMO.dice.id } });
  const sent = await as(DEMO.dice.apiKey, 'POST', '/messages', {
    message: { content, mentions: [{ id: DEMO.helpdesk.id }] },
  });
  expect(sent.status).toBe(201);
}
const rowsOf = async (lab: BridgeLab) => {
  const [room] = await lab.rooms_();
  return await lab.roomRows(String(room!['id']));
};
const copies = async (lab: BridgeLab) =>
  (await rowsOf(lab)).filter((row) => (row['metadata'] as { slack_direction?: string }).slack_direction === 'out');

describe('what peers say in the room', () => {
  it('S-128 stands in the thread under the peer’s name, pages nobody, and never comes back', async () => {
    const heard: string[] = [];
    const inner = new GenericAdapter(async (turn) => {
      heard.push(turn.message.content);
      if (turn.message.senderId.startsWith('slack:')) await say(turn, 'asked');
    });
    const lab = await startBridge({ inner, settings: { relayRoomMessages: 'mentions' } });
    const said = lab.alice.says('#general', '@gateway roll');
    await lab.answered(said);
    await peerSays(lab, `@demo/helpdesk you rolled **7** <!channel> <@${lab.bob.id}>`);
    await lab.answered(said, 2);
    const [, relayed] = lab.slack.botMessages(lab.general, said.ts);
    expect(relayed!.who).toBe('Dice');
    expect(relayed!.shown).toContain('you rolled **7** @channel');
    await lab.slack.settled();
    // The peer's message reached the brain as well; its echo from Slack reached nobody.
    await expect.poll(() => heard.length).toBe(2);
    expect(heard[1]).toContain('you rolled');
    lab.slack.check();
  });

  it('S-128 stays in the room where the settings do not ask for it', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway roll');
    await lab.answered(said);
    await peerSays(lab, '@demo/helpdesk you rolled 7');
    await lab.slack.until(() => lab.heard.length === 2);
    await lab.idle();
    expect(lab.slack.botMessages(lab.general, said.ts).filter((one) => one.who === 'Dice')).toEqual([]);
  });
});

describe('the agent’s replies in the room', () => {
  it('S-129 each adds one thought, which the brain never reads back', async () => {
    const lab = await startBridge({ settings: { mirrorReplies: true } });
    const said = lab.alice.says('#general', '@gateway one');
    await lab.answered(said);
    lab.alice.replies(said, 'two');
    await lab.answered(said, 2);
    await expect.poll(async () => (await copies(lab)).length).toBe(2);
    expect(await copies(lab)).toMatchObject([
      { message_type: 'thought', content: '💬 Slack · answered: echo: one', metadata: { slack_thread_ts: said.ts } },
      { message_type: 'thought', content: '💬 Slack · answered: echo: two' },
    ]);
    const read = lab.turns[1]!.history.raw.map((entry) => entry.content);
    expect(read).toEqual(['one', 'echo: one']);
    await peerSays(lab, '@demo/helpdesk what did you say?');
    await lab.slack.until(() => lab.turns.length === 3);
    expect(JSON.stringify(lab.turns[2]!.history.raw.filter((entry) => entry.messageType === 'text'))).not.toContain(
      'answered:',
    );
  });

  it('S-129 a copy that fails changes nothing, and without the setting there is none', async () => {
    const off = await startBridge();
    await off.answered(off.alice.says('#general', '@gateway one'));
    expect(await copies(off)).toEqual([]);
  });
});
