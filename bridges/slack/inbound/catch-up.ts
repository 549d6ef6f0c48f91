import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { SlackThread } from '../conversation.js';
import { catchUpKey } from '../delivery-key.js';
import type { Installation } from '../installations.js';
import { readMessages } from '../web-methods.js';
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
  const { identity, client } = installation;
  if (mode === 'off' || !identity) return 0;
  const threads = (await deps.threads(slug)).slice(0, MAX_THREADS);
  let found = 0;
  for (const [index, { thread, lastTs }] of threads.entries()) {
    if (index > 0) await clock.sleep(PAUSE_MS, signal);
    try {
      const page = { channel: thread.channel, ts: thread.threadTs, oldest: lastTs, inclusive: false, limit: 100 };
      const { messages } = await readMessages(client, page, { signal, whenPutOff: index === 0 ? 'throw' : 'wait' });
      for (const message of messages) {
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
