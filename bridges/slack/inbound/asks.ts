import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import type { SlackArguments, SlackClient } from '../client.js';
import { mrkdwnToMarkdown, NO_MENTIONS, renderMarkdown } from '../convert/index.js';
import { judgeFault, slackErrorOf } from '../errors.js';
import type { Installation } from '../installations.js';
import { ownMetadata, shortMessage } from '../outbound/compose.js';
import { digest } from '../outbound/jobs.js';
import { LANDS_WITHIN_MS } from '../outbound/landing.js';
import { lookUp } from '../outbound/look-up.js';
import type { DeliverySource } from '../parse.js';
import { postMessage, type SlackIdentity } from '../web-methods.js';
import type { Accept } from './accept.js';
import type { SlackRecord } from './records.js';

/** Something that a person wants said in a place, in whose thread the agent then answers. */
export interface Opening {
  readonly channel: string;
  /** Null: it begins a thread of its own. */
  readonly threadTs: string | null;
  readonly userId: string;
  /** What stands behind the person's name, e.g. `asks:`. */
  readonly does: string;
  /** The person's words, in mrkdwn; empty for none. */
  readonly words: string;
}

export type Opened =
  | { readonly kind: 'opened'; readonly ts: string; readonly threadTs: string }
  /** Slack lets nothing be written there; `why` is one sentence for the person. */
  | { readonly kind: 'refused'; readonly why: string };

export interface AsksDeps {
  readonly autoJoin: boolean;
  readonly accept: Accept;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Asks {
  /**
   * Posts an opening once, also when it is tried again after a crash.
   *
   * @throws {GatewayError} what may go better later
   */
  post(opening: Opening, by: Installation, record: QueueRecord<SlackRecord>, signal: AbortSignal): Promise<Opened>;
  /** Posts a question and hands it in as the person's message to the agent (S-169, S-170). */
  ask(
    opening: Opening & {
      /** What the question is about, in mrkdwn. */
      readonly about: string | null;
    },
    source: DeliverySource,
    identity: SlackIdentity,
    by: Installation,
    record: QueueRecord<SlackRecord>,
    signal: AbortSignal,
  ): Promise<Opened>;
}

/** What is shown of the words; the agent gets all of them. */
const MAX_SHOWN_CHARS = 3_000;

/** Puts a person's words into a channel in the bot's name, where the person cannot post them to the agent directly. */
export function createAsks({ autoJoin, accept, clock, log }: AsksDeps): Asks {
  const post: Asks['post'] = async (opening, by, record, signal) => {
    const { channel, threadTs } = opening;
    const { client, directory, identity } = by;
    const key = digest('opening', record.id);
    const earlier = record.maybeDelivered ? await findEarlier(opening, client, key, record.putAt, signal) : null;
    if (earlier !== null) return { kind: 'opened', ts: earlier, threadTs: threadTs ?? earlier };
    const own = { userId: identity?.botUserId ?? '', teamId: identity?.teamId ?? '' };
    const names = await directory.namesFor({ type: 'message', ts: '0', text: opening.words }, own);
    const message: SlackArguments = {
      channel,
      ...(threadTs === null ? {} : { thread_ts: threadTs }),
      ...quoted(opening, mrkdwnToMarkdown(opening.words, names)),
      metadata: ownMetadata(key, 'relay'),
      unfurl_links: false,
      unfurl_media: false,
    };
    for (let joined = false; ; joined = true) {
      try {
        const { ts } = await postMessage(client, message, { signal });
        return { kind: 'opened', ts, threadTs: threadTs ?? ts };
      } catch (error) {
        if (signal.aborted) throw error;
        const { fault, notice } = judgeFault(error, 'chat.postMessage');
        if (fault.kind === 'join' && autoJoin && !joined && (await join(by, channel, signal))) continue;
        switch (fault.kind) {
          case 'join':
          case 'look_up_channel':
            return { kind: 'refused', why: 'I am not in this channel. Invite me, or write to me directly.' };
          case 'dead':
          case 'reshape':
          case 'without':
          case 'tool_result':
          case 'done':
          case 'interrupt':
            return refused(error, notice);
          case 'park':
            if (fault.what === 'channel' || fault.what === 'direct_messages') return refused(error, notice);
            throw error;
          case 'wait':
          case 'again':
          case 'refresh':
            throw error;
        }
      }
    }
  };

  /** What an earlier try posted; a request of it that is still on its way has the time to land. */
  const findEarlier = async (
    { channel, threadTs }: Opening,
    client: SlackClient,
    key: string,
    since: number,
    signal: AbortSignal,
  ): Promise<string | null> => {
    const find = async () => (await lookUp(client, { channel, threadTs }, since, signal)).byKey(key);
    try {
      const found = await find();
      if (found !== null) return found;
      await clock.sleep(LANDS_WITHIN_MS, signal);
      return await find();
    } catch (error) {
      if (signal.aborted || (isGatewayError(error) && error.retryable)) throw error;
      return null;
    }
  };

  const join = async ({ client }: Installation, channel: string, signal: AbortSignal): Promise<boolean> => {
    try {
      await client.call('conversations.join', { channel }, { signal });
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      log.info({ err: error, channel }, 'the channel could not be joined');
      return false;
    }
  };

  return {
    post,
    async ask(opening, { appId, teamId, enterpriseId }, identity, by, record, signal) {
      const opened = await post(opening, by, record, signal);
      if (opened.kind === 'refused') return opened;
      const { channel, threadTs, userId, words, about } = opening;
      const text = about === null || about.trim() === '' ? words : `${words}\n\n${asQuote(about)}`;
      const slug = by.app.slug;
      await accept({
        slug,
        transport: record.body.transport,
        key: `${slug}:ask:${channel}:${opened.ts}`,
        payload: {
          type: 'event_callback',
          api_app_id: appId,
          team_id: teamId ?? identity.teamId,
          enterprise_id: enterpriseId,
          event: {
            type: 'app_mention',
            user: userId,
            text,
            ts: opened.ts,
            ...(threadTs === null ? {} : { thread_ts: threadTs }),
            channel,
            ...(channel.startsWith('D') ? { channel_type: 'im' } : {}),
          },
        },
      });
      return opened;
    },
  };
}

const refused = (error: unknown, notice: string | null): Opened => ({
  kind: 'refused',
  why: notice ?? `Slack does not let me write here (${slackErrorOf(error) ?? 'refused'}).`,
});

/** `@alice asks:` above the words as a quotation. The person who is named is the one who asked for it. */
function quoted({ userId, does, words }: Opening, markdown: string): SlackArguments {
  const head = `<@${userId}> ${does}`;
  const pagesAsker = { ...NO_MENTIONS, user: (id: string) => id === userId };
  if (words === '') return shortMessage(head, pagesAsker, []);
  // The words themselves page nobody, whoever stands in them.
  const plain = renderMarkdown(markdown, NO_MENTIONS);
  const shown = plain.length > MAX_SHOWN_CHARS ? `${plain.slice(0, MAX_SHOWN_CHARS)}…` : plain;
  const quote = shown
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');
  return shortMessage(`${head}\n\n${quote}`, pagesAsker, []);
}

/** mrkdwn of a message as lines of a quotation, which Slack writes with an escaped sign. */
const asQuote = (mrkdwn: string): string =>
  mrkdwn
    .split('\n')
    .map((line) => `&gt; ${line}`)
    .join('\n');
