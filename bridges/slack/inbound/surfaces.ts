import { BoundedMap } from '../../../src/base/bounded.js';
import type { Logger } from '../../../src/base/log.js';
import type { Installation } from '../installations.js';
import type { SlackEvent } from '../parse-event.js';
import type { SlackOptions } from '../settings.js';

export interface SurfacesDeps {
  readonly prompts: SlackOptions['suggestedPrompts'];
  readonly log: Logger;
}

/** What a person looks at in Slack beside the conversation, as Slack words it. */
export type SlackContext = Readonly<Record<string, unknown>>;

type Opened = Extract<SlackEvent, { kind: 'thread_opened' }>;
type Looked = Extract<SlackEvent, { kind: 'context_changed' }>;

const MAX_KEPT = 5_000;

/**
 * The places Slack gives an agent beside its channels: prompts where somebody opens the conversation with it (S-137),
 * and what they are looking at meanwhile (S-138). Kept in memory alone: Slack tells it anew as people move about.
 */
export class Surfaces {
  readonly #deps: SurfacesDeps;
  readonly #contexts = new BoundedMap<string, SlackContext>(MAX_KEPT);

  constructor(deps: SurfacesDeps) {
    this.#deps = deps;
  }

  /** Somebody opened the conversation with the app, or looks at something else in it. */
  async opened(event: Opened, { client, app }: Installation, signal: AbortSignal): Promise<void> {
    const { type, channel, threadTs, user, tab, context } = event;
    if (context && user !== null) this.#note(app.slug, user, context);
    if (context && threadTs !== null) this.#note(app.slug, `${channel}:${threadTs}`, context);
    const { prompts, log } = this.#deps;
    if (prompts.length === 0 || type === 'assistant_thread_context_changed') return;
    if (type === 'app_home_opened' && tab !== 'messages') return;
    // An agent's prompts stand above the conversation: with a thread Slack takes them and shows none.
    const thread = type === 'assistant_thread_started' && threadTs !== null ? { thread_ts: threadTs } : {};
    try {
      await client.call(
        'assistant.threads.setSuggestedPrompts',
        { channel_id: channel, ...thread, prompts },
        { signal, whenPutOff: 'throw' },
      );
    } catch (error) {
      if (signal.aborted) throw error;
      log.debug({ err: error, app: app.slug }, 'prompts were not shown');
    }
  }

  /** Somebody looks at something else in Slack. */
  looked({ user, context }: Looked, { app }: Installation): void {
    if (user !== null) this.#note(app.slug, user, context);
  }

  /** What the author of a message was looking at; null where Slack did not say. */
  contextOf(
    slug: string,
    at: {
      readonly channel: string;
      readonly threadTs: string;
      readonly user: string | null;
      /** What came with the message itself. */
      readonly own: SlackContext | null;
    },
  ): SlackContext | null {
    if (at.own && Object.keys(at.own).length > 0) return at.own;
    const ofThread = this.#contexts.get(`${slug}:${at.channel}:${at.threadTs}`);
    // What somebody looks at is shown where they speak to the app directly, never in a channel that others read.
    const ofPerson =
      at.user !== null && at.channel.startsWith('D') ? this.#contexts.get(`${slug}:${at.user}`) : undefined;
    return ofThread ?? ofPerson ?? null;
  }

  #note(slug: string, of: string, context: SlackContext): void {
    const key = `${slug}:${of}`;
    if (Object.keys(context).length > 0) this.#contexts.set(key, context);
    else this.#contexts.delete(key);
  }
}
