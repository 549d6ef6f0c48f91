import type {
  ResumeEvent,
  SentState,
  SlackOut,
  ThreadRef,
  ReplyDraft,
  UploadDraft,
  UploadState,
} from '../../../bridges/slack/outbound/port.js';

type Draft<M extends 'ephemeral' | 'edit'> = Parameters<SlackOut[M]>[2];

/** Everything that was asked of a {@link FakeSlackOut}, in order. */
export type FakeWrite =
  | { readonly kind: 'reply'; readonly thread: ThreadRef; readonly draft: ReplyDraft }
  | {
      readonly kind: 'ephemeral';
      readonly thread: ThreadRef;
      readonly userId: string;
      readonly draft: Draft<'ephemeral'>;
    }
  | { readonly kind: 'edit'; readonly thread: ThreadRef; readonly ts: string; readonly draft: Draft<'edit'> }
  | { readonly kind: 'upload'; readonly thread: ThreadRef; readonly draft: UploadDraft }
  | {
      readonly kind: 'react';
      readonly thread: ThreadRef;
      readonly ts: string;
      readonly emoji: string;
      readonly on: boolean;
    }
  | { readonly kind: 'progress'; readonly turnId: string; readonly what: string }
  | { readonly kind: 'status'; readonly thread: ThreadRef; readonly text: string | null };

/** Records writes instead of making them; ids are written once, as by the real one. */
export interface FakeSlackOut extends SlackOut {
  readonly writes: FakeWrite[];
  readonly resumed: ResumeEvent[];
  /** The Markdown of every reply, oldest first. */
  replies(): string[];
  /** What the next replies and uploads come to; default: sent. */
  answerWith(state: SentState & UploadState): void;
}

export function createFakeSlackOut(): FakeSlackOut {
  const writes: FakeWrite[] = [];
  const resumed: ResumeEvent[] = [];
  const seen = new Set<string>();
  let answer: (SentState & UploadState) | null = null;
  let lastTs = 1_700_000_000;
  const first = (id: string): boolean => {
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  };
  return {
    writes,
    resumed,
    replies: () => writes.flatMap((write) => (write.kind === 'reply' ? [write.draft.markdown] : [])),
    answerWith: (state) => {
      answer = state;
    },
    reply: (thread, draft) => {
      if (first(draft.id)) writes.push({ kind: 'reply', thread, draft });
      lastTs += 1;
      return Promise.resolve(answer ?? { state: 'sent', ts: [`${lastTs}.000100`], permalink: null });
    },
    ephemeral: (thread, userId, draft) => {
      if (first(draft.id)) writes.push({ kind: 'ephemeral', thread, userId, draft });
      return Promise.resolve();
    },
    edit: (thread, ts, draft) => {
      if (first(draft.id)) writes.push({ kind: 'edit', thread, ts, draft });
      return Promise.resolve();
    },
    upload: (thread, draft) => {
      if (first(draft.id)) writes.push({ kind: 'upload', thread, draft });
      return Promise.resolve(answer ?? { state: 'sent', fileId: 'F0FAKE', permalink: null });
    },
    react: (thread, ts, emoji, on) => {
      writes.push({ kind: 'react', thread, ts, emoji, on });
      return Promise.resolve();
    },
    progress: (_thread, turnId) => {
      const note = (what: string) => {
        writes.push({ kind: 'progress', turnId, what });
      };
      return {
        toolStarted: (callId, name) => {
          note(`started ${name} ${callId}`);
        },
        toolEnded: (callId, error = null) => {
          note(`ended ${callId}${error === null ? '' : `: ${error}`}`);
        },
        controls: (buttons, line) => {
          note(`controls ${buttons.map(({ action }) => action).join(',')}${line === undefined ? '' : ` ${line}`}`);
        },
        finish: () => {
          note('finished');
          return Promise.resolve();
        },
      };
    },
    status: (thread) => ({
      set: (text = 'is thinking…') => {
        writes.push({ kind: 'status', thread, text });
      },
      clear: () => {
        writes.push({ kind: 'status', thread, text: null });
      },
    }),
    resume: (event) => {
      resumed.push(event);
      return Promise.resolve();
    },
    suspend: () => Promise.resolve(),
    parks: () => [],
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    idle: () => Promise.resolve(),
    queues: () => [{ name: 'outbox', depth: 0, dead: 0 }],
    deadLetters: {
      list: () => Promise.resolve([]),
      retry: () => Promise.resolve(false),
      drop: () => Promise.resolve(false),
    },
  };
}
