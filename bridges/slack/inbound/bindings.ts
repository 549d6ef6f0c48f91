import { z } from 'zod';
import { abortable } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import type { ConversationKey } from '../../../src/base/ids.js';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import type { Logger } from '../../../src/base/log.js';
import { noMetrics, type Metrics } from '../../../src/base/metrics.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import { ANY_TEAM, parseSlackKey, slackKey, teamlessKey, type SlackThread } from '../conversation.js';
import { scanRooms, type FoundRoom } from './room-scan.js';

/** What is known of a thread that a room is to stand for. */
export interface ThreadFacts extends SlackThread {
  readonly enterpriseId: string | null;
  readonly channelType: string | null;
  readonly userId: string | null;
  /** When Slack was told what asks for the room, by Slack's clock, in milliseconds since the epoch. */
  readonly askedAt: number;
}

export interface Binding {
  readonly key: ConversationKey;
  readonly thread: SlackThread;
  readonly roomId: string;
}

const recordSchema = z.object({
  roomId: z.string().nullable(),
  /** No room of the thread is older, milliseconds since the epoch. */
  openedAt: z.number(),
  /** Since when Slack shows this app the thread's channel no more, milliseconds since the epoch. */
  unreachableSince: z.number().nullable().default(null),
  /** The room that stood for the thread and is gone; the thread waits for another. */
  lostRoomId: z.string().nullable().default(null),
});

/** A channel that Slack shows this app no more, although rooms stand for threads of it. */
export interface UnreachableChannel {
  readonly slug: string;
  readonly channel: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

export const BOOTSTRAP_TEXT = 'Slack thread context';
const BINDING_VERSION = 1;
const MAX_LOADED = 10_000;

export interface BindingsDeps {
  readonly store: StateStore;
  /** E.g. `slack/helpdesk/bindings`. */
  readonly prefix: string;
  readonly rest: BandRest;
  readonly clock: Clock;
  readonly log: Logger;
  /** The workspace of an app's token, null until it is known: what a binding of the reference leaves out. */
  readonly teamOf?: (slug: string) => string | null;
  /** Looks for bound rooms even with a filled store. */
  readonly rescan: boolean;
  /** Ends what goes on with nobody waiting for it. */
  readonly closing: AbortSignal;
  readonly metrics?: Metrics;
}

/**
 * Which room stands for which thread. The truth is the `task` event that opens a bound room, so that a lost disk,
 * another host or the Python SDK can read it; the store makes the look-up fast. A room is made in two steps with an
 * intent in the store before the first, so that a crash between them makes no second room (S-075).
 */
export class Bindings {
  readonly #deps: BindingsDeps;
  readonly #lock = new KeyedLock();
  readonly #byKey = new Map<ConversationKey, string>();
  readonly #byRoom = new Map<string, ConversationKey>();
  readonly #unreachable = new Map<ConversationKey, number>();
  /** Threads whose room is gone, and which have no other yet. */
  readonly #vacant = new Set<ConversationKey>();
  #scan: Promise<void> | null = null;

  private constructor(deps: BindingsDeps) {
    this.#deps = deps;
  }

  static async open(deps: BindingsDeps): Promise<Bindings> {
    const bindings = new Bindings(deps);
    await bindings.#load();
    return bindings;
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** The room of a thread, one that the reference bound without a team included. */
  find(thread: SlackThread): Binding | null {
    const key = slackKey(thread);
    const roomId = this.#byKey.get(key) ?? this.#byKey.get(teamlessKey(thread));
    return roomId === undefined ? null : { key, thread, roomId };
  }

  /** Whether the thread is one of the agent's: a room stands for it, or stood and is to be replaced. */
  isBound(thread: SlackThread): boolean {
    return this.find(thread) !== null || this.#vacant.has(slackKey(thread)) || this.#vacant.has(teamlessKey(thread));
  }

  /** The thread a room stands for; null for a room that stands for none. */
  ofRoom(roomId: string): Binding | null {
    const key = this.#byRoom.get(roomId);
    const thread = key === undefined ? null : this.#threadOf(key);
    return key === undefined || !thread ? null : { key, thread, roomId };
  }

  /** {@link ofRoom}, once a fresh store has been filled from the rooms. */
  async resolve(roomId: string, signal: AbortSignal): Promise<Binding | null> {
    await this.#scanned(signal);
    return this.ofRoom(roomId);
  }

  /** {@link find}, once a fresh store has been filled from the rooms. */
  async look(thread: SlackThread, signal: AbortSignal): Promise<Binding | null> {
    await this.#scanned(signal);
    return this.find(thread);
  }

  /** Slack shows this app the thread's channel no more; on disk, until something is written there again. */
  async markUnreachable(thread: SlackThread): Promise<void> {
    const binding = this.find(thread);
    if (binding && !this.#unreachable.has(this.#storedKey(binding))) await this.#mark(binding, this.#deps.clock.now());
  }

  /** Something came from the thread: its channel is within reach. */
  async markReached(thread: SlackThread): Promise<void> {
    const binding = this.find(thread);
    if (binding && this.#unreachable.has(this.#storedKey(binding))) await this.#mark(binding, null);
  }

  /** Each channel once, since the first of its threads was lost. */
  unreachable(): readonly UnreachableChannel[] {
    const channels = new Map<string, UnreachableChannel>();
    for (const [key, since] of this.#unreachable) {
      const thread = parseSlackKey(key);
      if (!thread) continue;
      const { slug, channel } = thread;
      const place = `${slug}:${channel}`;
      const known = channels.get(place);
      if (!known || known.since > since) channels.set(place, { slug, channel, since });
    }
    return [...channels.values()];
  }

  /** All bindings of one app, in no order. */
  *ofApp(slug: string): Generator<Binding> {
    for (const [key, roomId] of this.#byKey) {
      const thread = this.#threadOf(key);
      if (thread?.slug === slug) yield { key, thread, roomId };
    }
  }

  /** The thread goes on under another first message: its room is told, so that the binding can be found again. */
  async move(binding: Binding, threadTs: string, signal: AbortSignal): Promise<void> {
    const thread: SlackThread = { ...binding.thread, threadTs };
    const unknown = { enterpriseId: null, channelType: null, userId: null };
    const metadata = bootstrapMetadata({ ...thread, ...unknown }, binding.roomId);
    await this.#deps.rest.postEvent(
      binding.roomId,
      { content: BOOTSTRAP_TEXT, messageType: 'task', metadata },
      { signal },
    );
    await this.#commit(slackKey(thread), binding.roomId);
  }

  /**
   * The thread's room, made on first use. Calls for one thread wait for each other, so its first messages make one
   * room between them (S-076).
   *
   * @returns the binding, and whether this call made the room
   * @throws {GatewayError} what the platform or the store throws; the next call goes on where this one ended
   */
  async open(facts: ThreadFacts, signal: AbortSignal): Promise<{ binding: Binding; isNew: boolean }> {
    await this.#scanned(signal);
    const key = slackKey(facts);
    return await this.#lock.hold(
      key,
      async () => {
        const known = this.find(facts);
        if (known) return { binding: known, isNew: false };
        return await this.#make(key, facts, signal);
      },
      signal,
    );
  }

  /** The room is gone from the platform; the thread stays the agent's, and its next message makes another. */
  async forget(binding: Binding): Promise<void> {
    const key = this.#byRoom.get(binding.roomId) ?? binding.key;
    const gone = { roomId: null, openedAt: this.#deps.clock.now(), unreachableSince: null, lostRoomId: binding.roomId };
    await this.#deps.store.batch([{ kind: 'put', key: this.#recordKey(key), value: toBytes(gone) }]);
    this.#vacant.add(key);
    this.#byRoom.delete(binding.roomId);
    this.#unreachable.delete(key);
    if (this.#byKey.get(key) === binding.roomId) this.#byKey.delete(key);
  }

  /** Takes over what a room's own history says, unless something is bound already (S-079). */
  async rehydrate(found: FoundRoom): Promise<void> {
    if (this.#byRoom.has(found.roomId)) return;
    const key = slackKey(found.thread);
    if (this.#byKey.has(key)) this.#byRoom.set(found.roomId, key);
    else await this.#commit(key, found.roomId);
  }

  async #load(): Promise<void> {
    const { store, prefix } = this.#deps;
    const { from, to } = prefixRange(`${prefix}/room/`);
    for (let next = from; ;) {
      const page = await store.range({ from: next, to, limit: MAX_LOADED });
      for (const { key: storeKey, value } of page) {
        const { roomId, unreachableSince, lostRoomId } = readJson(value, recordSchema);
        const name = storeKey.slice(from.length) as ConversationKey;
        if (roomId !== null) this.#remember(name, roomId);
        else if (lostRoomId !== null) this.#vacant.add(name);
        if (unreachableSince !== null) this.#unreachable.set(name, unreachableSince);
      }
      const last = page.at(-1);
      if (!last || page.length < MAX_LOADED) return;
      next = `${last.key}\0`;
    }
  }

  /**
   * Resolves once a fresh store has been filled from the rooms themselves; a failed scan is tried again. The scan is
   * everybody's: it goes on when one who waits for it gives up, however many rooms there are.
   */
  async #scanned(signal: AbortSignal): Promise<void> {
    this.#scan ??= this.#fill().catch((error: unknown) => {
      this.#scan = null;
      throw error;
    });
    await abortable(this.#scan, signal);
  }

  async #fill(): Promise<void> {
    const { store, prefix, rest, rescan, log, closing: signal, metrics = noMetrics } = this.#deps;
    const mark = `${prefix}/scanned`;
    if (!rescan && (await store.get(mark))) return;
    let rooms = 0;
    const read = metrics.counter('slack_room_scan_rooms_total', 'Rooms whose history was looked at for their thread');
    const onRead = (count: number): void => {
      read.inc({}, count);
    };
    for await (const found of scanRooms(rest, signal, { onLimit: this.#tooManyRooms, onRead })) {
      rooms += 1;
      await this.rehydrate(found);
    }
    await store.batch([{ kind: 'put', key: mark, value: new Uint8Array() }]);
    log.info({ rooms }, 'rooms that stand for Slack threads were found again');
  }

  async #make(
    key: ConversationKey,
    facts: ThreadFacts,
    signal: AbortSignal,
  ): Promise<{ binding: Binding; isNew: boolean }> {
    const { store, rest, clock } = this.#deps;
    // Where this machine's clock is fast, Slack's is right: what is made from here on is not older than either says.
    const earliest = Math.min(clock.now(), facts.askedAt);
    const intent = await store.get(this.#recordKey(key));
    if (intent) {
      // An earlier try ended between its steps: what it made is looked for before another room is made.
      const { openedAt, lostRoomId } = readJson(intent.value, recordSchema);
      for await (const found of scanRooms(rest, signal, {
        since: Math.min(openedAt, earliest),
        onLimit: this.#tooManyRooms,
      })) {
        if (slackKey(found.thread) !== key || found.roomId === lostRoomId) continue;
        await this.#commit(key, found.roomId);
        return { binding: { key, thread: facts, roomId: found.roomId }, isNew: false };
      }
    } else {
      const value = toBytes({ roomId: null, openedAt: earliest, unreachableSince: null });
      await store.batch([{ kind: 'put', key: this.#recordKey(key), value }]);
    }
    const { id: roomId } = await rest.createChat({}, { signal });
    await rest.postEvent(
      roomId,
      { content: BOOTSTRAP_TEXT, messageType: 'task', metadata: bootstrapMetadata(facts, roomId) },
      { signal },
    );
    await this.#commit(key, roomId);
    return { binding: { key, thread: facts, roomId }, isNew: true };
  }

  #threadOf(key: ConversationKey): SlackThread | null {
    const thread = parseSlackKey(key);
    if (thread?.team !== ANY_TEAM) return thread;
    return { ...thread, team: this.#deps.teamOf?.(thread.slug) ?? ANY_TEAM };
  }

  /** A binding of the reference stands under a key without a team. */
  #storedKey({ key, thread }: Binding): ConversationKey {
    return this.#byKey.has(key) ? key : teamlessKey(thread);
  }

  async #mark(binding: Binding, since: number | null): Promise<void> {
    const key = this.#storedKey(binding);
    const value = toBytes({ roomId: binding.roomId, openedAt: this.#deps.clock.now(), unreachableSince: since });
    await this.#deps.store.batch([{ kind: 'put', key: this.#recordKey(key), value }]);
    if (since === null) this.#unreachable.delete(key);
    else this.#unreachable.set(key, since);
  }

  readonly #tooManyRooms = (rooms: number): void => {
    this.#deps.log.error({ rooms }, 'there are more rooms than are looked at: threads of the others get new ones');
  };

  async #commit(key: ConversationKey, roomId: string): Promise<void> {
    const value = toBytes({ roomId, openedAt: this.#deps.clock.now(), unreachableSince: null });
    await this.#deps.store.batch([{ kind: 'put', key: this.#recordKey(key), value }]);
    this.#remember(key, roomId);
  }

  #remember(key: ConversationKey, roomId: string): void {
    this.#vacant.delete(key);
    this.#byKey.set(key, roomId);
    this.#byRoom.set(roomId, key);
  }

  #recordKey(key: ConversationKey): string {
    return `${this.#deps.prefix}/room/${key}`;
  }
}

/** The reference's five keys, and ours. */
function bootstrapMetadata(facts: Omit<ThreadFacts, 'askedAt'>, roomId: string): Record<string, unknown> {
  return {
    slack_app_slug: facts.slug,
    slack_channel_id: facts.channel,
    slack_thread_ts: facts.threadTs,
    slack_user_id: facts.userId ?? '',
    slack_room_id: roomId,
    slack_team_id: facts.team,
    slack_enterprise_id: facts.enterpriseId,
    slack_channel_type: facts.channelType,
    slack_binding_version: BINDING_VERSION,
  };
}
