import { describe, expect, it } from 'vitest';
import { PlatformMessage, type PlatformMessageFields } from '../../src/core/platform-message.js';

const FIELDS: PlatformMessageFields = {
  id: 'm1',
  roomId: 'r1',
  content: 'hi',
  senderId: 'u1',
  senderType: 'User',
  senderName: 'Alice',
  messageType: 'text',
  metadata: { mentions: [] },
  createdAt: new Date(0),
};

describe('PlatformMessage', () => {
  it('R-135 has nine fields and cannot be changed', () => {
    const message = new PlatformMessage(FIELDS);
    expect(message).toMatchObject(FIELDS);
    expect(Object.keys(message)).toHaveLength(9);
    expect(Object.isFrozen(message)).toBe(true);
    expect(() => {
      (message as { content: string }).content = 'changed';
    }).toThrow(TypeError);
  });

  it('R-136 formats itself as a bracketed sender and the content', () => {
    expect(new PlatformMessage(FIELDS).formatForLlm()).toBe('[Alice]: hi');
  });

  it.each([
    ['Alice', 'User', '[Alice]: hi'],
    [null, 'User', '[User]: hi'],
    ['', 'User', '[User]: hi'],
    [null, '', '[Unknown]: hi'],
    ['', '', '[Unknown]: hi'],
  ])('R-137 the sender of name %j and type %j reads %s', (senderName, senderType, text) => {
    expect(new PlatformMessage({ ...FIELDS, senderName, senderType }).formatForLlm()).toBe(text);
  });
});
