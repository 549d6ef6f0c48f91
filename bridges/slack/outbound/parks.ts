import { z } from 'zod';
import { abortable, deferred, type Deferred } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import type { SlackFault } from '../errors.js';
import type { ParkInfo, ResumeEvent, ThreadRef } from './port.js';

export type ParkFault = Extract<SlackFault, { kind: 'park' }>;

const parkSchema = z.object({
  slug: z.string(),
  team: z.string(),
  channel: z.string().nullable(),
  /** Direct messages only. */
  direct: z.boolean(),
  until: z.enum(['member_joined', 'channel_unarchived', 'new_token', 'new_settings', 'team_access']),
  cause: z.string(),
  since: z.number(),
  deadAt: z.number().nullable(),
});
type Park = z.infer<typeof parkSchema>;

const LIFTED_BY: Readonly<Record<ResumeEvent['kind'], readonly Park['until'][]>> = {
  joined: ['member_joined'],
  unarchived: ['channel_unarchived'],
  // A start with a working token is the moment at which other things may have been mended as well.
  token: ['new_token', 'new_settings', 'team_access'],
  settings: ['new_settings', 'team_access'],
};
const MAX_PARKS = 10_000;

type Place = Pick<ThreadRef, 'slug' | 'team' | 'channel'>;

/** Which lanes wait for the outside, on disk, so that a restart does not knock at closed doors (S-107). */
export class Parks {
  readonly #store: StateStore;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #parks = new Map<string, Park>();
  #changed: Deferred = deferred();

  private constructor(store: StateStore, prefix: string, clock: Clock) {
    this.#store = store;
    this.#prefix = prefix;
    this.#clock = clock;
  }

  static async open(store: StateStore, prefix: string, clock: Clock): Promise<Parks> {
    const parks = new Parks(store, prefix, clock);
    for (const { key, value } of await store.range({ ...prefixRange(`${prefix}/`), limit: MAX_PARKS })) {
      parks.#parks.set(key, readJson(value, parkSchema));
    }
    return parks;
  }

  /** What keeps a place from being written to; the widest first. */
  find(place: Place): ParkInfo | null {
    return this.#parkOf(place)?.[1] ?? null;
  }

  list(): readonly ParkInfo[] {
    return [...this.#parks.values()].map(({ slug, team, channel, cause, since }) => ({
      slug,
      team,
      channel,
      cause,
      since,
    }));
  }

  /** @returns false when the place was parked already */
  async add({ slug, team, channel }: Place, { what, until, atMostMs }: ParkFault, cause: string): Promise<boolean> {
    const direct = what === 'direct_messages';
    const key = this.#key(slug, team, what === 'channel' ? channel : null, direct);
    if (this.#parks.has(key)) return false;
    const since = this.#clock.now();
    const park: Park = {
      slug,
      team,
      channel: what === 'channel' ? channel : null,
      direct,
      until,
      cause,
      since,
      deadAt: atMostMs === null ? null : since + atMostMs,
    };
    this.#parks.set(key, park);
    await this.#store.batch([{ kind: 'put', key, value: toBytes(park) }]);
    this.changed();
    return true;
  }

  async resume(event: ResumeEvent): Promise<void> {
    const lifted = [...this.#parks].filter(
      ([, park]) =>
        park.slug === event.slug &&
        park.team === event.team &&
        LIFTED_BY[event.kind].includes(park.until) &&
        (!('channel' in event) || park.channel === event.channel),
    );
    for (const [key] of lifted) await this.#lift(key);
    this.changed();
  }

  /**
   * Waits until nothing keeps the place from being written to.
   *
   * @param putAt - when the record was put: one that waited for a door that stayed closed too long is given up
   * @param onWait - called before each wait
   * @returns the cause, when the time was over; null when the place is free
   */
  async free(
    place: Place,
    putAt: number,
    signal: AbortSignal,
    onWait: (park: ParkInfo) => void,
  ): Promise<string | null> {
    for (let park = this.#parkOf(place); park; park = this.#parkOf(place)) {
      const [key, { deadAt, cause }] = park;
      if (deadAt !== null && this.#clock.now() >= deadAt) {
        if (putAt <= deadAt) return cause;
        await this.#lift(key);
        continue;
      }
      onWait(park[1]);
      await this.nextChange(signal, deadAt === null ? null : deadAt - this.#clock.now());
    }
    return null;
  }

  /** Resolves when a park came or went, or after `ms`. */
  async nextChange(signal: AbortSignal, ms: number | null = null): Promise<void> {
    const change = this.#changed.promise;
    if (ms === null) {
      await abortable(change, signal);
      return;
    }
    let cancel = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      cancel = this.#clock.after(ms, resolve);
    });
    try {
      await abortable(Promise.race([change, over]), signal);
    } finally {
      cancel();
    }
  }

  /** Lets everyone who waits look again. */
  changed(): void {
    const before = this.#changed;
    this.#changed = deferred();
    before.resolve();
  }

  #parkOf({ slug, team, channel }: Place): readonly [string, Park] | null {
    for (const key of [
      this.#key(slug, team, null, false),
      this.#key(slug, team, channel, false),
      ...(isDirect(channel) ? [this.#key(slug, team, null, true)] : []),
    ]) {
      const park = this.#parks.get(key);
      if (park) return [key, park];
    }
    return null;
  }

  /** On disk first: an event whose record is tried again must find the park it lifts. */
  async #lift(key: string): Promise<void> {
    await this.#store.batch([{ kind: 'delete', key }]);
    this.#parks.delete(key);
  }

  #key(slug: string, team: string, channel: string | null, direct: boolean): string {
    return `${this.#prefix}/${slug}/${team}/${channel ?? (direct ? 'direct' : 'all')}`;
  }
}

/** A conversation with one person: by its own id, or by the person's. */
export const isDirect = (channel: string): boolean => /^[DUW]/.test(channel);
