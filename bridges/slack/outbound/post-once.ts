import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Counter } from '../../../src/base/metrics.js';
import type { SlackArguments } from '../client.js';
import { judgeFault } from '../errors.js';
import { postMessage } from '../web-methods.js';
import type { OutInstallation } from './faults.js';
import type { Landing } from './landing.js';
import { lookUp, type LookUpPlace } from './look-up.js';
import type { Note, Notes, Unsure } from './notes.js';

/** One message that stands in Slack once, however often its sending was begun. */
export interface OncePost {
  /** The outbox record. */
  readonly id: string;
  readonly note: Note;
  /** Names the message within its record. */
  readonly path: string;
  /** Stands in its metadata. */
  readonly key: string;
  readonly text: string;
  readonly args: SlackArguments;
  readonly install: OutInstallation;
  /** Where the message can be read; asked only when it is looked for. */
  readonly place: (signal: AbortSignal) => Promise<LookUpPlace>;
}

export interface PostOnceDeps {
  readonly notes: Notes;
  readonly landing: Landing;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ambiguous: Counter;
}

export type PostOnce = (post: OncePost, signal: AbortSignal) => Promise<string>;

/** A look-up that fails for a moment is tried again for so long before the post is sent at least once. */
const LOOK_FOR_MS = 5 * 60_000;

type Found =
  | { readonly kind: 'stands'; readonly ts: string }
  | { readonly kind: 'nowhere' }
  /** Slack lets nobody look. */
  | { readonly kind: 'unknown' };

/**
 * Posts so that a message shows once (S-100 to S-103): it is on disk that a try begins before the request leaves. When
 * its end stays unknown, be it a broken connection or the end of the process, the next try looks first. What it finds
 * counts at once; that it finds nothing counts only when the earlier request can no longer land. A look-up that fails
 * for a moment is repeated for five minutes, the lane waiting in order, since a late answer is better than two: only
 * then, or where Slack lets nobody look, the message is sent again without knowing.
 *
 * @returns a function that gives the message's `ts`; it throws `TooEarly`, or what the client throws
 */
export function createPostOnce({ notes, landing, clock, log, ambiguous }: PostOnceDeps): PostOnce {
  return async (post, signal) => {
    const { id, note, path, args, install } = post;
    let unresolved: Unsure | null = null;
    if (note.unsure?.path === path) {
      const found = await look(post, note.unsure, signal);
      if (found.kind === 'stands') {
        ambiguous.inc({ resolution: 'found' });
        note.unsure = null;
        return found.ts;
      }
      if (found.kind === 'unknown') unresolved = note.unsure;
      else landing.check(note.unsure);
      ambiguous.inc({ resolution: 'resent' });
    }
    const mark = landing.begin(path, unresolved?.begunAt);
    const sending = { begun: false };
    const beforeSending = async () => {
      // A call that Slack put off is sent again, and is marked already.
      if (sending.begun) return;
      await notes.put(id, { ...note, unsure: mark });
      sending.begun = true;
    };
    try {
      const { ts } = await postMessage(install.client, args, { signal, beforeSending });
      note.unsure = null;
      return ts;
    } catch (error) {
      if (sending.begun) note.unsure = landing.after(error, mark, 'chat.postMessage') ?? unresolved;
      throw error;
    }
  };

  /** What an earlier try has come to. */
  async function look(
    { note, key, text, install, place }: OncePost,
    { begunAt }: Unsure,
    signal: AbortSignal,
  ): Promise<Found> {
    try {
      const where = await place(signal);
      const found = await lookUp(install.client, where, Math.min(begunAt, clock.now()), signal);
      note.lookingSince = null;
      const ts =
        found.byKey(key) ?? (note.tried.includes('without-metadata') ? found.byText(install.botUserId, text) : null);
      return ts === null ? { kind: 'nowhere' } : { kind: 'stands', ts };
    } catch (error) {
      if (signal.aborted || !isGatewayError(error)) throw error;
      note.lookingSince ??= clock.now();
      if (isWorthWaiting(error) || (error.retryable && clock.now() - note.lookingSince < LOOK_FOR_MS)) throw error;
      log.warn({ err: error }, 'own posts could not be looked up');
      return { kind: 'unknown' };
    }
  }
}

/** What keeps a look-up from being made keeps the post from being sent as well. */
function isWorthWaiting(error: unknown): boolean {
  if (isGatewayError(error, 'SLACK_UNREACHABLE')) return true;
  if (!isGatewayError(error) || !error.code.startsWith('SLACK_')) return false;
  const { fault } = judgeFault(error, 'conversations.replies');
  return fault.kind === 'refresh' || (fault.kind === 'park' && fault.what !== 'channel');
}
