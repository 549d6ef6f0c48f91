import { LogLevel, WebAPIPlatformError, WebAPIRequestError, WebClient, type Logger as SdkLogger } from '@slack/web-api';
import type { Dispatcher } from 'undici';
import { abortable } from '../../src/base/async.js';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { GatewayError, isGatewayError, toError } from '../../src/base/errors.js';
import { noMetrics, type Metrics } from '../../src/base/metrics.js';
import { fromSlackAnswer } from './errors.js';
import { createSlackFetch, REQUEST_TIMEOUT_MS } from './slack-fetch.js';

/** Arguments of a Web API method in Slack's own spelling; objects and arrays travel as JSON. */
export type SlackArguments = Readonly<Record<string, unknown>>;

/** What Slack answered with `ok: true`. */
export type SlackAnswer = Readonly<Record<string, unknown>> & {
  readonly response_metadata?: {
    readonly next_cursor?: string;
    readonly scopes?: readonly string[];
    readonly warnings?: readonly string[];
  };
};

export interface SlackCallOptions {
  /** Ends the wait; the request itself is cut at the client's time limit or by `close`. */
  readonly signal?: AbortSignal | null | undefined;
  /** What a paced client does when Slack puts the call off: wait as long as asked (default), or say so. */
  readonly whenPutOff?: 'wait' | 'throw';
  /** Asked by a paced client when the call's turn has come; false: `SLACK_SUPERSEDED`, and nothing is sent. */
  readonly isStillWanted?: (() => boolean) | undefined;
  /** Awaited when the call's turn has come, each time before the request leaves; its failure is the call's. */
  readonly beforeSending?: (() => Promise<void>) | undefined;
}

/**
 * One installation's way to Slack's Web API. Nothing is repeated and nothing waits here: the lanes of the outbox do
 * that (T-02).
 */
export interface SlackClient {
  /**
   * @param method - e.g. `chat.postMessage`
   * @throws {GatewayError} `SLACK_RATE_LIMITED` with `retryAfterMs`, `SLACK_UNREACHABLE`, `SLACK_TIMEOUT`,
   *   `SLACK_CONNECTION_LOST`, `SLACK_UNAVAILABLE`, `SLACK_BAD_ANSWER`, `SLACK_UNAUTHORIZED`, `SLACK_REFUSED`;
   *   `details.slackError` holds Slack's own word where there is one
   */
  call(method: string, args: SlackArguments, options?: SlackCallOptions): Promise<SlackAnswer>;
  /** Milliseconds by which this machine's clock is ahead of Slack's, as the last answer showed; 0 before the first. */
  clockAheadMs(): number;
  /** Cuts what is in flight; later calls fail with `SLACK_UNREACHABLE`. */
  close(): void;
}

export interface SlackClientOptions {
  readonly token: string;
  /** Default `https://slack.com/api/`. */
  readonly slackApiUrl?: string | undefined;
  /** Default 30,000. */
  readonly timeoutMs?: number;
  readonly dispatcher?: Dispatcher | undefined;
  /** Compared with Slack's; default the system's. */
  readonly clock?: Clock;
  readonly metrics?: Metrics;
  /** Called with every warning of a successful answer, e.g. `missing_charset`. */
  readonly onWarning?: (method: string, warning: string) => void;
}

const API_BUCKETS_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;

/** The real form of {@link SlackClient} over Slack's own client, with its retries and its queue switched off. */
export function createSlackClient(options: SlackClientOptions): SlackClient {
  const { token, slackApiUrl, timeoutMs = REQUEST_TIMEOUT_MS, clock = systemClock, metrics = noMetrics } = options;
  const closing = new AbortController();
  let clockAheadMs = 0;
  const web = new WebClient(token, {
    ...(slackApiUrl === undefined ? {} : { slackApiUrl }),
    // A fresh object each: the SDK writes the token into it and keeps an Authorization it finds there (T-01).
    headers: {},
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    // The time limit is ours, in the fetch below, so that it covers the body and has a code.
    timeout: 0,
    allowAbsoluteUrls: false,
    logger: mutedLogger,
    fetch: createSlackFetch({
      timeoutMs,
      dispatcher: options.dispatcher,
      closing: closing.signal,
      onDate: (slackMs) => {
        clockAheadMs = clock.now() - slackMs;
      },
    }),
  });
  const requests = metrics.counter('slack_api_requests_total', 'Web API calls by outcome', ['method', 'outcome']);
  const seconds = metrics.histogram('slack_api_seconds', 'Web API call time', ['method'], API_BUCKETS_SECONDS);
  const limited = metrics.counter('slack_ratelimited_total', 'Web API calls that Slack put off', ['method']);

  return {
    async call(method, args, { signal, beforeSending } = {}) {
      if (closing.signal.aborted)
        throw new GatewayError('SLACK_UNREACHABLE', { details: { method, reason: 'closed' } });
      await beforeSending?.();
      const begun = performance.now();
      try {
        const answer = (await abortable(web.apiCall(method, { ...args }), signal)) as unknown as SlackAnswer;
        requests.inc({ method, outcome: 'ok' });
        for (const warning of warningsOf(answer)) options.onWarning?.(method, warning);
        return answer;
      } catch (error) {
        if (signal?.aborted) throw error;
        const failure = fromSdkError(error, method);
        requests.inc({ method, outcome: outcomeOf(failure) });
        if (failure.code === 'SLACK_RATE_LIMITED') limited.inc({ method });
        throw failure;
      } finally {
        seconds.observe({ method }, (performance.now() - begun) / 1_000);
      }
    },
    clockAheadMs: () => clockAheadMs,
    close() {
      closing.abort(new GatewayError('SLACK_UNREACHABLE', { details: { reason: 'closed' } }));
    },
  };
}

function fromSdkError(error: unknown, method: string): GatewayError {
  if (isGatewayError(error)) return error;
  if (error instanceof WebAPIPlatformError) {
    return fromSlackAnswer(error.data as unknown as Record<string, unknown>, method);
  }
  if (error instanceof WebAPIRequestError && isGatewayError(error.original)) {
    const { code, message, cause, retryAfterMs, details } = error.original;
    return new GatewayError(code, {
      message,
      cause,
      details: { ...details, method },
      ...(retryAfterMs === null ? {} : { retryAfterMs }),
    });
  }
  return new GatewayError('SLACK_CONNECTION_LOST', { cause: toError(error), details: { method } });
}

/** Slack names warnings in a list, or all of them in one word with commas. */
function warningsOf({ warning, response_metadata: metadata }: SlackAnswer): ReadonlySet<string> {
  const one = typeof warning === 'string' && warning !== '' ? warning.split(',') : [];
  return new Set([...one, ...(metadata?.warnings ?? [])]);
}

const outcomeOf = (failure: GatewayError): string => {
  const slackError = failure.details['slackError'];
  if (typeof slackError === 'string') return slackError;
  return failure.details['status'] === undefined ? 'network' : 'http';
};

const nothing = () => undefined;
/** The SDK prints whole requests at debug level and warnings to the console; our own log says what matters. */
export const mutedLogger: SdkLogger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  setLevel: nothing,
  getLevel: () => LogLevel.ERROR,
  setName: nothing,
};
