import type { BridgeReport, DeadLetters } from '../../../src/core/bridge.js';
import type { SlackThread } from '../conversation.js';

/** A thread to write into, and the person it is for. */
export interface ThreadRef extends SlackThread {
  /** Who is told when something cannot be posted; null when nobody asked. */
  readonly askerId: string | null;
}

/** Whom a text may page. Data, not a function: a reply that waits on disk keeps its rule over a restart. */
export interface MentionRule {
  readonly users: 'none' | 'any' | readonly string[];
  /** User groups. */
  readonly groups: boolean;
  /** `here`, `channel` and `everyone`. */
  readonly broadcast: boolean;
  /** Channels that become live links; they notify nobody. */
  readonly channels: 'any' | readonly string[];
}

/** Under whose name a post appears, where the scope allows it. */
export interface Persona {
  readonly name: string;
  /** An https URL, or an emoji as `:name:`. */
  readonly icon: string | null;
}

export const CONTROL_ACTIONS = ['interrupt', 'stop', 'resume', 'retry', 'mute', 'unmute', 'ask'] as const;
/** What a button does. `ask` opens the form in which a question about a message is written. */
export type ControlAction = (typeof CONTROL_ACTIONS)[number];

/** A control button; its `action_id` is {@link CONTROL_ACTION_IDS}, numbered where a row holds several of one kind. */
export interface ControlButton {
  readonly action: ControlAction;
  /** Opaque, looked up by whoever handles the click. */
  readonly value: string;
  /** What stands on it; left out, the action's own word. At most 75 characters. */
  readonly label?: string | undefined;
}

/** What an interaction payload carries as `action_id`. */
export const CONTROL_ACTION_IDS = {
  interrupt: 'band_interrupt',
  stop: 'band_stop',
  resume: 'band_resume',
  retry: 'band_retry',
  mute: 'band_mute',
  unmute: 'band_unmute',
  ask: 'band_ask_again',
} as const satisfies Record<ControlAction, string>;

/** Where Slack lets an app answer one interaction: five times, for thirty minutes, also in a channel it is not in. */
export interface ResponseWay {
  /** A secret: whoever has it may write there. */
  readonly url: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
  /** Takes the place of the message that the interaction was in, which only its reader sees. */
  readonly replace?: boolean | undefined;
}

export type PostKind = 'reply' | 'relay' | 'notice' | 'error' | 'control';

export interface ReplyDraft {
  /** Makes a repeat harmless: one id is posted once, also after a restart and for two days after. */
  readonly id: string;
  /** Standard Markdown; converted, sanitised and cut here. Blank text is refused. */
  readonly markdown: string;
  readonly kind: PostKind;
  /** Default: nobody is paged, no channel is live. */
  readonly mentions?: MentionRule;
  /** The speaker of a relayed message; without the scope the name stands in front. Default: the app's persona. */
  readonly speaker?: Persona | null;
  /** Under the last part. */
  readonly buttons?: readonly ControlButton[];
  /** Also shown in the channel (first part only). */
  readonly broadcast?: boolean;
  /** How long to wait for Slack's acceptance; default 0, at most 30,000 makes sense. */
  readonly waitMs?: number;
}

/** How a write ended, as far as was known within its `waitMs`. */
export type SentState =
  | { readonly state: 'sent'; readonly ts: readonly string[]; readonly permalink: string | null }
  /** On disk; Slack has not taken it yet. */
  | { readonly state: 'queued' }
  /** Given up; a dead letter exists, the room and the person are told. */
  | { readonly state: 'failed'; readonly error: string; readonly detail: string };

export interface UploadDraft {
  readonly id: string;
  /** Made safe here (S-146). */
  readonly filename: string;
  /** 1 byte to 20 MiB. */
  readonly bytes: Uint8Array;
  readonly title?: string;
  /** Markdown, posted with the file. */
  readonly comment?: string;
  readonly mentions?: MentionRule;
  readonly waitMs?: number;
}

export type UploadState =
  | { readonly state: 'sent'; readonly fileId: string; readonly permalink: string | null }
  | { readonly state: 'queued' }
  | { readonly state: 'failed'; readonly error: string; readonly detail: string };

/** The one message that shows the tools of a turn. All calls return at once; nothing here ever throws. */
export interface TurnProgress {
  /** @param callId - unique within the turn */
  toolStarted(callId: string, name: string): void;
  /** @param error - why it failed; null or left out for a success */
  toolEnded(callId: string, error?: string | null): void;
  /** Replaces the buttons, or takes them away, and may say in one line who did what (`Stopped by Alice`). */
  controls(buttons: readonly ControlButton[], line?: string): void;
  /** The turn is over: the last state is drawn, without buttons. Resolves when it is shown or given up. */
  finish(): Promise<void>;
}

/** The working status of a thread. Best effort; nothing here ever throws. */
export interface ThreadStatus {
  /** Shows it and keeps it alive until `clear`. */
  set(text?: string): void;
  clear(): void;
}

/** What lets parked lanes go on (S-107). Harmless when nothing is parked. */
export type ResumeEvent =
  /** `member_joined_channel` for our bot. */
  | { readonly kind: 'joined'; readonly slug: string; readonly team: string; readonly channel: string }
  | { readonly kind: 'unarchived'; readonly slug: string; readonly team: string; readonly channel: string }
  /** The installation's token works (again): call it after every successful `auth.test`. */
  | { readonly kind: 'token'; readonly slug: string; readonly team: string }
  /** Access of one team was granted, or settings of the app have changed. */
  | { readonly kind: 'settings'; readonly slug: string; readonly team: string };

/** A lane that waits for an event of the outside. */
export interface ParkInfo {
  readonly slug: string;
  readonly team: string;
  /** Null for everything of the installation. */
  readonly channel: string | null;
  /** Slack's word. */
  readonly cause: string;
  readonly since: number;
}

/**
 * Everything the bridge writes into Slack. What a promise of `reply`, `ephemeral`, `edit`, `upload` or `react` says was
 * taken is on disk: it goes out in the order of its channel, once, over outages, refusals and restarts, or ends as a
 * dead letter of which the room and the person hear.
 */
export interface SlackOut {
  /** @throws {GatewayError} `QUEUE_FULL` or what the store throws; `SLACK_EMPTY` for a text that shows nothing */
  reply(thread: ThreadRef, draft: ReplyDraft): Promise<SentState>;
  /**
   * Seen by one person; falls back to a direct message. `text` is Markdown that pages nobody. A thread with an empty
   * `threadTs` stands for its channel. With `response` it goes that way as long as Slack takes it there.
   */
  ephemeral(
    thread: ThreadRef,
    userId: string,
    draft: {
      readonly id: string;
      readonly text: string;
      readonly buttons?: readonly ControlButton[];
      readonly response?: ResponseWay | null;
    },
  ): Promise<void>;
  /** Rewrites one of our own short messages, e.g. a notice whose buttons were used. */
  edit(
    thread: ThreadRef,
    ts: string,
    draft: { readonly id: string; readonly markdown: string; readonly buttons?: readonly ControlButton[] },
  ): Promise<void>;
  /** @throws {GatewayError} `SLACK_FILE_SIZE` for an empty or too large file */
  upload(thread: ThreadRef, draft: UploadDraft): Promise<UploadState>;
  /** Adds or removes a reaction on any message of the thread's channel. */
  react(thread: ThreadRef, ts: string, emoji: string, on: boolean): Promise<void>;
  /** @param turnId - unique; names the message across a crash. `buttons`: Stop and Interrupt of the running turn */
  progress(thread: ThreadRef, turnId: string, buttons?: readonly ControlButton[]): TurnProgress;
  status(thread: ThreadRef): ThreadStatus;

  resume(event: ResumeEvent): Promise<void>;
  /** Keeps everything of an installation until `resume` with `token`: the app was removed or its token revoked. */
  suspend(slug: string, team: string, cause: string): Promise<void>;
  parks(): readonly ParkInfo[];
  /** Begins to write what an earlier process left, then what comes. */
  start(): Promise<void>;
  /** Writes no further, waits at most `graceMs` for what is under way; the rest stays on disk. */
  stop(graceMs?: number): Promise<void>;
  /** Resolves when nothing waits that may go out: for tests and for shutdown. */
  idle(): Promise<void>;
  queues(): BridgeReport['queues'];
  readonly deadLetters: DeadLetters;
}
