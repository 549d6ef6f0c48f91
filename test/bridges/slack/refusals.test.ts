import { describe, expect, it } from 'vitest';
import { say, startBridge, type BridgeLab } from '../../support/slack/bridge-lab.js';
import type { Said } from '../../support/slack/people.js';
import { createSkippingClock } from '../../support/skipping-clock.js';

const HOUR_MS = 3_600_000;

const reactionsOn = (lab: BridgeLab, said: Said) =>
  lab.general.messages.find(({ ts }) => ts === said.ts)!.reactions.map(({ name }) => name);

describe('who is refused', () => {
  it('S-068 is told so once an hour in one place, as a person and by an ephemeral message', async () => {
    const clock = createSkippingClock();
    const settings = { allow: ['C07ROOMS001', 'C07ROOMS002'], deny: ['U07MEMBER01', 'U07MEMBER02'] };
    const lab = await startBridge({ clock, acme: { clock }, settings });
    const told = (channel: string, id: string) => lab.slack.ephemerals(channel, id).map(({ text }) => text);
    // So that the hour of the clock ends between two of them.
    clock.advance(HOUR_MS - (clock.now() % HOUR_MS) - 60_000);
    for (let minute = 0; minute < 4; minute += 1) {
      lab.alice.says('#general', '@gateway let me');
      await lab.idle();
      clock.advance(60_000);
    }
    expect(told(lab.general.id, lab.alice.id)).toEqual(['I am not set up to answer you here.']);
    lab.bob.says('#general', '@gateway me too');
    lab.alice.says('#rooms', '@gateway or here');
    await lab.idle();
    expect(told(lab.general.id, lab.bob.id)).toHaveLength(1);
    expect(told(lab.rooms.id, lab.alice.id)).toHaveLength(1);
    clock.advance(HOUR_MS);
    lab.alice.says('#general', '@gateway again');
    await lab.idle();
    expect(told(lab.general.id, lab.alice.id)).toHaveLength(2);
    expect(lab.heard).toEqual([]);
    expect(await lab.answered(lab.carol.says('#general', '@gateway and me?'))).toEqual(['echo: and me?']);
  });

  it('S-068 sees a sign on the message, or nothing, where that is set', async () => {
    const signs = await startBridge({ settings: { deny: ['U07MEMBER01'], denyReply: 'reaction' } });
    const first = signs.alice.says('#general', '@gateway let me');
    const second = signs.alice.says('#general', '@gateway please');
    await signs.idle();
    expect(reactionsOn(signs, first)).toEqual(['no_entry_sign']);
    expect(reactionsOn(signs, second)).toEqual([]);
    const silent = await startBridge({ settings: { deny: ['U07MEMBER01'], denyReply: 'none' } });
    const said = silent.alice.says('#general', '@gateway let me');
    await silent.idle();
    expect(reactionsOn(silent, said)).toEqual([]);
    for (const lab of [signs, silent]) {
      expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toEqual([]);
      expect(lab.heard).toEqual([]);
    }
  });

  it('S-069 guests and strangers are known by what Slack says of them', async () => {
    const lab = await startBridge({
      settings: { deny: ['guests', 'ext'] },
      onTurn: async (turn) => {
        await say(turn, 'welcome');
      },
    });
    const guest = lab.slack.user(lab.team, { id: 'U07GUEST001', name: 'gus', guest: true });
    const partner = lab.slack.team({ id: 'T07PARTNER1', name: 'Partner' });
    const stranger = lab.slack.user(partner, { id: 'U07PARTNER9', name: 'pat', stranger: true });
    lab.general.sharedWith.add(partner.id);
    for (const { id } of [guest, stranger]) lab.general.members.add(id);
    for (const user of [guest, stranger]) {
      lab.slack.person(user, lab.app).saysRaw(lab.general.id, { text: '<@U07GATEBOT1> hello' });
    }
    await lab.idle();
    expect(lab.heard).toEqual([]);
    expect([guest, stranger].map(({ id }) => lab.slack.ephemerals(lab.general, id).length)).toEqual([1, 1]);
    expect(await lab.answered(lab.alice.says('#general', '@gateway hello'))).toEqual(['welcome']);
  });
});
