import { describe, expect, it } from 'vitest';
import { Roster } from '../../src/core/participants.js';

describe('Roster', () => {
  it('R-251 a source that lacks a field never erases it', () => {
    const roster = new Roster();
    roster.merge({ id: 'a', name: 'Ann', type: 'User', handle: '@ann', description: 'likes tea' });
    roster.merge({ id: 'a', name: '', handle: null, description: undefined });
    roster.merge({ id: 'a', name: 'Anna' });
    expect(roster.list()).toEqual([{ id: 'a', name: 'Anna', type: 'User', handle: 'ann', description: 'likes tea' }]);
  });

  it('R-251 the REST list decides who is in the room and keeps what else is known', () => {
    const roster = new Roster();
    roster.merge({ id: 'a', name: 'Ann', description: 'likes tea' });
    roster.merge({ id: 'gone', name: 'Gus' });
    roster.replace([
      { id: 'b', name: 'Bob', type: 'User' },
      { id: 'a', handle: 'ann' },
    ]);
    expect(roster.list().map(({ id }) => id)).toEqual(['a', 'b']);
    expect(roster.get('a')).toMatchObject({ name: 'Ann', handle: 'ann', description: 'likes tea' });
  });

  it('its revision grows with differences and with nothing else', () => {
    const roster = new Roster();
    const revisions = [
      () => roster.merge({ id: 'a', name: 'Ann' }),
      () => roster.merge({ id: 'a', name: 'Ann' }),
      () => roster.merge({ id: 'a', handle: 'ann' }),
      () => roster.remove('unknown'),
      () => {
        roster.replace([{ id: 'a' }]);
      },
      () => roster.remove('a'),
    ].map((step) => {
      step();
      return roster.revision;
    });
    expect(revisions).toEqual([1, 1, 2, 2, 2, 3]);
  });

  it('hands out frozen snapshots', () => {
    const roster = new Roster();
    roster.merge({ id: 'a' });
    const before = roster.list();
    roster.merge({ id: 'b' });
    expect(before).toHaveLength(1);
    expect(Object.isFrozen(before[0])).toBe(true);
  });
});
