import { withDeadline } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { RawHistoryMessage } from '../../../src/core/history.js';
import { isGatewayError } from '../../../src/base/errors.js';
import { messageToMarkdown } from '../convert/index.js';
import { slackErrorOf } from '../errors.js';
import type { Installation } from '../installations.js';
import type { SlackMessage } from '../messages.js';
import { readMessages, type MessagePage, type SlackIdentity } from '../web-methods.js';
import { isBot, OWN_EVENT_TYPE } from './gate.js';
import { MAX_MESSAGES, newest, type ThreadPast } from './thread-past.js';

const PAGE_SIZE = 200;
/** A thread longer than this is read from its end, as far as Slack's paging allows. */
const MAX_PAGES = 25;
/** Slack may put a page off for as long as it likes; a turn does not wait longer than this for its past. */
const LONGEST_READ_MS = 10_000;
const LOST_WALK: ReadonlySet<string> = new Set(['invalid_cursor', 'invalid_ts_oldest', 'invalid_ts_latest']);
/** What this bridge posts beside replies, and what a brain is not to take for its own words. */
const NOT_SAID = new Set(['progress', 'notice', 'control', 'error']);

export interface ThreadPlace {
  readonly channel: string;
  readonly threadTs: string;
}

/** A turn in a thread: whose past is wanted, and up to where. */
export interface PastWanted extends ThreadPlace {
  /** Names the thread in what is kept. */
  readonly key: string;
  /** The message that begins the turn: it and what came after are left out. */
  readonly trigger: SlackMessage;
}

/** The past of a thread as far as it could be read. */
export interface ReadPast {
  readonly messages: readonly RawHistoryMessage[];
  /** Slack did not show it: what stands in `messages` is not what was said. */
  readonly isMissing: boolean;
}

/**
 * What was said in a thread before a message: the newest 200 messages or 60,000 characters, oldest first (S-077). A
 * failure gives an empty past and a log line, never a failed turn (S-078); so does a Slack that puts it off for more
 * than ten seconds.
 */
export async function readThread(
  installation: Installation,
  identity: SlackIdentity,
  agentName: string,
  wanted: PastWanted,
  past: ThreadPast,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<ReadPast> {
  const before = entryId(wanted.trigger);
  const known = past.get(wanted.key);
  if (known) return { messages: newest(known.filter(({ id }) => id < before)), isMissing: false };
  try {
    const messages = await withDeadline(clock, LONGEST_READ_MS, signal, (within) =>
      collect(installation, wanted, wanted.trigger.ts, within),
    );
    const all = await Promise.all(
      [...messages, wanted.trigger].map((one) => historyEntry(one, installation, identity, agentName, wanted)),
    );
    const entries = all.filter((entry) => entry !== null);
    past.keep(wanted.key, entries);
    return { messages: newest(entries.filter(({ id }) => id < before)), isMissing: false };
  } catch (error) {
    if (signal.aborted) throw error;
    const { needed, provided } = isGatewayError(error) ? error.details : {};
    const hint = 'reading a thread takes channels:history, groups:history, im:history or mpim:history, and membership';
    log.warn({ err: error, app: installation.app.slug, needed, provided, hint }, 'a thread could not be read');
    return { messages: [], isMissing: true };
  }
}

const entryId = ({ ts }: Pick<SlackMessage, 'ts'>): string => `slack:${ts}`;

async function collect(
  { client }: Installation,
  place: ThreadPlace,
  before: string,
  signal: AbortSignal,
): Promise<SlackMessage[]> {
  let kept: SlackMessage[] = [];
  let cursor: string | null = null;
  let again = false;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const wanted = {
      channel: place.channel,
      ts: place.threadTs,
      latest: before,
      inclusive: false,
      limit: PAGE_SIZE,
      cursor,
      includeMetadata: true,
    };
    let shown: MessagePage;
    try {
      shown = await readMessages(client, wanted, { signal });
    } catch (error) {
      // A walk whose mark Slack no longer knows begins anew, once.
      if (again || !LOST_WALK.has(slackErrorOf(error) ?? '')) throw error;
      again = true;
      kept = [];
      cursor = null;
      continue;
    }
    const { messages, nextCursor } = shown;
    kept = [...kept, ...messages.filter(({ ts }) => ts < before)].slice(-MAX_MESSAGES);
    if (nextCursor === null) break;
    cursor = nextCursor;
  }
  return kept;
}

/** A message as a part of its thread's past; null for our own notices and for what holds no words. */
export async function historyEntry(
  message: SlackMessage,
  { directory }: Installation,
  own: SlackIdentity,
  agentName: string,
  { channel, threadTs }: ThreadPlace,
): Promise<RawHistoryMessage | null> {
  const isOurs = message.user === own.botUserId || (own.botId !== null && message.bot_id === own.botId);
  const payload = message.metadata?.event_type === OWN_EVENT_TYPE ? message.metadata.event_payload : null;
  const kind = isOurs ? payload?.['t'] : null;
  if (typeof kind === 'string' && NOT_SAID.has(kind)) return null;
  // What was passed on for somebody else is not what the brain said.
  const isOwn = isOurs && kind !== 'relay';
  const names = await directory.namesFor(message, { userId: own.botUserId, teamId: own.teamId });
  const files = (message.files ?? []).map(
    ({ name, mimetype, size }) => `[file: ${name ?? 'unnamed'}, ${mimetype ?? 'unknown type'}, ${size ?? 0} bytes]`,
  );
  const content = [messageToMarkdown(message, names), ...files].filter(Boolean).join('\n');
  if (content === '') return null;
  return {
    id: entryId(message),
    role: isOwn ? 'assistant' : 'user',
    content,
    senderName: isOwn ? agentName : senderName(message),
    senderType: isOwn ? 'Agent' : 'user',
    messageType: 'text',
    metadata: { slack_channel_id: channel, slack_thread_ts: threadTs, slack_ts: message.ts },
    createdAt: new Date(Number(message.ts) * 1_000),
  };
}

function senderName(message: SlackMessage): string {
  if (isBot(message)) return `slack-bot:${message.bot_id ?? message.username ?? 'unknown'}`;
  return `slack:${message.user ?? 'slack-user'}`;
}
