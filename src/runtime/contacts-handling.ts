import { backoffMs } from '../base/backoff.js';
import { BoundedMap } from '../base/bounded.js';
import type { Clock } from '../base/clock.js';
import { isGatewayError } from '../base/errors.js';
import { Lanes } from '../base/lane.js';
import type { Logger } from '../base/log.js';
import type { ContactEvent } from '../core/events.js';
import type { BandLink } from '../platform/link-port.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { topics } from '../platform/topics.js';
import { contactEventKey, contactNotice, NO_FACTS, type RequestFacts } from './contact-text.js';
import { listContacts, rowsOf, untoldEvents, type ContactsListing } from './contacts-past.js';
import { ContactEventStrategy, type ContactEventConfig } from './contacts.js';
import type { HubRoom } from './hub-room.js';
import { createContactTools } from './tools/contact-tools.js';

/** Handled events and seen requests that are remembered. */
const MAX_REMEMBERED = 1_000;
const MAX_WAITING = 1_000;
const MAX_REQUEST_PAGES = 10;
const LOOK_RETRY = { baseMs: 1_000, maxMs: 60_000 };

export interface ContactsHandlingDeps {
  readonly agentId: string;
  readonly config: ContactEventConfig;
  readonly link: Pick<BandLink, 'join' | 'leave'>;
  readonly rest: BandRest;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Null unless the strategy is `HUB_ROOM`. */
  readonly hub: HubRoom | null;
  /** Puts a line before the next turn of every room. */
  readonly broadcast: (notice: string) => void;
}

/**
 * Contact events, one after the other in a queue of their own: a slow callback delays the next contact event and
 * nothing else. An event counts as handled once it was; until then a repetition is handled again.
 *
 * The platform repeats no push. What came while nobody listened, before the start too, is found in its lists.
 */
export class ContactsHandling {
  readonly #deps: ContactsHandlingDeps;
  readonly #queue = new Lanes({ maxWaitingPerLane: MAX_WAITING });
  readonly #handled = new BoundedMap<string, true>(MAX_REMEMBERED);
  readonly #broadcast = new BoundedMap<string, true>(MAX_REMEMBERED);
  readonly #requests = new BoundedMap<string, RequestFacts>(MAX_REMEMBERED);
  readonly #stopping = new AbortController();
  #subscribed = false;
  #listed: ContactsListing | null = null;
  #looks = 0;
  #looking: Promise<void> | null = null;

  constructor(deps: ContactsHandlingDeps) {
    this.#deps = deps;
  }

  /** The contacts channel is joined. */
  get subscribed(): boolean {
    return this.#subscribed;
  }

  get #wanted(): boolean {
    const { strategy, broadcastChanges } = this.#deps.config;
    return strategy !== ContactEventStrategy.DISABLED || broadcastChanges;
  }

  /** Joins the contacts channel where somebody wants its events, and makes the hub room. */
  async start(signal?: AbortSignal): Promise<void> {
    if (!this.#wanted) return;
    const { link, hub, agentId } = this.#deps;
    await hub?.open(signal);
    await link.join(topics.contacts(agentId), signal);
    this.#subscribed = true;
    this.catchUp();
  }

  /** Pushes may have been missed: the lists are looked at in the background, until that succeeds. */
  catchUp(): void {
    if (!this.#subscribed) return;
    this.#looks += 1;
    this.#looking ??= this.#lookUntilDone().finally(() => {
      this.#looking = null;
    });
  }

  /** Takes an event into the queue. */
  handle(event: ContactEvent): void {
    if (!this.#wanted || this.#stopping.signal.aborted) return;
    this.#queue
      .run('contacts', () => this.#work(event))
      .catch((error: unknown) => {
        // A full queue is the only thing that gets here; the platform keeps requests, so they can be listed later.
        this.#deps.log.warn({ err: error, kind: event.kind }, 'a contact event was left out');
      });
  }

  /** Leaves the channel. What waits is dropped, what runs is waited for no longer than its signal takes. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('The agent is stopping.'));
    if (!this.#subscribed) return;
    this.#subscribed = false;
    await this.#looking;
    await this.#deps.link.leave(topics.contacts(this.#deps.agentId));
  }

  /** Never rejects. */
  async #lookUntilDone(): Promise<void> {
    const { rest, clock, random, log } = this.#deps;
    const { signal } = this.#stopping;
    for (let done = 0, failures = 0; done < this.#looks && !signal.aborted;) {
      const looks = this.#looks;
      try {
        const listed = await listContacts(rest.contacts, signal);
        for (const event of untoldEvents(this.#listed, listed)) this.handle(event);
        this.#listed = listed;
        done = looks;
        failures = 0;
      } catch (error) {
        if (this.#stopped()) return;
        if (isGatewayError(error) && !error.retryable) {
          log.warn({ err: error }, 'the contacts cannot be listed; what was missed stays unknown until the next gap');
          done = looks;
          continue;
        }
        failures += 1;
        const waitMs = backoffMs(failures, { ...LOOK_RETRY, random });
        log.warn({ err: error, waitMs }, 'the contacts could not be listed; tried again later');
        await clock.sleep(waitMs, signal).catch(() => undefined);
      }
    }
  }

  async #work(event: ContactEvent): Promise<void> {
    const { config, log, broadcast } = this.#deps;
    if (this.#stopped()) return;
    const key = contactEventKey(event);
    const notice = config.broadcastChanges ? contactNotice(event) : null;
    if (notice !== null && !this.#broadcast.has(key)) {
      this.#broadcast.set(key, true);
      broadcast(notice);
    }
    if (config.strategy === ContactEventStrategy.DISABLED || this.#handled.has(key)) return;
    try {
      await this.#hand(event);
      this.#handled.set(key, true);
    } catch (error) {
      if (!this.#stopped()) log.error({ err: error, event: key }, 'a contact event could not be handled');
    }
  }

  #stopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #hand(event: ContactEvent): Promise<void> {
    const { config, rest, hub } = this.#deps;
    const facts = await this.#factsOf(event);
    if (hub) {
      await hub.post(event, facts, this.#stopping.signal);
      return;
    }
    await config.onEvent?.(withFacts(event, facts), createContactTools(rest.contacts));
  }

  /** An update names only the request, so its sender comes from the request itself. */
  async #factsOf(event: ContactEvent): Promise<RequestFacts> {
    if (event.kind === 'contact_request_received') {
      const { id, from_handle, from_name, message } = event.request;
      const facts = { fromHandle: from_handle ?? null, fromName: from_name ?? null, message: message ?? null };
      this.#requests.set(id, facts);
      return facts;
    }
    if (event.kind !== 'contact_request_updated') return NO_FACTS;
    return this.#requests.get(event.request.id) ?? (await this.#lookUp(event.request.id));
  }

  async #lookUp(requestId: string): Promise<RequestFacts> {
    const { rest, log } = this.#deps;
    try {
      for (let page = 1; page <= MAX_REQUEST_PAGES; page += 1) {
        const { data } = await rest.contacts.requests({
          page,
          pageSize: 100,
          sentStatus: 'all',
          signal: this.#stopping.signal,
        });
        const rows = [...rowsOf(data['received']), ...rowsOf(data['sent'])];
        if (rows.length === 0) break;
        const row = rows.find(({ id }) => id === requestId);
        if (row) {
          const facts = {
            fromHandle: text(row['from_handle']) ?? text(row['to_handle']),
            fromName: text(row['from_name']) ?? text(row['to_name']),
            message: text(row['message']),
          };
          this.#requests.set(requestId, facts);
          return facts;
        }
      }
    } catch (error) {
      const code = isGatewayError(error) ? error.code : undefined;
      log.debug({ code, requestId }, 'the sender of a contact request could not be looked up');
    }
    return NO_FACTS;
  }
}

function withFacts(event: ContactEvent, facts: RequestFacts): ContactEvent {
  if (event.kind !== 'contact_request_updated') return event;
  const { fromHandle, fromName, message } = facts;
  return { ...event, request: { ...event.request, from_handle: fromHandle, from_name: fromName, message } };
}

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);
