import { withDeadline } from '../../src/base/async.js';
import { BoundedMap } from '../../src/base/bounded.js';
import type { Clock } from '../../src/base/clock.js';
import type { Logger } from '../../src/base/log.js';
import type { SlackClient } from './client.js';
import { botInfo, channelInfo, userInfo, type SlackBot, type SlackChannel, type SlackUser } from './web-methods.js';
import type { SlackNames } from './convert/index.js';
import type { SlackMessage } from './messages.js';

const FRESH_MS = 24 * 3_600_000;
const FAILED_MS = 60_000;
/** Slack may put a call off for as long as it likes; a name is not worth more than this. */
const LONGEST_LOOK_MS = 10_000;
const MAX_ENTRIES = 5_000;
/** People, channels and bots that one message may have looked up by name. */
const MAX_NAMES = 50;

interface Entry<T> {
  readonly value: Promise<T | null>;
  readonly until: number;
}

/**
 * Names of people, bots and channels of one workspace, read once a day. What cannot be read counts as unknown for a
 * minute and is then asked for again (S-160). Nothing here throws, or takes longer than ten seconds.
 */
export class SlackDirectory {
  readonly #client: SlackClient;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #users = new BoundedMap<string, Entry<SlackUser>>(MAX_ENTRIES);
  readonly #bots = new BoundedMap<string, Entry<SlackBot>>(MAX_ENTRIES);
  readonly #channels = new BoundedMap<string, Entry<SlackChannel>>(MAX_ENTRIES);

  constructor(client: SlackClient, clock: Clock, log: Logger) {
    this.#client = client;
    this.#clock = clock;
    this.#log = log;
  }

  user(id: string): Promise<SlackUser | null> {
    return this.#read(this.#users, id, (signal) => userInfo(this.#client, id, { signal }));
  }

  bot(id: string): Promise<SlackBot | null> {
    return this.#read(this.#bots, id, (signal) => botInfo(this.#client, id, { signal }));
  }

  channel(id: string): Promise<SlackChannel | null> {
    return this.#read(this.#channels, id, (signal) => channelInfo(this.#client, id, { signal }));
  }

  /** The person changed: their name is read again when it is needed. */
  forgetUser(id: string): void {
    this.#users.delete(id);
  }

  forgetChannel(id: string): void {
    this.#channels.delete(id);
  }

  /** `DM`, `#name`, or the id where the name cannot be read (S-161). */
  async channelLabel(id: string): Promise<string> {
    const channel = await this.channel(id);
    if (channel?.kind === 'im') return 'DM';
    return channel?.name ? `#${channel.name}` : id;
  }

  /** What a message's mentions are called, looked up beforehand since conversion waits for nothing. */
  async namesFor(
    message: SlackMessage,
    own: { readonly userId: string; readonly teamId: string },
  ): Promise<SlackNames> {
    const source = JSON.stringify([message.text, message.blocks, message.attachments]);
    const ids = (pattern: RegExp) => [...new Set(source.match(pattern) ?? [])].slice(0, MAX_NAMES);
    const users = await this.#names(ids(/\b[UW][A-Z0-9]{6,}\b/g), async (id) => (await this.user(id))?.name ?? null);
    const channels = await this.#names(ids(/\bC[A-Z0-9]{6,}\b/g), async (id) => (await this.channel(id))?.name ?? null);
    return {
      ownUserId: own.userId,
      team: own.teamId,
      user: (id) => users.get(id) ?? null,
      channel: (id) => channels.get(id) ?? null,
      group: () => null,
    };
  }

  async #names(
    ids: readonly string[],
    nameOf: (id: string) => Promise<string | null>,
  ): Promise<Map<string, string | null>> {
    return new Map(await Promise.all(ids.map(async (id) => [id, await nameOf(id)] as const)));
  }

  #read<T>(
    cache: BoundedMap<string, Entry<T>>,
    id: string,
    read: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | null> {
    const known = cache.get(id);
    if (known && known.until > this.#clock.now()) return known.value;
    const value = withDeadline(this.#clock, LONGEST_LOOK_MS, null, read).catch((error: unknown) => {
      this.#log.debug({ err: error }, 'a name could not be read from Slack');
      cache.set(id, { value: Promise.resolve(null), until: this.#clock.now() + FAILED_MS });
      return null;
    });
    cache.set(id, { value, until: this.#clock.now() + FRESH_MS });
    return value;
  }
}

/** `Name (@handle)`, whichever of the two there is, else `Slack user` (S-161). */
export function personLabel(user: SlackUser | null): string {
  if (user?.name && user.handle) return `${user.name} (@${user.handle})`;
  return user?.name ?? (user?.handle ? `@${user.handle}` : 'Slack user');
}
