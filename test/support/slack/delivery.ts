import { createHmac } from 'node:crypto';
import { Agent, request } from 'undici';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import type { Outgoing } from './events.js';
import type { SocketDoor } from './sockets.js';
import type { App, Json } from './world.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const ACK_LIMIT_MS = 3_000;
/** After each failed attempt the next one waits this long. */
const RETRY_DELAYS_MS = [0, MINUTE_MS, 5 * MINUTE_MS];
const DELAYED_RETRIES = 24;
const SUBSCRIPTION_OFF_AFTER = 20;

export interface Attempt {
  readonly at: number;
  readonly transport: 'http' | 'socket';
  readonly retryNum: number;
  /** HTTP status, `acked`, or why there was none. */
  outcome: string;
  /** Milliseconds of real time until the acknowledgement. */
  ackMs: number | null;
  /** The body of the acknowledgement, when there was one. */
  payload: unknown;
}

/** Everything about one event's way to the app. */
export interface Delivery {
  readonly eventId: string | null;
  readonly type: string;
  readonly app: string;
  readonly body: Json;
  readonly attempts: Attempt[];
  state: 'under way' | 'acked' | 'given up';
}

/** Carries events to apps as Slack does: three seconds, three repeats, hourly for a day where that is switched on. */
export class Deliveries {
  readonly log: Delivery[] = [];
  inFlight = 0;
  readonly #clock: Clock;
  readonly #sockets: SocketDoor;
  readonly #touched: () => void;
  readonly #acked: (outgoing: Outgoing, payload: unknown) => void;
  readonly #timers = new Set<CancelTimer>();
  readonly #agent = new Agent({ connections: 64, pipelining: 1 });
  readonly #outcomes = new Map<string, { at: number; ok: boolean }[]>();
  #stopped = false;
  /** Set by tests to sign with another secret, skew the clock and so on. */
  tamper:
    | ((request: { headers: Record<string, string>; body: Buffer }) => {
        headers: Record<string, string>;
        body: Buffer;
      })
    | null = null;
  /** While set, events are kept and handed over by the test itself. */
  hold: Outgoing[] | null = null;

  constructor(options: {
    clock: Clock;
    sockets: SocketDoor;
    touched: () => void;
    /** What the app's acknowledgement itself shows or does. */
    acked: (outgoing: Outgoing, payload: unknown) => void;
  }) {
    this.#acked = options.acked;
    this.#clock = options.clock;
    this.#sockets = options.sockets;
    this.#touched = options.touched;
  }

  send(outgoing: Outgoing): Delivery | null {
    if (this.hold) {
      this.hold.push(outgoing);
      return null;
    }
    const delivery: Delivery = {
      eventId: outgoing.eventId,
      type: outgoing.type,
      app: outgoing.app.id,
      body: outgoing.body,
      attempts: [],
      state: 'under way',
    };
    this.log.push(delivery);
    if (outgoing.app.subscriptionOff) {
      delivery.state = 'given up';
      return delivery;
    }
    this.attempt(outgoing, delivery, 0, '');
    return delivery;
  }

  attempt(outgoing: Outgoing, delivery: Delivery, retryNum: number, reason: string): void {
    if (this.#stopped) return;
    this.inFlight += 1;
    const overSocket = outgoing.app.socketMode;
    const attempt: Attempt = {
      at: this.#clock.now(),
      transport: overSocket ? 'socket' : 'http',
      retryNum,
      outcome: 'under way',
      ackMs: null,
      payload: null,
    };
    delivery.attempts.push(attempt);
    const begun = performance.now();
    const carry = overSocket
      ? this.#overSocket(outgoing, attempt, retryNum, reason)
      : this.#overHttp(outgoing, attempt, retryNum, reason);
    void carry
      .catch((error: unknown): string => {
        attempt.outcome = error instanceof Error ? error.message : String(error);
        return 'connection_failed';
      })
      .then((failure) => {
        this.inFlight -= 1;
        attempt.ackMs = performance.now() - begun;
        this.#noteOutcome(outgoing.app, failure === null);
        if (failure === null) {
          delivery.state = 'acked';
          this.#acked(outgoing, attempt.payload);
        } else this.#scheduleRetry(outgoing, delivery, retryNum, failure);
        this.#touched();
      });
  }

  #scheduleRetry(outgoing: Outgoing, delivery: Delivery, retryNum: number, failure: string): void {
    const { app } = outgoing;
    const noRetry = failure === 'no_retry';
    const more = RETRY_DELAYS_MS.length + (app.delayedEvents ? DELAYED_RETRIES : 0);
    if (noRetry || retryNum >= more || app.subscriptionOff || outgoing.kind !== 'events_api') {
      delivery.state = 'given up';
      return;
    }
    const wait = RETRY_DELAYS_MS[retryNum] ?? HOUR_MS;
    const cancel = this.#clock.after(wait, () => {
      this.#timers.delete(cancel);
      this.attempt(outgoing, delivery, retryNum + 1, failure);
    });
    this.#timers.add(cancel);
  }

  /** @returns null when acknowledged, else Slack's retry reason */
  async #overHttp(outgoing: Outgoing, attempt: Attempt, retryNum: number, reason: string): Promise<string | null> {
    const { app, kind } = outgoing;
    if (!app.urls) throw new Error('no request url');
    const url =
      kind === 'events_api' ? app.urls.events : kind === 'interactive' ? app.urls.interactions : app.urls.commands;
    const plain = signedRequest(app, outgoing, this.#clock.now());
    if (retryNum > 0)
      Object.assign(plain.headers, { 'x-slack-retry-num': String(retryNum), 'x-slack-retry-reason': reason });
    const { headers, body } = this.tamper ? this.tamper(plain) : plain;
    const controller = new AbortController();
    const cancel = this.#clock.after(ACK_LIMIT_MS, () => {
      controller.abort(new Error('http_timeout'));
    });
    try {
      const answer = await request(url, {
        method: 'POST',
        headers,
        body,
        signal: controller.signal,
        dispatcher: this.#agent,
      });
      const text = await answer.body.text();
      attempt.outcome = String(answer.statusCode);
      attempt.payload = isJson(answer.headers['content-type']) ? (JSON.parse(text) as unknown) : text;
      if (answer.statusCode >= 200 && answer.statusCode < 300) return null;
      return answer.headers['x-slack-no-retry'] === '1' ? 'no_retry' : 'http_error';
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      attempt.outcome = 'http_timeout';
      return 'http_timeout';
    } finally {
      cancel();
    }
  }

  async #overSocket(outgoing: Outgoing, attempt: Attempt, retryNum: number, reason: string): Promise<string | null> {
    const acked = await this.#sockets.deliver(outgoing, { retryNum, reason, limitMs: ACK_LIMIT_MS });
    attempt.outcome = acked.outcome;
    attempt.payload = acked.payload;
    return acked.outcome === 'acked' ? null : 'timeout';
  }

  #noteOutcome(app: App, ok: boolean): void {
    const now = this.#clock.now();
    const recent = (this.#outcomes.get(app.id) ?? []).filter((one) => now - one.at < HOUR_MS);
    recent.push({ at: now, ok });
    this.#outcomes.set(app.id, recent);
    const failed = recent.filter((one) => !one.ok).length;
    if (!app.socketMode && recent.length >= SUBSCRIPTION_OFF_AFTER && failed / recent.length > 0.95)
      app.subscriptionOff = true;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const cancel of this.#timers) cancel();
    await this.#agent.destroy();
  }
}

const isJson = (contentType: string | string[] | undefined): boolean =>
  String(contentType ?? '').startsWith('application/json');

/** A request as Slack signs it: JSON for events, forms for the rest. */
export function signedRequest(
  app: App,
  outgoing: Pick<Outgoing, 'kind' | 'body'>,
  nowMs: number,
): { headers: Record<string, string>; body: Buffer } {
  const { kind, body: value } = outgoing;
  const text =
    kind === 'events_api'
      ? JSON.stringify(value)
      : kind === 'interactive'
        ? new URLSearchParams({ payload: JSON.stringify(value) }).toString()
        : new URLSearchParams(
            Object.entries(value).map(([key, inner]): [string, string] => [key, String(inner)]),
          ).toString();
  const body = Buffer.from(text);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signature = `v0=${createHmac('sha256', app.signingSecret).update(`v0:${timestamp}:`).update(body).digest('hex')}`;
  return {
    headers: {
      'content-type': kind === 'events_api' ? 'application/json' : 'application/x-www-form-urlencoded',
      'x-slack-request-timestamp': timestamp,
      'x-slack-signature': signature,
      'user-agent': 'Slackbot 1.0 (+https://api.slack.com/robots)',
    },
    body,
  };
}
