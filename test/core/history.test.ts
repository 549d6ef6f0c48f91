import { describe, expect, it, vi } from 'vitest';
import { HistoryProvider, NO_HISTORY, type RawHistoryMessage } from '../../src/core/history.js';

const entry = (content: string): RawHistoryMessage => ({
  id: content,
  role: 'user',
  content,
  senderName: null,
  senderType: 'User',
  messageType: 'text',
  metadata: {},
  createdAt: new Date(0),
});

describe('HistoryProvider', () => {
  it('R-143 counts the raw messages and cannot be changed', () => {
    const source = [entry('a'), entry('b')];
    const history = new HistoryProvider(source);
    expect([history.length, history.isEmpty]).toEqual([2, false]);
    expect([NO_HISTORY.length, NO_HISTORY.isEmpty]).toEqual([0, true]);
    expect([history, history.raw, history.raw[0]].every(Object.isFrozen)).toBe(true);
    source.push(entry('c'));
    expect(history.length).toBe(2);
    expect(Object.isFrozen(source)).toBe(false);
    expect(() => (history.raw as RawHistoryMessage[]).push(entry('d'))).toThrow(TypeError);
  });

  it('R-143 converts when asked, and again each time', () => {
    const history = new HistoryProvider([entry('a'), entry('b')]);
    const convert = vi.fn((raw: readonly RawHistoryMessage[]) => raw.map(({ content }) => content).join());
    expect(convert).not.toHaveBeenCalled();
    expect([history.convert({ convert }), history.convert({ convert })]).toEqual(['a,b', 'a,b']);
    expect(convert).toHaveBeenCalledTimes(2);
  });
});
