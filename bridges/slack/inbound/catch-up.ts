import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { catchUpKey } from '../delivery-key.js';
import type { Installation } from '../installations.js';
import type { SlackMessage } from '../messages.js';
import { type MessagePage, readMessages } from '../web-methods.js';
import type { Accept } from './accept.js';
import { isBot } from './gate.js';

/** Where something may have been missed. */
export interface MissedPlace {
  readonly team: string;
  readonly channel: string;
  /** Null: the top level of a direct message, where each message begins a thread. */
  readonly threadTs: string | null;
  /** What is newer may not have been seen. */
  readonly oldest: string;
}

export interface CatchUpDeps {
  readonly mode: 'auto' | 'on';
  readonly accept: Accept;
  /** Resolves when the next call may be made. */
  readonly pace: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** `strict`: Slack lets this app read a page a minute, which is too little for this (S-196). */
export type CaughtUp = { readonly kind: 'done'; readonly found: number } | { readonly kind: 'strict' };

const PAGE_MESSAGES = 100;
/** What is read of one place at most; more is said in the log. */
const MAX_PAGES = 10;
/** Reads of one page, each a few seconds after the one before. */
const MAX_TRIES = 5;
/** An app under the strict limit has to wait this long or longer for its next page. */
const STRICT_RETRY_MS = 30_000;

/**
 * Looks for messages that were written while none could come, and hands them in (S-195). What came all the same, or
 * comes later by Slack's own repeats, is known by its `ts` and makes no second turn.
 */
export async function catchUp(
  installation: Installation,
  places: readonly MissedPlace[],
  deps: CatchUpDeps,
  signal: AbortSignal,
): Promise<CaughtUp> {
  const { accept, log } = deps;
  const { slug } = installation.app;
  let found = 0;
  for (const place of places) {
    const { team, channel, oldest } = place;
    try {
      for (const message of await missed(installation, place, deps, signal)) {
        if (message.ts <= oldest || isBot(message) || message.user === installation.identity?.botUserId) continue;
        const event = { ...message, type: 'message', channel };
        const accepted = await accept({
          slug,
          transport: 'catch-up',
          key: catchUpKey(slug, team, channel, message.ts),
          payload: { type: 'event_callback', team_id: team, event },
        });
        if (accepted.kind === 'accepted') found += 1;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof StrictLimit) return { kind: 'strict' };
      log.warn({ err: error, app: slug, channel }, 'a conversation could not be caught up');
    }
  }
  if (found > 0) log.info({ app: slug, found }, 'messages were found that no event told of');
  return { kind: 'done', found };
}

class StrictLimit extends Error {}

/** A place's messages since it was looked at, oldest first; Slack shows a thread in this order, a channel in the other. */
async function missed(
  { app, client }: Installation,
  { channel, threadTs, oldest }: MissedPlace,
  deps: CatchUpDeps,
  signal: AbortSignal,
): Promise<readonly SlackMessage[]> {
  const messages: SlackMessage[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const thread = threadTs === null ? {} : { ts: threadTs };
    const wanted = { channel, ...thread, oldest, inclusive: false, limit: PAGE_MESSAGES, cursor };
    const page = await readPage(
      () => readMessages(client, wanted, { signal, whenPutOff: 'throw' }),
      pages,
      deps,
      signal,
    );
    messages.push(...page.messages);
    cursor = page.nextCursor;
    if (cursor === null) break;
  }
  if (cursor !== null) {
    deps.log.error(
      { app: app.slug, channel, pages: MAX_PAGES },
      'a conversation holds more missed messages than are read',
    );
  }
  return messages.sort((a, b) => (a.ts < b.ts ? -1 : 1));
}

async function readPage(
  read: () => Promise<MessagePage>,
  pages: number,
  { mode, pace }: CatchUpDeps,
  signal: AbortSignal,
): Promise<MessagePage> {
  for (let tries = 1; ; tries += 1) {
    await pace(signal);
    try {
      return await read();
    } catch (error) {
      if (signal.aborted || !(error instanceof GatewayError)) throw error;
      const isStrict = isGatewayError(error, 'SLACK_RATE_LIMITED') && (error.retryAfterMs ?? 0) >= STRICT_RETRY_MS;
      if (isStrict && mode === 'auto' && pages === 0) throw new StrictLimit();
      if (!error.retryable || tries >= MAX_TRIES) throw error;
    }
  }
}
