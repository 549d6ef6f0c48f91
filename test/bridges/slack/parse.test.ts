import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ANY_TEAM,
  messageIdentity,
  parseSlackKey,
  slackKey,
  teamlessKey,
} from '../../../bridges/slack/conversation.js';
import { catchUpKey, deliveryKey } from '../../../bridges/slack/delivery-key.js';
import { parseDelivery, parseForm } from '../../../bridges/slack/parse.js';

const callback = (event: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  type: 'event_callback',
  event_id: 'Ev1',
  event_time: 1_764_412_000,
  team_id: 'T1',
  api_app_id: 'A1',
  authorizations: [{ team_id: 'T1', enterprise_id: null, user_id: 'UBOT', is_bot: true }],
  event,
  ...more,
});
const eventOf = (event: Record<string, unknown>) => {
  const delivery = parseDelivery(callback(event));
  return delivery.kind === 'event' ? delivery.event : delivery;
};

describe('an event', () => {
  it('of a message keeps text, thread, blocks, files and who wrote it', () => {
    const event = eventOf({
      type: 'message',
      channel: 'C1',
      channel_type: 'group',
      user: 'U1',
      text: 'hi',
      ts: '2.1',
      thread_ts: '1.1',
      blocks: [{ type: 'rich_text' }],
      files: [{ id: 'F1', name: 'a.txt' }],
    });
    expect(event).toMatchObject({
      kind: 'message',
      mention: false,
      channel: 'C1',
      channelType: 'group',
      message: { user: 'U1', text: 'hi', ts: '2.1', thread_ts: '1.1', files: [{ id: 'F1' }] },
    });
    expect(eventOf({ type: 'app_mention', channel: 'C1', user: 'U1', text: 'hi', ts: '2.1' })).toMatchObject({
      kind: 'message',
      mention: true,
    });
  });

  it('of an edit and of a deletion carries both states', () => {
    const message = { ts: '1.1', text: 'new', edited: { ts: '1.2' } };
    expect(
      eventOf({
        type: 'message',
        subtype: 'message_changed',
        channel: 'C1',
        message,
        previous_message: { ts: '1.1', text: 'old' },
      }),
    ).toMatchObject({
      kind: 'edited',
      message: { text: 'new' },
      previous: { text: 'old' },
    });
    expect(
      eventOf({
        type: 'message',
        subtype: 'message_deleted',
        channel: 'C1',
        deleted_ts: '1.1',
        previous_message: message,
      }),
    ).toMatchObject({
      kind: 'deleted',
      ts: '1.1',
      previous: { text: 'new' },
    });
  });

  it.each([
    [
      { type: 'reaction_added', user: 'U1', reaction: 'eyes', item: { channel: 'C1', ts: '1.1' }, item_user: 'U2' },
      { kind: 'reaction', added: true, name: 'eyes', itemUser: 'U2' },
    ],
    [
      { type: 'agent_session_stopped', channel: 'D1', thread_ts: '1.1', user: 'U1' },
      { kind: 'session_stopped', channel: 'D1', threadTs: '1.1' },
    ],
    [
      { type: 'agent_session_stopped', session: { channel_id: 'D1', thread_ts: '1.1' } },
      { kind: 'session_stopped', channel: 'D1', user: null },
    ],
    [
      { type: 'app_home_opened', user: 'U1', channel: 'D1', tab: 'messages' },
      { kind: 'thread_opened', tab: 'messages', threadTs: null },
    ],
    [
      { type: 'assistant_thread_started', assistant_thread: { channel_id: 'D1', thread_ts: '1.1', user_id: 'U1' } },
      { kind: 'thread_opened', threadTs: '1.1' },
    ],
    [
      { type: 'member_joined_channel', user: 'U1', channel: 'C1' },
      { kind: 'joined', channel: 'C1', user: 'U1' },
    ],
    [
      { type: 'channel_archive', channel: 'C1' },
      { kind: 'channel', type: 'channel_archive', channel: 'C1' },
    ],
    [
      { type: 'group_unarchive', channel: 'C1' },
      { kind: 'channel', type: 'channel_unarchive' },
    ],
    [
      { type: 'channel_rename', channel: { id: 'C1', name: 'new' } },
      { kind: 'channel', type: 'channel_rename', channel: 'C1', name: 'new' },
    ],
    [
      { type: 'channel_id_changed', old_channel_id: 'C1', new_channel_id: 'C2' },
      { kind: 'channel', channel: 'C1', newId: 'C2' },
    ],
    [
      { type: 'user_change', user: { id: 'U1' } },
      { kind: 'user_changed', user: 'U1' },
    ],
    [{ type: 'app_uninstalled' }, { kind: 'uninstalled', type: 'app_uninstalled' }],
    [
      { type: 'team_access_revoked', team_ids: ['T1'] },
      { kind: 'uninstalled', teamIds: ['T1'] },
    ],
    [
      { type: 'tokens_revoked', tokens: { oauth: ['U1'], bot: ['UBOT'] } },
      { kind: 'tokens_revoked', botUsers: ['UBOT'] },
    ],
  ])('S-061 %j is understood', (event, expected) => {
    expect(eventOf(event)).toMatchObject(expected);
  });

  it('S-061 of another type, or with parts missing, is told apart', () => {
    expect(eventOf({ type: 'pin_added' })).toEqual({ kind: 'other', type: 'pin_added', incomplete: false });
    expect(eventOf({ type: 'message', text: 'no channel' })).toEqual({
      kind: 'other',
      type: 'message',
      incomplete: true,
    });
    for (const type of ['constructor', '__proto__', 'close', 'ws_message', 'error'])
      expect(eventOf({ type })).toMatchObject({ kind: 'other', type });
  });

  it('takes a field of a wrong kind for absent, rather than losing the message', () => {
    const event = eventOf({
      type: 'message',
      channel: 'C1',
      channel_type: 7,
      ts: '1.1',
      text: 'hi',
      files: 'none',
      blocks: {},
      user: 9,
      metadata: [],
    });
    expect(event).toMatchObject({
      kind: 'message',
      channelType: null,
      message: { text: 'hi', files: null, blocks: null, user: null },
    });
  });

  it('SLK-14 of a shared channel names the workspace that installed the app, not the author’s', () => {
    const shared = parseDelivery(
      callback(
        { type: 'app_mention', channel: 'C1', ts: '1.1', user: 'U9' },
        { team_id: 'TPARTNER', context_team_id: 'T1', is_ext_shared_channel: true },
      ),
    );
    expect(shared).toMatchObject({
      kind: 'event',
      teamId: 'T1',
      authorTeamId: 'TPARTNER',
      isExtShared: true,
      botUserId: 'UBOT',
    });
    expect(
      parseDelivery(
        callback(
          { type: 'app_mention', channel: 'C1', ts: '1.1' },
          { authorizations: undefined, context_team_id: 'T2' },
        ),
      ),
    ).toMatchObject({ teamId: 'T2' });
  });
});

describe('other payloads', () => {
  it('answers to a challenge, notices Slack’s rate limit, and calls the rest unknown', () => {
    expect(parseDelivery({ type: 'url_verification', challenge: 'abc' })).toEqual({
      kind: 'url_verification',
      challenge: 'abc',
    });
    expect(parseDelivery({ type: 'app_rate_limited', team_id: 'T1', minute_rate_limited: 29_406_000 })).toEqual({
      kind: 'rate_limited',
      teamId: 'T1',
      minute: 29_406_000,
    });
    for (const odd of [
      null,
      7,
      'x',
      [],
      {},
      { type: 'event_callback' },
      { type: 'event_callback', event: 'x' },
      { type: 'hologram' },
      { type: 'block_actions' },
    ]) {
      expect(parseDelivery(odd)).toMatchObject({ kind: 'unknown' });
    }
  });

  const base = {
    user: { id: 'U1', team_id: 'T1' },
    team: { id: 'T1' },
    trigger_id: 'tr.1',
    response_url: 'https://hooks.example.test/1',
  };

  it('S-165 a pressed button tells who, where and which', () => {
    const action = parseDelivery({
      type: 'block_actions',
      ...base,
      channel: { id: 'C1' },
      message: { ts: '2.1', thread_ts: '1.1' },
      actions: [{ action_id: 'stop', value: 'opaque', action_ts: '3.1' }],
    });
    expect(action).toMatchObject({
      kind: 'action',
      userId: 'U1',
      channel: 'C1',
      threadTs: '1.1',
      messageTs: '2.1',
      actionId: 'stop',
      value: 'opaque',
    });
  });

  it('a view, a shortcut and a command are read', () => {
    expect(
      parseDelivery({
        type: 'view_submission',
        ...base,
        view: { id: 'V1', hash: 'h', callback_id: 'ask', state: { values: { a: 1 } } },
      }),
    ).toMatchObject({ kind: 'view', closed: false, viewId: 'V1', values: { a: 1 } });
    expect(
      parseDelivery({
        type: 'message_action',
        ...base,
        callback_id: 'band_ask',
        channel: { id: 'C1' },
        message: { ts: '1.1' },
      }),
    ).toMatchObject({ kind: 'shortcut', scope: 'message', messageTs: '1.1' });
    expect(
      parseDelivery({ command: '/band', text: 'status', user_id: 'U1', channel_id: 'C1', team_id: 'T1' }),
    ).toMatchObject({ kind: 'command', text: 'status' });
  });

  it('S-027 S-028 forms are told apart: payloads, commands, and a certificate check that wins over all', () => {
    expect(parseForm(new URLSearchParams({ payload: '{"a":1}' }).toString())).toEqual({
      kind: 'payload',
      body: { a: 1 },
    });
    expect(parseForm('command=%2Fband&text=hi')).toEqual({ kind: 'payload', body: { command: '/band', text: 'hi' } });
    expect(parseForm('ssl_check=1&command=%2Fband&payload=%7B%7D')).toEqual({ kind: 'ssl_check' });
    expect(parseForm('payload=%7B')).toEqual({ kind: 'bad' });
    expect(parseForm('a=b')).toEqual({ kind: 'bad' });
  });

  it('never throws, whatever comes', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string(), (odd, text) => {
        parseDelivery(odd);
        parseDelivery({ type: 'event_callback', event: odd });
        parseDelivery(callback({ type: 'message', channel: text, ts: odd, text: odd, files: odd }));
        parseDelivery({ type: 'block_actions', user: odd, actions: odd });
        parseForm(text);
      }),
      { numRuns: 300 },
    );
  });
});

describe('keys', () => {
  it('of a thread are made and parsed', () => {
    const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1712.000100' };
    expect(slackKey(thread)).toBe('main:T1:C1:1712.000100');
    expect(parseSlackKey(slackKey(thread))).toEqual(thread);
    expect(parseSlackKey(teamlessKey(thread))).toEqual({ ...thread, team: ANY_TEAM });
    for (const odd of ['', 'a:b:c', 'A:T:C:1', 'a:b:c:d:e', 'main:T1:C1:']) expect(parseSlackKey(odd)).toBeNull();
    expect(messageIdentity('main', 'T1', 'C1', '1.1')).toBe('main:T1:C1:1.1');
    expect(catchUpKey('main', 'T1', 'C1', '1.1')).toBe('main:bf:T1:C1:1.1');
  });

  const keyOf = (body: unknown, slug = 'main') => deliveryKey(slug, parseDelivery(body), body);

  it('S-034 of one event id on two apps differ; S-036 without an id the content counts, however it is spelled', () => {
    const body = callback({ type: 'app_mention', channel: 'C1', ts: '1.1' });
    expect(keyOf(body)).toBe('main:ev:Ev1');
    expect(keyOf(body, 'other')).toBe('other:ev:Ev1');
    const bare = { ...body, event_id: undefined };
    const { event, ...rest } = bare;
    const reordered = { event: { ts: '1.1', channel: 'C1', type: event.type }, ...rest };
    expect(keyOf(bare)).toMatch(/^main:ev:[0-9a-f]{32}:1764412000$/);
    expect(keyOf(reordered)).toBe(keyOf(bare));
    expect(keyOf({ ...bare, event_time: 1 })).not.toBe(keyOf(bare));
  });

  it('S-171 of interactions are their own ids', () => {
    const base = { user: { id: 'U1' }, trigger_id: 'tr.1' };
    const action = {
      type: 'block_actions',
      ...base,
      message: { ts: '2.1' },
      actions: [{ action_id: 'stop', action_ts: '3.1' }],
    };
    expect(keyOf(action)).toBe('main:act:tr.1');
    expect(keyOf({ ...action, trigger_id: undefined })).toBe('main:act:3.1:2.1:U1:stop');
    expect(keyOf({ type: 'view_submission', ...base, view: { id: 'V1', hash: 'h' } })).toBe(
      'main:view:V1:h:view_submission',
    );
    expect(keyOf({ type: 'view_closed', ...base, view: { id: 'V1', hash: 'h' } })).toBe('main:view:V1:h:view_closed');
    expect(keyOf({ command: '/band', user_id: 'U1', channel_id: 'C1', trigger_id: 'tr.2' })).toBe('main:cmd:tr.2');
    expect(keyOf({ type: 'shortcut', ...base, callback_id: 'x' })).toBe('main:sc:tr.1');
  });
});
