import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { Debts, Turn, type TurnEnd } from '../../../../bridges/acp/inbound/turn.js';
import { toPerson } from '../../../../bridges/acp/roster.js';
import { person } from '../../../support/acp/fake-band.js';

const times = { graceMs: 250, settleMs: 300, stragglerMs: 20_000, idleTimeoutMs: 300_000, maxMs: 3_600_000 };
const codex = toPerson({ ...person('codex'), role: 'member' });
const reviewer = toPerson({ ...person('reviewer'), role: 'member' });
const bob = toPerson({ ...person('bob', 'User'), role: 'member' });

function begin(recipients = [codex, reviewer], own: Partial<typeof times> = {}) {
  const clock = createManualClock();
  const turn = new Turn(clock, { ...times, ...own }, recipients);
  const seen: { end: TurnEnd | null; at: number } = { end: null, at: 0 };
  const start = clock.now();
  void turn.end.then((end) => {
    seen.end = end;
    seen.at = clock.now() - start;
  });
  turn.posted();
  return { clock, turn, seen };
}
const states = (...pairs: [string, string][]) => new Map(pairs);

describe('Turn', () => {
  it('C1 ends a grace after everybody is known to have finished', async () => {
    const { clock, turn, seen } = begin([codex]);
    turn.text(codex.id, false);
    turn.delivery(states([codex.id, 'processing']));
    await clock.advance(10_000);
    expect(seen.end).toBeNull();
    turn.delivery(states([codex.id, 'processed']));
    await clock.advance(249);
    expect(seen.end).toBeNull();
    await clock.advance(1);
    expect(seen).toEqual({ end: { kind: 'ended' }, at: 10_250 });
  });

  it('P-084 fails when everybody failed and nothing was said', async () => {
    const { clock, turn, seen } = begin();
    turn.delivery(states([codex.id, 'failed'], [reviewer.id, 'failed']));
    await clock.advance(250);
    expect(seen.end).toEqual({ kind: 'failed' });
  });

  it('a failed delivery that is tried again counts as open', async () => {
    const { clock, turn, seen } = begin([codex]);
    turn.delivery(states([codex.id, 'failed']));
    await clock.advance(200);
    turn.delivery(states([codex.id, 'processing']));
    await clock.advance(5_000);
    expect(seen.end).toBeNull();
  });

  it('C2 ends a settle time after everybody replied, where states are unknown', async () => {
    const { clock, turn, seen } = begin();
    turn.text(codex.id, false);
    await clock.advance(5_000);
    turn.text(reviewer.id, false);
    await clock.advance(299);
    turn.text(reviewer.id, false);
    await clock.advance(299);
    expect(seen.end).toBeNull();
    await clock.advance(1);
    expect(seen.end).toEqual({ kind: 'ended' });
  });

  it('C3 waits long for the silent ones, and names them', async () => {
    const { clock, turn, seen } = begin();
    turn.text(codex.id, false);
    await clock.advance(19_999);
    expect(seen.end).toBeNull();
    await clock.advance(1);
    expect(seen.end).toEqual({ kind: 'ended' });
    expect(turn.pending).toEqual(['ana/reviewer']);
    expect(turn.replied).toEqual(['ana/codex']);
  });

  it('C3 an agent that was not asked may answer in their place; a person may not', async () => {
    const other = begin([codex]);
    other.turn.text('somebody', false);
    await other.clock.advance(20_000);
    expect(other.seen.end).toEqual({ kind: 'ended' });
    const human = begin([codex]);
    human.turn.activity();
    await human.clock.advance(299_000);
    expect(human.seen.end).toBeNull();
  });

  it('C4 times out without any reply, counted from the last activity', async () => {
    const { clock, turn, seen } = begin([codex]);
    await clock.advance(200_000);
    turn.activity();
    await clock.advance(299_999);
    expect(seen.end).toBeNull();
    await clock.advance(1);
    expect(seen.end).toEqual({ kind: 'timeout', waitedMs: 500_000 });
  });

  it('C5 the cap ends a turn that is kept busy', async () => {
    const { clock, turn, seen } = begin([codex], { maxMs: 10_000, idleTimeoutMs: 6_000 });
    for (let i = 0; i < 5; i += 1) {
      turn.activity();
      await clock.advance(2_000);
    }
    expect(seen).toEqual({ end: { kind: 'timeout', waitedMs: 10_000 }, at: 10_000 });
    const answered = begin([codex], { maxMs: 10_000 });
    answered.turn.text(codex.id, false);
    answered.turn.delivery(states([codex.id, 'processing']));
    await answered.clock.advance(10_000);
    expect(answered.seen).toEqual({ end: { kind: 'ended' }, at: 10_000 });
  });

  it('C6 with people only, ends as soon as it is posted', async () => {
    const { clock, seen } = begin([bob]);
    await clock.advance(0);
    expect(seen).toEqual({ end: { kind: 'ended' }, at: 0 });
  });

  it('P-095 a reply to an older prompt answers nothing, and starts a ten-second settle', async () => {
    const { clock, turn, seen } = begin([codex]);
    turn.text(codex.id, true);
    await clock.advance(9_999);
    expect(seen.end).toBeNull();
    turn.text(codex.id, false);
    await clock.advance(300);
    expect(seen.end).toEqual({ kind: 'ended' });
    const merged = begin([codex]);
    merged.turn.text(codex.id, true);
    await merged.clock.advance(10_000);
    expect(merged.seen.end).toEqual({ kind: 'ended' });
    expect(merged.turn.pending).toEqual(['ana/codex']);
  });

  it('ends once, and leaves no timer', async () => {
    const { clock, turn, seen } = begin([codex]);
    turn.finish({ kind: 'cancelled' });
    turn.finish({ kind: 'ended' });
    turn.text(codex.id, false);
    await clock.advance(0);
    expect(seen.end).toEqual({ kind: 'cancelled' });
    expect(clock.pending).toBe(0);
  });
});

describe('Debts', () => {
  it('are paid one by one and expire', () => {
    const debts = new Debts();
    debts.add('a', 100);
    debts.add('a', 200);
    expect(debts.take('a', 50)).toBe(true);
    expect(debts.take('a', 50)).toBe(true);
    expect(debts.take('a', 50)).toBe(false);
    debts.add('a', 100);
    expect(debts.take('a', 100)).toBe(false);
    expect(debts.size).toBe(0);
  });
});
