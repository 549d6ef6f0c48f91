import type { MethodFamily } from './errors.js';

/** How often and how long a failed call is tried again. */
export type RetryPlan =
  /** 1, 2, 4, 8, 15, 30, 60, 60 … seconds for 30 minutes. */
  | 'usual'
  /** First after a minute, then as usual. */
  | 'message-limit'
  /** Each five minutes for a day. */
  | 'migration'
  /** Three times, for a code nobody knows. */
  | 'three-tries';

/** Another form of the same write. */
export type Reshape =
  | 'mrkdwn'
  | 'plain-text'
  | 'without-metadata'
  | 'without-attachments'
  | 'without-persona'
  | 'smaller-parts'
  | 'into-thread'
  | 'into-channel'
  | 'new-root'
  | 'new-post'
  | 'delete-and-post'
  | 'stop-stream-first'
  | 'finish-stream'
  | 'edit-instead-of-stream'
  | 'text-instead-of-file'
  | 'comment-instead-of-file'
  | 'with-team'
  | 'new-trigger';

/** What lets a parked lane go on. */
export type ResumeOn = 'member_joined' | 'channel_unarchived' | 'new_token' | 'new_settings' | 'team_access';

export type SlackFault =
  /** Pause the lane; the item keeps its place. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'again'; readonly ambiguous: boolean; readonly plan: RetryPlan }
  | { readonly kind: 'reshape'; readonly to: Reshape }
  | {
      readonly kind: 'park';
      readonly what: 'channel' | 'installation' | 'team' | 'direct_messages';
      readonly until: ResumeOn;
      /** Dead after this long; null: for ever. */
      readonly atMostMs: number | null;
    }
  /** Join a public channel where that is allowed, else park it. */
  | { readonly kind: 'join' }
  /** Refresh a rotated token and send once more, else park the installation. */
  | { readonly kind: 'refresh' }
  /** Look the channel up once with the right team, then give the binding up. */
  | { readonly kind: 'look_up_channel' }
  | { readonly kind: 'interrupt' }
  | {
      readonly kind: 'dead';
      /** The call itself was wrong: what it was made of is logged, without its texts. */
      readonly defect?: true;
    }
  /** The wish is fulfilled already. */
  | { readonly kind: 'done'; readonly warning: boolean }
  /** A read: go on without what it would have told. */
  | { readonly kind: 'without'; readonly what: 'name' | 'history' | 'file' }
  /** What the method is for is not asked for again meanwhile; null: until the next start. */
  | { readonly kind: 'without'; readonly what: 'feature'; readonly forMs: number | null }
  /** Nothing to repeat, and nobody waits for it except the tool that asked. */
  | { readonly kind: 'tool_result' };

export interface FaultRow {
  readonly fault: SlackFault;
  readonly notice: string | null;
  /** The channel takes nothing from us, so the person is told by direct message. */
  readonly direct?: true;
  /** What whoever runs the app can do about it. */
  readonly remedy?: string;
  /** Only for these; a row without families serves the rest. */
  readonly families?: readonly MethodFamily[];
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const UNKNOWN_CODE: SlackFault = { kind: 'again', ambiguous: true, plan: 'three-tries' };

const rows = new Map<string, FaultRow[]>();
function on(codes: string, fault: SlackFault, about: Partial<Omit<FaultRow, 'fault'>> = {}): void {
  for (const code of codes.split(' ')) rows.set(code, [...(rows.get(code) ?? []), { fault, notice: null, ...about }]);
}
const reshape = (to: Reshape): SlackFault => ({ kind: 'reshape', to });
const dead: SlackFault = { kind: 'dead' };
const featureOff = (forMs: number | null): SlackFault => ({ kind: 'without', what: 'feature', forMs });
const park = (
  what: 'channel' | 'installation' | 'team' | 'direct_messages',
  until: ResumeOn,
  atMostMs: number | null = null,
): SlackFault => ({ kind: 'park', what, until, atMostMs });

// Transient
on(
  'message_limit_exceeded',
  { kind: 'again', ambiguous: false, plan: 'message-limit' },
  {
    notice: 'This workspace has reached its message limit, so my answer could not be posted.',
  },
);
on('team_added_to_org org_login_required external_channel_migrating', {
  kind: 'again',
  ambiguous: false,
  plan: 'migration',
});

// The channel
on(
  'channel_not_found',
  { kind: 'look_up_channel' },
  {
    notice: 'I can no longer see the channel of our conversation, so I could not answer there.',
    direct: true,
  },
);
on(
  'not_in_channel no_permission user_not_in_channel',
  { kind: 'join' },
  {
    notice: 'I am not in that channel. Invite me there and I will go on.',
    direct: true,
    remedy: 'Invite the bot to the channel.',
  },
);
on('is_archived is_inactive channel_is_limited_access', park('channel', 'channel_unarchived', 7 * DAY_MS), {
  notice: 'The channel of our conversation is archived, so I could not answer there.',
  direct: true,
  remedy: 'Unarchive the channel, or let what waits for it be given up after seven days.',
});
on('restricted_action restricted_action_read_only_channel posting_to_channel_denied', dead, {
  notice: 'I am not allowed to post in that channel.',
  direct: true,
});
on('restricted_action_thread_only_channel', reshape('into-thread'));
on('restricted_action_non_threadable_channel cannot_reply_to_message', reshape('into-channel'));
on('restricted_action_thread_locked thread_locked', dead, {
  notice: 'That thread is locked, so I could not answer in it.',
  direct: true,
});
on('messages_tab_disabled', park('direct_messages', 'new_settings'), {
  remedy: 'Set features.app_home.messages_tab_enabled to true in the app’s manifest, then restart.',
});

// The message
on('thread_not_found invalid_thread_ts', reshape('new-root'));
on('message_not_found', reshape('new-root'), { families: ['post', 'stream', 'status'] });
on('message_not_found cant_update_message edit_window_closed', reshape('new-post'), { families: ['edit'] });
on('message_not_found', { kind: 'done', warning: true }, { families: ['delete'] });
on('message_not_found', { kind: 'tool_result' }, { families: ['reaction'] });
on('message_not_found', { kind: 'without', what: 'history' });
on('cant_update_message edit_window_closed', reshape('new-post'));
on('cant_delete_message', { kind: 'done', warning: true });
on('block_mismatch', reshape('delete-and-post'));
on('streaming_state_conflict', reshape('stop-stream-first'));
on('message_not_in_streaming_state message_not_owned_by_app', reshape('finish-stream'));
on('stopped_by_user', { kind: 'interrupt' });
on(
  'missing_recipient_team_id missing_recipient_user_id channel_type_not_supported invalid_chunks',
  reshape('edit-instead-of-stream'),
);

// Its form
on('msg_too_long', reshape('smaller-parts'));
on(
  'msg_blocks_too_long msg_blocks_too_many invalid_blocks invalid_blocks_format invalid_attachments',
  reshape('mrkdwn'),
);
on('markdown_text_conflict no_text', reshape('plain-text'));
on(
  'metadata_too_large invalid_metadata_format invalid_metadata_schema metadata_must_be_sent_from_app',
  reshape('without-metadata'),
);
on('too_many_attachments too_many_contact_cards attachment_payload_limit_exceeded', reshape('without-attachments'));
on('duplicate_message_not_found duplicate_channel_not_found', { kind: 'again', ambiguous: true, plan: 'usual' });
on('reserved_username', reshape('without-persona'));
const EKM = 'The security rules of this workspace do not let me post this.';
on('ekm_access_denied', reshape('comment-instead-of-file'), { notice: EKM, families: ['upload'] });
on('ekm_access_denied', dead, { notice: EKM });

// Files
on(
  'file_uploads_disabled file_type_not_allowed blocked_file_type file_upload_size_restricted storage_limit_reached snippet_too_large',
  reshape('text-instead-of-file'),
  { notice: 'Slack did not take the file, so I posted what fits as text.' },
);
on('file_not_found file_deleted not_visible', { kind: 'without', what: 'file' });

// The installation
const REINSTALL = 'Reinstall the app in the workspace and set the new bot token.';
on('missing_scope', featureOff(HOUR_MS), { families: ['read', 'reaction', 'status', 'modal'] });
on('missing_scope', park('installation', 'new_token'), {
  remedy: 'Add the scope that the log names to the app’s manifest, and reinstall the app.',
});
on('invalid_auth not_authed token_expired', { kind: 'refresh' }, { remedy: REINSTALL });
on(
  'token_revoked account_inactive team_disabled user_removed_from_team two_factor_setup_required not_allowed_token_type access_denied accesslimited enterprise_is_restricted',
  park('installation', 'new_token'),
  { remedy: REINSTALL },
);
on('team_access_not_granted', park('team', 'team_access'), {
  remedy: 'Give the app access to the workspace in the organisation’s administration, then restart.',
});
on('team_not_found', reshape('with-team'));

// Our own defects
on(
  'invalid_arguments invalid_arg_name invalid_array_arg invalid_form_data invalid_charset invalid_post_type missing_post_type',
  { kind: 'dead', defect: true },
  { notice: 'I could not post my answer because of a defect on my side; it was recorded.' },
);
on('method_deprecated deprecated_endpoint unknown_method', featureOff(null));

// Reactions
on('already_reacted no_reaction', { kind: 'done', warning: false });
on('too_many_emoji too_many_reactions invalid_name not_reactable bad_timestamp', { kind: 'tool_result' });

// Reads
on('user_not_found user_not_visible bot_not_found', { kind: 'without', what: 'name' });
on('invalid_cursor invalid_ts_oldest invalid_ts_latest method_not_supported_for_channel_type', {
  kind: 'without',
  what: 'history',
});

// Modals
on(
  'expired_trigger_id exchanged_trigger_id invalid_trigger_id view_too_large duplicate_external_id',
  reshape('new-trigger'),
  { notice: 'That took too long for Slack. Please try again.' },
);

/**
 * What each of Slack's error words means for the write or read that met it. Words that mean "slow down" or "unknown
 * outcome" never get here: they are errors with codes of their own.
 */
export const FAULT_ROWS: ReadonlyMap<string, readonly FaultRow[]> = rows;

const CONNECT = 'The rules of the shared channel do not let me post this here.';
/** Slack has many words for what the other side of a shared channel does not let through. */
export const CONNECT_BLOCKED: { readonly words: RegExp; readonly rows: readonly FaultRow[] } = {
  words: /^slack_connect_.*_blocked$/,
  rows: [
    { fault: reshape('comment-instead-of-file'), notice: CONNECT, families: ['upload'] },
    { fault: dead, notice: CONNECT },
  ],
};

/** What whoever runs the app can do about a word that keeps something waiting. */
export function remedyOf(word: string): string | null {
  return rows.get(word)?.find(({ remedy }) => remedy !== undefined)?.remedy ?? null;
}
