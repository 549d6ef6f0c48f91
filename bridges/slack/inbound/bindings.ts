import { z } from 'zod';
import { abortable } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import type { ConversationKey } from '../../../src/base/ids.js';
import { KeyedLock } from '../../../src/base/keyed-lock.js';
import type { Logger } from '../../../src/base/log.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import { parseSlackKey, slackKey, teamlessKey, type SlackThread } from '../conversation.js';
import { scanRooms, type FoundRoom } from './room-scan.js';

/** What is known of a thread that a room is to stand for. */
export interface ThreadFacts extends SlackThread {
  readonly enterpriseId: string | null;
  readonly channelType: string | null;
  readonly userId: string | null;
}

export interface Binding {
  readonly key: ConversationKey;
  readonly thread: SlackThread;
  readonly roomId: string;
}

const recordSchema = z.object({ roomId: z.string().nullable(), openedAt: z.number() });

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
  /** Looks for bound rooms even with a filled store. */
  readonly rescan: boolean;
  /** Ends what goes on with nobody waiting for it. */
  readonly closing: AbortSignal;
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

  /** The thread a room stands for; null for a room that stands for none. */
  ofRoom(roomId: string): Binding | null {
    const key = this.#byRoom.get(roomId);
    const thread = key === undefined ? null : parseSlackKey(key);
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

  /** All bindings of one app, in no order. */
  *ofApp(slug: string): Generator<Binding> {
    for (const [key, roomId] of this.#byKey) {
      const thread = parseSlackKey(key);
      if (thread?.slug === slug) yield { key, thread, roomId };
    }
  }

  /** The thread goes on under another first message: its room is told, so that the binding can be found again. */
  async move(binding: Binding, threadTs: string, signal: AbortSignal): Promise<void> {
    const thread: ThreadFacts = { ...binding.thread, threadTs, enterpriseId: null, channelType: null, userId: null };
    await this.#deps.rest.postEvent(
      binding.roomId,
      { content: BOOTSTRAP_TEXT, messageType: 'task', metadata: bootstrapMetadata(thread, binding.roomId) },
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

  /** The room is gone from the platform; the thread's next message makes another. */
  async forget(binding: Binding): Promise<void> {
    const key = this.#byRoom.get(binding.roomId) ?? binding.key;
    await this.#deps.store.batch([{ kind: 'delete', key: this.#recordKey(key) }]);
    this.#byRoom.delete(binding.roomId);
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
        const { roomId } = readJson(value, recordSchema);
        if (roomId !== null) this.#remember(storeKey.slice(from.length) as ConversationKey, roomId);
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
    const { store, prefix, rest, rescan, log, closing: signal } = this.#deps;
    const mark = `${prefix}/scanned`;
    if (!rescan && (await store.get(mark))) return;
    let rooms = 0;
    for await (const found of scanRooms(rest, signal)) {
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
    const intent = await store.get(this.#recordKey(key));
    if (intent) {
      // An earlier try ended between its steps: what it made is looked for before another room is made.
      const { openedAt } = readJson(intent.value, recordSchema);
      for await (const found of scanRooms(rest, signal, { since: openedAt })) {
        if (slackKey(found.thread) !== key) continue;
        await this.#commit(key, found.roomId);
        return { binding: { key, thread: facts, roomId: found.roomId }, isNew: false };
      }
    } else {
      const value = toBytes({ roomId: null, openedAt: clock.now() });
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

  async #commit(key: ConversationKey, roomId: string): Promise<void> {
    const value = toBytes({ roomId, openedAt: this.#deps.clock.now() });
    await this.#deps.store.batch([{ kind: 'put', key: this.#recordKey(key), value }]);
    this.#remember(key, roomId);
  }

  #remember(key: ConversationKey, roomId: string): void {
    this.#byKey.set(key, roomId);
    this.#byRoom.set(roomId, key);
  }

  #recordKey(key: ConversationKey): string {
    return `${this.#deps.prefix}/room/${key}`;
  }
}

/** The reference's five keys, and ours. */
function bootstrapMetadata(facts: ThreadFacts, roomId: string): Record<string, unknown> {
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
