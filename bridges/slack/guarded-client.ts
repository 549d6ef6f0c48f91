import { BoundedMap } from '../../src/base/bounded.js';
import type { Clock } from '../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import type { SlackArguments, SlackClient } from './client.js';
import { judgeFault, methodFamily, slackErrorOf } from './errors.js';

export interface GuardDeps {
  /** Names the app in the log. */
  readonly slug: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** A call that is no write of the outbox learned that the token is no good any more. */
  readonly onRefused?: ((error: GatewayError) => void) | undefined;
}

interface Off {
  readonly error: GatewayError;
  /** Infinity: until the next start. */
  readonly until: number;
}

const MAX_OFF = 5_000;

/**
 * A client that remembers what Slack does not let its app do: a method whose scope is missing is not asked for again
 * for an hour, one that Slack has taken away not before the next start. The same place says once, for every method,
 * what a call was made of that Slack calls wrong, and that a token is no good.
 */
export function createGuardedClient(client: SlackClient, { slug, clock, log, onRefused }: GuardDeps): SlackClient {
  const off = new BoundedMap<string, Off>(MAX_OFF);

  const learn = (error: GatewayError, method: string, args: SlackArguments): void => {
    const { fault } = judgeFault(error, method);
    const { needed, provided, messages } = error.details;
    const about = { app: slug, method, slackError: slackErrorOf(error) };
    if (fault.kind === 'without' && fault.what === 'feature') {
      const until = clock.now() + (fault.forMs ?? Number.POSITIVE_INFINITY);
      off.set(fault.forMs === null ? method : featureOf(method, args), { error, until });
      if (fault.forMs === null) log.error(about, 'Slack has no such method any more: off until the next start');
      else log.warn({ ...about, needed, provided }, 'the app lacks a scope: what needs it is off for an hour');
    }
    if (fault.kind === 'dead' && fault.defect) {
      log.error({ ...about, messages, arguments: outlineOf(args) }, 'Slack calls a call of ours wrong');
    }
    if (error.code === 'SLACK_UNAUTHORIZED' && !isWrite(method)) onRefused?.(error);
  };

  return {
    async call(method, args, options) {
      for (const key of [method, featureOf(method, args)]) {
        const known = off.get(key);
        // As a new error: this call has a stack of its own.
        if (known && known.until > clock.now()) {
          throw new GatewayError(known.error.code, { details: known.error.details, cause: known.error });
        }
      }
      try {
        return await client.call(method, args, options);
      } catch (error) {
        if (isGatewayError(error)) learn(error, method, args);
        throw error;
      }
    },
    clockAheadMs: () => client.clockAheadMs(),
    close: () => {
      client.close();
    },
  };
}

/** The scope for reading a conversation depends on its kind, which its id does not tell. */
const featureOf = (method: string, { channel }: SlackArguments): string =>
  method.startsWith('conversations.') && typeof channel === 'string' ? `${method}:${channel}` : method;

/** Their faults are judged where they wait; and a status is shown by trying what Slack takes. */
const isWrite = (method: string): boolean =>
  ['post', 'edit', 'delete', 'upload', 'reaction', 'status'].includes(methodFamily(method));

/** Arguments that nobody wrote. */
const PLAIN: ReadonlySet<string> = new Set([
  'channel',
  'channel_id',
  'file',
  'latest',
  'oldest',
  'team_id',
  'thread_ts',
  'timestamp',
  'ts',
  'user',
]);

/** What arguments look like, without what anybody wrote: texts by their length, lists by the kinds of their members. */
function outlineOf(args: SlackArguments): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(args).map(([name, value]) => [name, PLAIN.has(name) ? value : outline(value)]),
  );
}

function outline(value: unknown): unknown {
  if (typeof value === 'string') return `${value.length} characters`;
  if (Array.isArray(value)) return value.map(kindOf);
  return typeof value === 'object' && value !== null ? Object.keys(value) : value;
}

const kindOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && 'type' in value ? value.type : typeof value;
