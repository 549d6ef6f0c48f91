import type { SlackClient } from '../client.js';
import { unicodeEmoji } from '../convert/emoji.js';
import { decodeEntities } from '../convert/text.js';
import type { SlackMessage } from '../messages.js';
import { readMessages } from '../web-methods.js';
import { METADATA_TYPE } from './compose.js';

export interface LookUpPlace {
  readonly channel: string;
  /** Null: the channel's top level. */
  readonly threadTs: string | null;
}

/** How much earlier is looked: a key is one post's only, so that looking too far back finds nothing wrong. */
const EARLIER_MS = 10 * 60_000;
/** The same words may have been said before, so that a post without its key is looked for more narrowly. */
const EARLIER_BY_TEXT_MS = 5_000;
const PAGE = 200;
const MAX_PAGES = 5;

/**
 * What of ours stands in a place since `fromMs`, by key. A post without metadata is found by its author and text, as
 * Slack shows it, instead. Slack's posts have Slack's time: a machine whose clock is fast would otherwise look only at
 * what came later.
 *
 * @param fromMs - by this machine's clock
 * @throws {GatewayError} what the client throws: then nobody knows
 */
export async function lookUp(
  client: SlackClient,
  { channel, threadTs }: LookUpPlace,
  fromMs: number,
  signal: AbortSignal,
): Promise<FoundPosts> {
  const keys = new Map<string, string>();
  const unnamed: SlackMessage[] = [];
  const fromSlackMs = fromMs - client.clockAheadMs();
  const oldest = `${Math.max(0, Math.floor((fromSlackMs - EARLIER_MS) / 1_000))}.000000`;
  const oldestByText = (fromSlackMs - EARLIER_BY_TEXT_MS) / 1_000;
  let cursor: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const shown = await readMessages(
      client,
      { channel, ...(threadTs === null ? {} : { ts: threadTs }), oldest, limit: PAGE, cursor, includeMetadata: true },
      { signal },
    );
    for (const message of shown.messages) {
      const { metadata, ts } = message;
      const key = metadata?.event_type === METADATA_TYPE ? metadata.event_payload?.['k'] : null;
      if (typeof key === 'string') keys.set(key, ts);
      else if (Number(ts) >= oldestByText) unnamed.push(message);
    }
    cursor = shown.nextCursor;
    if (cursor === null) break;
  }
  return {
    byKey: (key) => keys.get(key) ?? null,
    byText: (user, text) =>
      unnamed.find((one) => one.user === user && asShown(one.text ?? '') === asShown(text))?.ts ?? null,
  };
}

export interface FoundPosts {
  byKey(key: string): string | null;
  byText(botUserId: string, text: string): string | null;
}

/** What is left of a text however Slack writes it down: it makes links and mentions of words, and names of emoji. */
function asShown(text: string): string {
  const plain = decodeEntities(text.replace(/<([^<>|\n]+)(?:\|[^<>\n]*)?>/g, '$1'));
  return unicodeEmoji(plain)
    .replace(/[\u{1f3fb}-\u{1f3ff}\ufe0e\ufe0f\u200b-\u200d]/gu, '')
    .replace(/\s+/g, ' ')
    .trim();
}
