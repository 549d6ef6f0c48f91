import { SocketModeClient } from '@slack/socket-mode';
import type { Dispatcher } from 'undici';
import { deferred, withDeadline } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, toError } from '../../../src/base/errors.js';
import { mutedLogger } from '../client.js';
import { createProxy, proxyErrorIn } from '../proxy.js';
import { createSlackFetch, fromNetworkError, REQUEST_TIMEOUT_MS } from '../slack-fetch.js';

/** One envelope of a Socket Mode connection. */
export interface Envelope {
  /** What an acknowledgement names; null when the frame had none. */
  readonly envelopeId: string | null;
  readonly type: string;
  readonly payload: unknown;
  readonly retryNum: number | null;
  readonly retryReason: string | null;
}

export interface SlackConnection {
  /** Tells Slack that an envelope was taken; a slash command may be answered with it. */
  acknowledge(envelopeId: string, answer?: Readonly<Record<string, unknown>> | null): Promise<void>;
  /** Slack wants this connection replaced, with its reason; resolves at most once. */
  readonly askedToLeave: Promise<string>;
  /** Resolves when the connection is gone, whoever ended it. */
  readonly gone: Promise<void>;
  close(): void;
}

export interface OpenConnectionOptions {
  readonly appToken: string;
  readonly slackApiUrl: string | undefined;
  readonly dispatcher: Dispatcher | undefined;
  /** Address of the proxy that `dispatcher` goes through; the socket gets a way of its own, which ends with it. */
  readonly proxy: string | undefined;
  readonly pingTimeoutMs: number;
  readonly clock: Clock;
  /** Must not throw. */
  readonly onEnvelope: (envelope: Envelope, connection: SlackConnection) => void;
}

const HELLO_TIMEOUT_MS = 10_000;

/**
 * Opens one Socket Mode connection and waits for its hello.
 *
 * @throws {GatewayError} what {@link SlackClient.call} throws for `apps.connections.open`; `SLACK_TIMEOUT` without a
 *   hello within 10 s; `SLACK_CONNECTION_LOST` when it broke before, with `details.reason` where Slack gave one;
 *   `SLACK_UNREACHABLE` with `details.proxy` when a proxy let nothing pass
 */
export async function openConnection(options: OpenConnectionOptions, signal: AbortSignal): Promise<SlackConnection> {
  const closing = new AbortController();
  const way = options.proxy === undefined ? null : ownWay(options.proxy);
  const client = new EnvelopeClient(options, way?.dispatcher ?? options.dispatcher, closing.signal);
  void client.gone.promise.then(() => way?.dispatcher.destroy());
  const connection: SlackConnection = {
    acknowledge: (envelopeId, answer) => client.acknowledge(envelopeId, answer ?? null),
    askedToLeave: client.asked.promise,
    gone: client.gone.promise,
    close: () => {
      closing.abort(new GatewayError('SLACK_UNREACHABLE', { details: { reason: 'closed' } }));
      client.end();
    },
  };
  client.onEnvelope = (envelope) => {
    options.onEnvelope(envelope, connection);
  };
  try {
    await withDeadline(options.clock, HELLO_TIMEOUT_MS, signal, () => Promise.race([client.open(), sentAway(client)]));
    return connection;
  } catch (error) {
    connection.close();
    throw fromStart(error ?? way?.fault() ?? client.fault);
  }
}

/** A way through the proxy for one socket, since a WebSocket keeps to itself why it could not connect. */
function ownWay(proxy: string) {
  let fault: unknown = null;
  const dispatcher = createProxy(proxy, (error) => {
    fault = error;
  });
  return { dispatcher, fault: () => fault };
}

/** Rejects when Slack refuses a connection in place of its hello; after the hello nobody listens any more. */
async function sentAway({ asked }: EnvelopeClient): Promise<never> {
  const reason = await asked.promise;
  throw new GatewayError('SLACK_CONNECTION_LOST', { details: { while: 'opening a connection', reason } });
}

/**
 * The SDK's client with its reconnecting switched off and its frame handler replaced: the stock one dies on an
 * envelope without an inner event (T-03), closes before it opens the next connection (T-04), and emits inner types as
 * its own event names (T-16).
 */
class EnvelopeClient extends SocketModeClient {
  readonly asked = deferred<string>();
  readonly gone = deferred();
  /** What broke the socket; the SDK rejects its start with nothing. */
  fault: unknown = undefined;
  onEnvelope: (envelope: Envelope) => void = () => undefined;

  constructor(
    { appToken, slackApiUrl, dispatcher, pingTimeoutMs }: OpenConnectionOptions,
    way: Dispatcher | undefined,
    closing: AbortSignal,
  ) {
    super({
      appToken,
      logger: mutedLogger,
      autoReconnectEnabled: false,
      clientPingTimeout: pingTimeoutMs,
      serverPingTimeout: pingTimeoutMs * 2,
      ...(way ? { dispatcher: way } : {}),
      clientOptions: {
        ...(slackApiUrl === undefined ? {} : { slackApiUrl }),
        headers: { Authorization: `Bearer ${appToken}` },
        retryConfig: { retries: 0 },
        rejectRateLimitedCalls: true,
        fetch: createSlackFetch({ timeoutMs: REQUEST_TIMEOUT_MS, dispatcher, closing }),
      },
    });
    this.on('disconnected', () => {
      this.gone.resolve();
    });
    this.on('error', (error: unknown) => {
      this.fault = error;
    });
  }

  /** Resolves with the hello. */
  async open(): Promise<void> {
    await this.start();
  }

  acknowledge(envelopeId: string, answer: Readonly<Record<string, unknown>> | null): Promise<void> {
    // The SDK hides its sender and hands it out only with the events whose handling is replaced here.
    const sender = this as unknown as { send(id: string, payload?: object): Promise<void> };
    return answer ? sender.send(envelopeId, answer) : sender.send(envelopeId);
  }

  /** Ends the connection, also one that is still being opened. */
  end(): void {
    // The SDK's promise waits for the far end's close frame; `gone` tells when it is over.
    this.disconnect().catch(() => undefined);
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- the SDK declares it so
  protected override async onWebSocketMessage(data: string | ArrayBuffer, isBinary: boolean): Promise<void> {
    const frame = isBinary ? null : parseFrame(typeof data === 'string' ? data : new TextDecoder().decode(data));
    if (!frame) return;
    if (frame['type'] === 'hello') this.emit('connected', {});
    else if (frame['type'] === 'disconnect') this.asked.resolve(text(frame['reason']) ?? 'unknown');
    else {
      this.onEnvelope({
        envelopeId: text(frame['envelope_id']),
        type: text(frame['type']) ?? 'unknown',
        payload: frame['payload'],
        retryNum:
          typeof frame['retry_attempt'] === 'number' && frame['retry_attempt'] > 0 ? frame['retry_attempt'] : null,
        retryReason: text(frame['retry_reason']),
      });
    }
  }
}

function parseFrame(data: string): Record<string, unknown> | null {
  try {
    const frame: unknown = JSON.parse(data);
    return typeof frame === 'object' && frame !== null && !Array.isArray(frame) ? { ...frame } : null;
  } catch {
    return null; // Not JSON: there is nothing in it that could be acknowledged.
  }
}

const text = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** The SDK wraps what our fetch threw, and rejects with nothing at all when the socket closed before its hello. */
function fromStart(error: unknown): GatewayError {
  for (let cause: unknown = error; cause instanceof Error; cause = wrappedBy(cause)) {
    if (proxyErrorIn(cause)) return fromNetworkError(cause);
    if (cause instanceof GatewayError && cause.code === 'DEADLINE_EXCEEDED') {
      return new GatewayError('SLACK_TIMEOUT', { cause, details: { waitingFor: 'hello' } });
    }
    if (cause instanceof GatewayError) return cause;
    const answer = (cause as { data?: unknown }).data;
    if (typeof answer === 'object' && answer !== null && 'error' in answer) {
      return fromAnswer(text(answer.error) ?? 'unknown');
    }
  }
  const cause = error === undefined ? undefined : toError(error);
  return new GatewayError('SLACK_CONNECTION_LOST', { cause, details: { while: 'opening a connection' } });
}

const wrappedBy = (error: Error): unknown => (error as Error & { original?: unknown }).original ?? error.cause;

const fromAnswer = (slackError: string): GatewayError =>
  new GatewayError(PARKING_ERRORS.has(slackError) ? 'SLACK_UNAUTHORIZED' : 'SLACK_REFUSED', {
    details: { method: 'apps.connections.open', slackError },
  });

/** Answers after which trying again helps nobody until a person has mended the app. */
const PARKING_ERRORS: ReadonlySet<string> = new Set([
  'not_authed',
  'invalid_auth',
  'account_inactive',
  'user_removed_from_team',
  'team_disabled',
]);
