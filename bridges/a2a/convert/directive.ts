import { z } from 'zod';
import type { Part, TaskState } from '../wire.js';

/** What a peer's reply says, once its directive is read. */
export interface Reply {
  /** The prose: all of it without a directive, what stands before the block with one. */
  readonly text: string;
  /** Where the peer moves its task; null when it only answers. */
  readonly state: ReplyState | null;
  /** true: the answer is complete; false: more follows; null: not said. */
  readonly final: boolean | null;
  /** It ended with a valid directive, so it counts even with an empty text. */
  readonly directed: boolean;
  /** Further parts of the artifact, and the artifact's own fields; only richer readers than this one set them. */
  readonly parts?: readonly Part[];
  readonly artifact?: {
    readonly id?: string;
    readonly name?: string;
    readonly append?: boolean;
    readonly lastChunk?: boolean;
  };
}

export type ReplyState = 'input-required' | 'auth-required' | 'completed' | 'failed' | 'rejected' | 'working';

/** Turns the text of a reply into what it says. */
export type ReadReply = (text: string) => Reply;

const STATES: Readonly<Record<string, ReplyState>> = {
  'input-required': 'input-required',
  'auth-required': 'auth-required',
  completed: 'completed',
  failed: 'failed',
  rejected: 'rejected',
  working: 'working',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_WORKING: 'working',
} satisfies Record<string, ReplyState> & Partial<Record<TaskState, ReplyState>>;

const directiveSchema = z.strictObject({
  state: z
    .string()
    .refine((state) => Object.hasOwn(STATES, state))
    .optional(),
  final: z.boolean().optional(),
});

const MAX_BODY_BYTES = 65_536;

export interface FencedBlock {
  /** What stands before the block, without the one line break in front of it. */
  readonly text: string;
  readonly body: string;
}

/** Reads the directive a reply may end with; anything malformed leaves the reply as plain text. */
export const readReply: ReadReply = (text) => {
  const plain: Reply = { text, state: null, final: null, directed: false };
  const block = closingBlock(text);
  if (!block) return plain;
  const directive = directiveSchema.safeParse(parseJson(block.body));
  if (!directive.success) return plain;
  const { state, final } = directive.data;
  return {
    text: block.text,
    state: state === undefined ? null : (STATES[state] ?? null),
    final: final ?? null,
    directed: true,
  };
};

/** A reply taken as it stands, where directives are switched off. */
export const plainReply: ReadReply = (text) => ({ text, state: null, final: null, directed: false });

/** The fenced block with the info string `a2a` that ends a text, or null. */
export function closingBlock(text: string): FencedBlock | null {
  const trimmed = text.trimEnd();
  const closing = /(?:^|\n)(`{3,})$/.exec(trimmed);
  if (!closing?.[1]) return null;
  const closeAt = trimmed.length - closing[1].length;
  const opening = openingBefore(trimmed, closeAt, closing[1].length);
  if (!opening) return null;
  const body = trimmed.slice(opening.bodyAt, Math.max(opening.bodyAt, closeAt)).replace(/\r?\n$/, '');
  if (Buffer.byteLength(body) > MAX_BODY_BYTES) return null;
  return { text: trimmed.slice(0, opening.at).replace(/\r?\n$/, ''), body };
}

/** The nearest fence line above; it opens our block only when its info string is exactly `a2a`. */
function openingBefore(text: string, before: number, longest: number): { at: number; bodyAt: number } | null {
  for (let end = before - 1; end >= 0;) {
    const start = text.lastIndexOf('\n', end - 1) + 1;
    const line = text.slice(start, end).replace(/\r$/, '');
    const fence = /^(`{3,})([^`]*)$/.exec(line);
    if (fence?.[1]) {
      return fence[2] === 'a2a' && fence[1].length <= longest ? { at: start, bodyAt: end + 1 } : null;
    }
    end = start - 1;
  }
  return null;
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined; // not JSON: the reply stays plain
  }
}
