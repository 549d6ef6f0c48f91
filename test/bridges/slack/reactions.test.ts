import { describe, expect, it } from 'vitest';
import { startBridge, say, type BridgeLab } from '../../support/slack/bridge-lab.js';

const feedback = async (lab: BridgeLab) => {
  const [room] = await lab.rooms_();
  return (await lab.roomRows(String(room!['id']))).filter((row) =>
    Object.hasOwn(row['metadata'] as object, 'slack_feedback'),
  );
};
const replyOf = (lab: BridgeLab, said: { channel: string; threadTs: string }) => {
  const [reply] = lab.slack.botMessages(said.channel, said.threadTs);
  return { channel: said.channel, ts: reply!.ts, threadTs: said.threadTs };
};

describe('a reaction', () => {
  it('S-155 the arrows on a message make it run once more, once, for those who take part', async () => {
    let runs = 0;
    const lab = await startBridge({ onTurn: (turn) => say(turn, `answer ${(runs += 1)}`).then(() => undefined) });
    const said = lab.alice.says('#general', '@gateway question');
    await lab.answered(said);
    lab.bob.reacts(said, 'arrows_counterclockwise');
    await lab.idle();
    expect(runs).toBe(1);
    lab.alice.reacts(said, 'arrows_counterclockwise');
    expect(await lab.answered(said, 2)).toEqual(['answer 1', 'answer 2']);
    lab.alice.unreacts(said, 'arrows_counterclockwise');
    lab.alice.reacts(replyOf(lab, said), 'arrows_counterclockwise');
    await lab.idle();
    expect(runs).toBe(2);
    lab.slack.check();
  });

  it('S-155 a thumb on an answer is a thought in the room: who, which way, and on what', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway question');
    await lab.answered(said);
    lab.bob.reacts(replyOf(lab, said), '+1::skin-tone-3');
    await expect.poll(async () => (await feedback(lab)).length).toBe(1);
    lab.alice.reacts(replyOf(lab, said), '-1');
    await expect.poll(async () => (await feedback(lab)).length).toBe(2);
    expect(await feedback(lab)).toMatchObject([
      {
        message_type: 'thought',
        content: '💬 Slack · #general — Bob [QA] (@bob): 👍 echo: question',
        metadata: { slack_feedback: 'positive', slack_user_id: lab.bob.id, slack_thread_ts: said.ts },
      },
      { metadata: { slack_feedback: 'negative', slack_user_id: lab.alice.id } },
    ]);
    lab.alice.reacts(said, '+1');
    await lab.idle();
    expect(await feedback(lab)).toHaveLength(2);
  });

  it('S-155 means what the settings say, and nothing where they are empty', async () => {
    const lab = await startBridge({ settings: { reactions: { recycle: 'retry' } } });
    const said = lab.alice.says('#general', '@gateway question');
    await lab.answered(said);
    lab.alice.reacts(said, 'arrows_counterclockwise');
    await lab.slack.settled();
    lab.alice.reacts(said, 'recycle');
    await lab.answered(said, 2);
    const none = await startBridge({ settings: { reactions: {} } });
    const other = none.alice.says('#general', '@gateway question');
    await none.answered(other);
    none.alice.reacts(other, 'arrows_counterclockwise');
    none.alice.reacts(replyOf(none, other), '+1');
    await none.idle();
    expect(none.heard).toHaveLength(1);
    expect(await feedback(none)).toEqual([]);
  });

  it('S-155 in a thread that no room stands for means nothing, and costs no call elsewhere', async () => {
    const lab = await startBridge();
    const talk = lab.bob.says('#general', 'not for the agent');
    await lab.slack.settled();
    lab.bob.reacts(talk, 'arrows_counterclockwise');
    lab.bob.reacts(talk, 'octagonal_sign');
    await lab.idle();
    expect(lab.heard).toEqual([]);
    expect(lab.slack.calls('conversations.replies')).toEqual([]);
  });
});
