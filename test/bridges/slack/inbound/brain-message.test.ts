import { describe, expect, it } from 'vitest';
import {
  contextNote,
  mirrorEvent,
  toBrainMessage,
  type SlackTurnFacts,
} from '../../../../bridges/slack/inbound/brain-message.js';
import { slackKey } from '../../../../bridges/slack/conversation.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';

const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1.1' };
const facts: SlackTurnFacts = {
  binding: { key: slackKey(thread), thread, roomId: 'room-1' },
  message: slackMessageSchema.parse({ ts: '2.1', thread_ts: '1.1', user: 'U1', text: '<@UBOT> *hi*' }),
  markdown: '**hi**',
  sender: {
    id: 'U1',
    teamId: 'T1',
    name: 'Alice',
    handle: 'alice',
    email: null,
    isBot: false,
    isAdmin: false,
    isGuest: false,
    isStranger: false,
  },
  channelLabel: '#general',
  channelName: 'general',
  channelType: 'channel',
  retryNum: 1,
  files: [{ id: 'F1' }],
  bandHandle: null,
  context: null,
  delivery: 'main:ev:Ev1',
  acceptedAt: 5,
  maybeDelivered: false,
};

describe('what the brain is told', () => {
  it('S-082 the message has the reference’s fields, Markdown without the bot’s mention, and the added metadata', () => {
    const message = toBrainMessage(facts, 1_000);
    expect(message).toMatchObject({
      id: 'slack:2.1',
      roomId: 'room-1',
      content: '**hi**',
      senderId: 'slack:U1',
      senderType: 'user',
      senderName: 'Alice',
      messageType: 'text',
    });
    expect(message.metadata).toMatchObject({
      slack_app_slug: 'main',
      slack_channel_id: 'C1',
      slack_thread_ts: '1.1',
      slack_user_id: 'U1',
      slack_team_id: 'T1',
      slack_ts: '2.1',
      slack_channel_type: 'channel',
      slack_channel_name: 'general',
      slack_user_name: 'Alice',
      slack_user_handle: 'alice',
      slack_files: [{ id: 'F1' }],
      slack_edited: false,
      slack_retry_num: 1,
      slack_raw_text: '<@UBOT> *hi*',
    });
  });

  it('S-082 an unknown person is called by the id, a stranger is marked', () => {
    expect(toBrainMessage({ ...facts, sender: null }, 0).senderName).toBe('U1');
    expect(toBrainMessage({ ...facts, sender: { ...facts.sender!, isStranger: true } }, 0).metadata).toMatchObject({
      external: true,
    });
  });

  it('S-162 the person’s handle on Band reaches metadata and note', () => {
    expect(toBrainMessage({ ...facts, bandHandle: 'acme/alice' }, 0).metadata).toMatchObject({
      slack_user_band_handle: 'acme/alice',
    });
    expect(contextNote('#general', 'acme/alice')).toContain('@acme/alice');
  });

  it('S-082 the note says that the asker is no peer, how to answer, what is rendered and how to mention', () => {
    const note = contextNote('#general');
    expect(note.startsWith('[Slack]')).toBe(true);
    expect(note).toContain('#general');
    for (const words of [
      'not a Band peer',
      'cannot be mentioned',
      'slack_send_message(content=…)',
      'band_send_message(content, mentions=[…])',
      'Markdown',
      'mention',
    ]) {
      expect(note).toContain(words);
    }
  });

  it('S-085 the mirrored thought has the reference’s words and metadata', () => {
    expect(mirrorEvent(facts, 'Alice (@alice)')).toEqual({
      content: '💬 Slack · #general — Alice (@alice): **hi**',
      metadata: {
        slack_mirror: true,
        slack_app_slug: 'main',
        slack_channel_id: 'C1',
        slack_channel_label: '#general',
        slack_thread_ts: '1.1',
        slack_user_id: 'U1',
        slack_user_handle: 'alice',
        slack_user_name: 'Alice',
        slack_ts: '2.1',
      },
    });
  });
});
