import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { SlackThread } from '../conversation.js';
import { catchUpKey } from '../delivery-key.js';
import type { Installation } from '../installations.js';
import type { SlackMessage } from '../messages.js';
import { type MessagePage, readMessages } from '../web-methods.js';
import type { Accept } from './accept.js';
import { isBot } from './gate.js';

export interface CatchUpDeps {
  readonly mode: 'auto' | 'on' | 'off';
  readonly accept: Accept;
  /** Bound threads that somebody wrote in lately, newest first, each with the newest `ts` that was looked at. */
  readonly threads: (slug: string) => Promise<readonly { readonly thread: SlackThread; readonly lastTs: string }[]>;
  readonly clock: Clock;
  readonly log: Logger;
}

const MAX_THREADS = 200;
const PAGE_MESSAGES = 100;
/** What is read of one thread at most; more is said in the log. */
const MAX_PAGES = 10;
/** Twenty calls a minute leave the workspace's limits to those who are waiting for an answer. */
const PAUSE_MS = 3_000;
/** A wait this long on the first page is what an app gets that may read one page a minute (S-196). */
const STRICT_RETRY_MS = 30_000;

/**
 * Looks for messages that were written in bound threads while no connection was open, and hands them in (S-195).
 *
 * @returns how many were found; 0 also where the catch-up is off
 */
export async function catchUp(installation: Installation, deps: CatchUpDeps, signal: AbortSignal): Promise<number> {
  const { mode, accept, clock, log } = deps;
  const { slug } = installation.app;
  const { identity } = installation;
  if (mode === 'off' || !identity) return 0;
  const threads = (await deps.threads(slug)).slice(0, MAX_THREADS);
  let found = 0;
  for (const [index, { thread, lastTs }] of threads.entries()) {
    try {
      for await (const message of missed(installation, thread, lastTs, index === 0, clock, signal)) {
        if (message.ts <= lastTs || isBot(message) || message.user === identity.botUserId) continue;
        const accepted = await accept({
          slug,
          transport: 'catch-up',
          key: catchUpKey(slug, thread.team, thread.channel, message.ts),
          payload: {
            type: 'event_callback',
            team_id: thread.team,
            event: { ...message, type: 'message', channel: thread.channel },
          },
        });
        if (accepted.kind === 'accepted') found += 1;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      const strict = isGatewayError(error, 'SLACK_RATE_LIMITED') && (error.retryAfterMs ?? 0) >= STRICT_RETRY_MS;
      if (strict && mode === 'auto' && index === 0) {
        log.warn({ app: slug }, 'catch-up is off: Slack lets this app read too little for it');
        return found;
      }
      log.warn({ err: error, app: slug, channel: thread.channel }, 'a thread could not be caught up');
    }
  }
  if (found > 0) log.info({ app: slug, found }, 'messages were found that no event told of');
  return found;
}

/** A thread's messages after `lastTs`, oldest first, page by page. */
async function* missed(
  { app, client }: Installation,
  { channel, threadTs }: SlackThread,
  lastTs: string,
  isFirst: boolean,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<SlackMessage> {
  let cursor: string | null = null;
  for (let read = 0; read < MAX_PAGES; read += 1) {
    if (!isFirst || read > 0) await clock.sleep(PAUSE_MS, signal);
    const place = { channel, ts: threadTs, oldest: lastTs, inclusive: false, limit: PAGE_MESSAGES };
    const page: MessagePage = await readMessages(
      client,
      { ...place, ...(cursor === null ? {} : { cursor }) },
      { signal, whenPutOff: isFirst && read === 0 ? 'throw' : 'wait' },
    );
    yield* page.messages;
    cursor = page.nextCursor;
    if (cursor === null) return;
  }
  throw new GatewayError('SLACK_UNAVAILABLE', {
    message: 'A thread holds more missed messages than are read.',
    details: { app: app.slug, channel, threadTs, pages: MAX_PAGES },
  });
}
