import { describe, expect, it } from 'vitest';
import { Turn, type TurnEffect } from '../../src/core/turn.js';

const after = (...effects: TurnEffect[]) => {
  const turn = new Turn();
  for (const effect of effects) turn.record(effect);
  return turn;
};

describe('Turn', () => {
  it.each<[string, TurnEffect[], boolean, boolean]>([
    ['nothing', [], false, false],
    ['reads and events', ['observe', 'observe'], false, false],
    ['an act', ['observe', 'act'], true, false],
    ['a reply', ['reply'], true, true],
    ['declining', ['decline'], true, true],
    ['an act and a reply', ['act', 'reply'], true, true],
  ])('R-277 after %s the turn is complete: %j', (_what, effects, complete, replied) => {
    expect(after(...effects)).toMatchObject({ complete, replied });
  });

  it('R-277 settling and a reported failure each complete a turn without being a reply', () => {
    const settled = new Turn();
    settled.settle();
    expect(settled).toMatchObject({ complete: true, replied: false, reported: false });
    const reported = new Turn();
    reported.noteReported();
    expect(reported).toMatchObject({ complete: true, replied: false, reported: true });
  });

  it('R-273 an ended turn takes no notes', () => {
    const turn = new Turn();
    turn.end();
    turn.record('reply');
    expect(turn).toMatchObject({ ended: true, aborted: false, complete: false });
  });

  it('R-273 a turn ends when its signal aborts', () => {
    const controller = new AbortController();
    const turn = new Turn({ signal: controller.signal });
    expect(turn.ended).toBe(false);
    controller.abort();
    turn.record('reply');
    expect(turn).toMatchObject({ ended: true, aborted: true, complete: false });
  });
});
