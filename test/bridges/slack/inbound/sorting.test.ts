import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sortDelivery, sortParsed } from '../../../../bridges/slack/inbound/sorting.js';

/** A field as it should be, or anything else that JSON may hold there. */
const mostly = <T>(usual: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 30, arbitrary: usual },
    fc.jsonValue({ maxDepth: 1 }),
    fc.constantFrom(undefined, null, '', 0, true),
  );
const word = (...words: string[]) => mostly(fc.constantFrom(...words));

const authorization = fc.record({
  team_id: word('T1', 'T2'),
  enterprise_id: word('E1'),
  user_id: word('UBOT'),
  is_bot: mostly(fc.boolean()),
});
const payloads = fc.record({
  type: word('event_callback'),
  event_id: word('Ev1', 'Ev2'),
  event_time: mostly(fc.integer()),
  team_id: word('T1'),
  context_team_id: word('T3'),
  authorizations: mostly(fc.array(mostly(authorization), { maxLength: 2 })),
  event: mostly(
    fc.record({
      type: word('message', 'app_mention', 'reaction_added', 'constructor'),
      subtype: word('file_share', 'message_changed', 'message_deleted', 'bot_message'),
      channel: word('C1', ''),
      channel_type: word('im', 'channel'),
      ts: word('1.1'),
      thread_ts: word('1.0'),
      text: word('hi'),
      user: word('U1'),
      blocks: mostly(fc.constant([{ type: 'rich_text' }])),
    }),
  ),
});

describe('sorting at the door', () => {
  it('sorts every payload as the parser would, without parsing the plain ones', () => {
    fc.assert(
      fc.property(mostly(payloads), (payload) => {
        expect(sortDelivery('main', payload)).toEqual(sortParsed('main', payload));
      }),
      { numRuns: 3_000 },
    );
  });

  it('does not parse a message of the usual shape', () => {
    const parsed: string[] = [];
    const event = { type: 'app_mention', channel: 'C1', ts: '1.1', user: 'U1', text: 'hi' };
    const payload = {
      type: 'event_callback',
      event_id: 'Ev1',
      event,
      authorizations: [{ team_id: 'T1', is_bot: true }],
    };
    const watched = new Proxy(event, {
      get: (fields, name) => {
        parsed.push(String(name));
        return Reflect.get(fields, name) as unknown;
      },
    });
    expect(sortDelivery('main', { ...payload, event: watched })).toEqual(sortParsed('main', payload));
    expect(parsed).not.toContain('text');
  });
});
