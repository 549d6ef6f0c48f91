import { describe, expect, it } from 'vitest';
import { say, startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import { createSkippingClock } from '../../support/skipping-clock.js';
import type { Outgoing } from '../../support/slack/events.js';

const start = async (options: BridgeLabOptions = {}) => {
  const clock = createSkippingClock();
  const lab = await startBridge({ clock, acme: { clock }, ...options });
  return { clock, lab };
};
/** What Slack would send for what is done, not sent yet. */
const held = (lab: BridgeLab, act: () => void): Outgoing[] => {
  lab.slack.events.hold = [];
  act();
  const events = lab.slack.events.hold;
  lab.slack.events.hold = null;
  return events;
};
/** By the time that three others were answered, one after another, what does not wait would have been as well. */
const others = async (lab: BridgeLab) => {
  for (const place of ['#rooms', '#general', 'dm']) await lab.answered(lab.bob.says(place, '@gateway other'));
};
const isEdit = ({ body }: Outgoing) => (body['event'] as { subtype?: string }).subtype === 'message_changed';

describe('events in the wrong order', () => {
  it('S-150 an edit that comes before its message waits for it, and the message has one turn as it stands', async () => {
    const { lab, clock } = await start();
    const events = held(lab, () => {
      const said = lab.alice.says('#general', '@gateway helo');
      lab.alice.edits(said, '@gateway hello');
    });
    for (const edit of events.filter(isEdit)) lab.slack.events.send(edit);
    await lab.slack.settled();
    clock.advance(3_000);
    await others(lab);
    expect(lab.heard).toEqual(['other', 'other', 'other']);
    for (const event of events.filter((one) => !isEdit(one))) lab.slack.events.send(event);
    await lab.slack.until(() => lab.heard.length > 3);
    clock.advance(11_000);
    await lab.idle();
    expect(lab.heard).toEqual(['other', 'other', 'other', 'hello']);
  });

  it('S-150 an edit whose message does not come within ten seconds is taken for it, once', async () => {
    const { lab, clock } = await start();
    const events = held(lab, () => {
      const said = lab.alice.says('#general', '@gateway helo');
      lab.alice.edits(said, '@gateway hello');
    });
    for (const edit of events.filter(isEdit)) lab.slack.events.send(edit);
    await lab.slack.settled();
    clock.advance(8_000);
    await others(lab);
    expect(lab.heard).toEqual(['other', 'other', 'other']);
    clock.advance(2_000);
    await lab.slack.until(() => lab.heard.length > 3);
    for (const event of events.filter((one) => !isEdit(one))) lab.slack.events.send(event);
    await lab.idle();
    expect(lab.heard).toEqual(['other', 'other', 'other', 'hello']);
  });

  it('S-076 a reply that comes before the message it answers shares its room, and both are heard', async () => {
    const { lab } = await start();
    const roots = held(lab, () => lab.alice.says('#general', '@gateway root'));
    const said = {
      channel: lab.general.id,
      ts: lab.general.messages.at(-1)!.ts,
      threadTs: lab.general.messages.at(-1)!.ts,
    };
    lab.bob.replies(said, '@gateway reply');
    await lab.answered(said);
    for (const event of roots) lab.slack.events.send(event);
    await lab.answered(said, 2);
    await lab.idle();
    expect(lab.heard).toEqual(['reply', 'root']);
    expect(await lab.rooms_()).toHaveLength(1);
  });
});

describe('a message that is stopped twice', () => {
  it('S-070 is told so each time, and once each time, with a way to go on', async () => {
    const { lab, clock } = await start({
      onTurn: async (turn) => {
        if (turn.message.content !== 'work') {
          await say(turn, 'hello');
          return;
        }
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => {
            resolve();
          });
        });
      },
    });
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.answered(said);
    await lab.idle();
    const notices = () =>
      lab.slack.ephemerals(said.channel, lab.alice.id).filter(({ text }) => text.includes('is stopped'));
    lab.alice.reacts(said, 'octagonal_sign');
    await lab.answered(said, 2);
    lab.alice.replies(said, 'work');
    await lab.slack.until(() => notices().length === 1);
    lab.alice.reacts(said, 'arrow_forward');
    await lab.slack.until(() => lab.heard.includes('work'));
    clock.advance(1_000);
    lab.alice.unreacts(said, 'octagonal_sign');
    lab.alice.reacts(said, 'octagonal_sign');
    await lab.answered(said, 3);
    for (const round of [1, 2, 3]) {
      clock.advance(3_600_000 + round);
      await lab.slack.settled();
    }
    await lab.slack.until(() => notices().length === 2);
    await lab.slack.settled();
    expect(notices()).toHaveLength(2);
    for (const { buttons } of notices()) expect(buttons).toEqual(['Resume']);
    expect(lab.heard).toEqual(['hi', 'work']);
  });
});
