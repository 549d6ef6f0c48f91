import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../src/base/errors.js';
import { fromSlackAnswer, judgeFault, methodFamily, slackErrorOf } from '../../../bridges/slack/errors.js';
import { FAULT_ROWS } from '../../../bridges/slack/fault-table.js';

const judge = (word: string, method = 'chat.postMessage') =>
  judgeFault(fromSlackAnswer({ ok: false, error: word }, method), method);

/** Slack's words by what becomes of the write that met them. */
const WORDS: readonly [action: string, method: string, words: string][] = [
  ['wait 30000', 'chat.update', 'ratelimited rate_limited'],
  ['again message-limit', 'chat.postMessage', 'message_limit_exceeded'],
  [
    'again usual ambiguous',
    'chat.postMessage',
    'internal_error fatal_error service_unavailable request_timeout update_failed messaging_processing_failed',
  ],
  ['again migration', 'chat.postMessage', 'team_added_to_org org_login_required external_channel_migrating'],
  ['look_up_channel', 'chat.postMessage', 'channel_not_found'],
  ['join', 'chat.postMessage', 'not_in_channel no_permission user_not_in_channel'],
  ['park channel', 'chat.postMessage', 'is_archived is_inactive channel_is_limited_access'],
  [
    'dead',
    'chat.postMessage',
    'restricted_action restricted_action_read_only_channel posting_to_channel_denied restricted_action_thread_locked thread_locked ekm_access_denied slack_connect_file_upload_sharing_blocked',
  ],
  ['reshape into-thread', 'chat.postMessage', 'restricted_action_thread_only_channel'],
  ['reshape into-channel', 'chat.postMessage', 'restricted_action_non_threadable_channel cannot_reply_to_message'],
  ['reshape new-root', 'chat.postMessage', 'thread_not_found message_not_found invalid_thread_ts'],
  ['reshape new-post', 'chat.update', 'message_not_found cant_update_message edit_window_closed'],
  ['done warning', 'chat.delete', 'cant_delete_message message_not_found'],
  ['reshape delete-and-post', 'chat.update', 'block_mismatch'],
  ['reshape stop-stream-first', 'chat.update', 'streaming_state_conflict'],
  ['reshape finish-stream', 'chat.appendStream', 'message_not_in_streaming_state message_not_owned_by_app'],
  ['interrupt', 'chat.appendStream', 'stopped_by_user'],
  [
    'reshape edit-instead-of-stream',
    'chat.startStream',
    'missing_recipient_team_id missing_recipient_user_id channel_type_not_supported invalid_chunks',
  ],
  ['reshape smaller-parts', 'chat.postMessage', 'msg_too_long'],
  [
    'reshape mrkdwn',
    'chat.postMessage',
    'msg_blocks_too_long msg_blocks_too_many invalid_blocks invalid_blocks_format invalid_attachments',
  ],
  ['reshape plain-text', 'chat.postMessage', 'markdown_text_conflict no_text'],
  [
    'reshape without-metadata',
    'chat.postMessage',
    'metadata_too_large invalid_metadata_format invalid_metadata_schema metadata_must_be_sent_from_app',
  ],
  [
    'reshape without-attachments',
    'chat.postMessage',
    'too_many_attachments too_many_contact_cards attachment_payload_limit_exceeded',
  ],
  ['again usual ambiguous', 'chat.postMessage', 'duplicate_message_not_found duplicate_channel_not_found'],
  ['reshape without-persona', 'chat.postMessage', 'reserved_username'],
  ['park direct_messages', 'chat.postMessage', 'messages_tab_disabled'],
  [
    'reshape text-instead-of-file',
    'files.completeUploadExternal',
    'file_uploads_disabled file_type_not_allowed blocked_file_type file_upload_size_restricted storage_limit_reached snippet_too_large',
  ],
  ['without file', 'files.info', 'file_not_found file_deleted not_visible'],
  ['without feature', 'users.info', 'missing_scope'],
  ['park installation', 'chat.postMessage', 'missing_scope'],
  ['refresh', 'chat.postMessage', 'invalid_auth not_authed token_expired'],
  [
    'park installation',
    'chat.postMessage',
    'token_revoked account_inactive team_disabled user_removed_from_team two_factor_setup_required not_allowed_token_type access_denied accesslimited enterprise_is_restricted',
  ],
  ['park team', 'chat.postMessage', 'team_access_not_granted'],
  ['reshape with-team', 'chat.postMessage', 'team_not_found'],
  [
    'dead',
    'chat.postMessage',
    'invalid_arguments invalid_arg_name invalid_array_arg invalid_form_data invalid_charset invalid_post_type missing_post_type',
  ],
  ['without feature', 'assistant.threads.setStatus', 'method_deprecated deprecated_endpoint unknown_method'],
  ['done', 'reactions.add', 'already_reacted no_reaction'],
  [
    'tool_result',
    'reactions.add',
    'too_many_emoji too_many_reactions invalid_name not_reactable bad_timestamp message_not_found',
  ],
  ['without name', 'users.info', 'user_not_found user_not_visible bot_not_found'],
  [
    'without history',
    'conversations.replies',
    'invalid_cursor invalid_ts_oldest invalid_ts_latest method_not_supported_for_channel_type message_not_found',
  ],
  [
    'reshape new-trigger',
    'views.open',
    'expired_trigger_id exchanged_trigger_id invalid_trigger_id view_too_large duplicate_external_id',
  ],
];

function named(verdict: ReturnType<typeof judge>): string {
  const { fault } = verdict;
  switch (fault.kind) {
    case 'wait':
      return `wait ${fault.ms}`;
    case 'again':
      return `again ${fault.plan}${fault.ambiguous ? ' ambiguous' : ''}`;
    case 'reshape':
      return `reshape ${fault.to}`;
    case 'park':
      return `park ${fault.what}`;
    case 'done':
      return fault.warning ? 'done warning' : 'done';
    case 'without':
      return `without ${fault.what}`;
    default:
      return fault.kind;
  }
}

describe('the fault table', () => {
  const cases = WORDS.flatMap(([action, method, words]) =>
    words.split(' ').map((word) => [word, method, action] as const),
  );

  it.each(cases)('S-105 %s from %s means: %s', (word, method, action) => {
    const verdict = judge(word, method);
    expect(named(verdict)).toBe(action);
    expect(verdict.unknown).toBe(false);
  });

  it('S-105 covers every word of the table', () => {
    const covered = new Set(cases.map(([word]) => word));
    expect([...FAULT_ROWS.keys()].filter((word) => !covered.has(word))).toEqual([]);
  });

  it('S-105 an unknown word is tried three times and called unknown', () => {
    expect(judge('brand_new_refusal')).toEqual({
      fault: { kind: 'again', ambiguous: true, plan: 'three-tries' },
      notice: null,
      direct: false,
      unknown: true,
    });
  });

  it('S-105 parks have an end where the table sets one', () => {
    expect(judge('is_archived').fault).toEqual({
      kind: 'park',
      what: 'channel',
      until: 'channel_unarchived',
      atMostMs: 7 * 86_400_000,
    });
    expect(judge('token_revoked').fault).toMatchObject({ until: 'new_token', atMostMs: null });
  });

  it('S-106 what ends dead for a person’s answer has a sentence for the person', () => {
    for (const [word, rows] of FAULT_ROWS) {
      for (const row of rows) if (row.fault.kind === 'dead') expect(row.notice, word).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('tells failures that surely delivered nothing from those that may have', () => {
    const of = (code: 'SLACK_UNREACHABLE' | 'SLACK_TIMEOUT' | 'SLACK_BAD_ANSWER') =>
      judgeFault(new GatewayError(code), 'chat.postMessage').fault;
    expect(of('SLACK_UNREACHABLE')).toEqual({ kind: 'again', ambiguous: false, plan: 'usual' });
    expect(of('SLACK_TIMEOUT')).toEqual({ kind: 'again', ambiguous: true, plan: 'usual' });
    expect(of('SLACK_BAD_ANSWER')).toMatchObject({ ambiguous: true });
    expect(() => judgeFault(new Error('a defect'), 'chat.postMessage')).toThrow(TypeError);
  });

  it('keeps Slack’s word, what was needed, and its messages', () => {
    const error = fromSlackAnswer(
      {
        ok: false,
        error: 'missing_scope',
        needed: 'chat:write',
        provided: 'im:read',
        response_metadata: { messages: ['[ERROR] x'] },
      },
      'chat.postMessage',
    );
    expect(error.details).toEqual({
      method: 'chat.postMessage',
      slackError: 'missing_scope',
      needed: 'chat:write',
      provided: 'im:read',
      messages: ['[ERROR] x'],
    });
    expect(slackErrorOf(error)).toBe('missing_scope');
    expect(slackErrorOf(new Error('x'))).toBeNull();
    expect(
      fromSlackAnswer({ ok: false, error: 'ratelimited', response_metadata: { retryAfter: 7 } }, 'x'),
    ).toMatchObject({ code: 'SLACK_RATE_LIMITED', retryAfterMs: 7_000 });
  });

  it('knows what a method does', () => {
    expect(
      [
        'chat.postMessage',
        'chat.update',
        'reactions.add',
        'views.open',
        'users.info',
        'assistant.threads.setStatus',
        'api.test',
      ].map(methodFamily),
    ).toEqual(['post', 'edit', 'reaction', 'modal', 'read', 'status', 'other']);
  });
});
