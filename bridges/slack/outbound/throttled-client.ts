import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { SlackClient } from '../client.js';
import { Bucket, type BucketRate } from './bucket.js';

export interface ThrottleDeps {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Numbers in [0, 1); default Math.random. */
  readonly random?: () => number;
}

/** Posts of one channel, and of one workspace. */
const CHANNEL_RATE: BucketRate = { burst: 3, perMinute: 60 };
const TEAM_RATE: BucketRate = { burst: 3, perMinute: 240 };

/** Calls a minute of each tier, a fifth under what Slack documents. */
const TIER_PER_MINUTE = { 2: 16, 3: 40, 4: 80 } as const;
const TIER_2 = /^(?:chat\.(?:start|stop)Stream|reactions\.remove|conversations\.list|users\.list)$/;
const TIER_4 =
  /^(?:chat\.(?:appendStream|postEphemeral)|files\.|users\.info|views\.|assistant\.|conversations\.members)/;
/** No tier: Slack names no figure, or a high one. */
const UNCOUNTED = /^(?:auth\.test|chat\.getPermalink|oauth\.)/;

const JITTER_MS = 250;
const MAX_CHANNELS = 1_000;
const WAIT_BUCKETS_SECONDS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300];

/**
 * One installation's client at Slack's pace: posts by channel and workspace, everything else by method. What Slack
 * puts off is sent again when Slack said it may, and nothing else waits for it (S-091 to S-096).
 */
export function createThrottledClient(
  client: SlackClient,
  { clock, metrics, random = Math.random }: ThrottleDeps,
): SlackClient {
  const team = new Bucket(clock, TEAM_RATE);
  const channels = new Map<string, Bucket>();
  const methods = new Map<string, Bucket>();
  const waited = metrics.histogram(
    'slack_lane_wait_seconds',
    'Time a Web API call waited for its turn',
    ['method'],
    WAIT_BUCKETS_SECONDS,
  );

  const channelBucket = (channel: string): Bucket => {
    const known = channels.get(channel);
    if (known) return known;
    if (channels.size >= MAX_CHANNELS) for (const [name, bucket] of channels) if (bucket.isFresh) channels.delete(name);
    const made = new Bucket(clock, CHANNEL_RATE);
    channels.set(channel, made);
    return made;
  };
  const methodBucket = (method: string): Bucket => {
    let bucket = methods.get(method);
    if (!bucket) methods.set(method, (bucket = new Bucket(clock, methodRate(method))));
    return bucket;
  };
  /** The first of them is the one that Slack puts off. */
  const bucketsFor = (method: string, args: Readonly<Record<string, unknown>>): readonly Bucket[] => {
    const channel = args['channel'] ?? args['channel_id'];
    const place = typeof channel === 'string' ? [channelBucket(channel), team] : [];
    if (method === 'chat.postMessage') return place;
    if (method === 'files.completeUploadExternal') return [methodBucket(method), ...place];
    return UNCOUNTED.test(method) ? [] : [methodBucket(method)];
  };

  return {
    async call(method, args, options = {}) {
      const asked = clock.now();
      const buckets = bucketsFor(method, args);
      for (;;) {
        await takeAll(buckets, options.signal);
        waited.observe({ method }, Math.max(0, clock.now() - asked) / 1_000);
        if (options.isStillWanted?.() === false) {
          for (const bucket of buckets) bucket.settle(false);
          throw new GatewayError('SLACK_SUPERSEDED', { details: { method } });
        }
        let pauseMs: number | null = null;
        try {
          return await client.call(method, args, options);
        } catch (error) {
          if (!isGatewayError(error, 'SLACK_RATE_LIMITED')) throw error;
          pauseMs = (error.retryAfterMs ?? 0) + random() * JITTER_MS;
          if (options.whenPutOff === 'throw') {
            buckets[0]?.pause(pauseMs);
            throw error;
          }
        } finally {
          for (const bucket of buckets) bucket.settle();
        }
        const [first] = buckets;
        if (first) first.pause(pauseMs);
        else await clock.sleep(pauseMs, options.signal ?? undefined);
      }
    },
    clockAheadMs: () => client.clockAheadMs(),
    close: () => {
      client.close();
    },
  };
}

function methodRate(method: string): BucketRate {
  const perMinute = TIER_PER_MINUTE[TIER_2.test(method) ? 2 : TIER_4.test(method) ? 4 : 3];
  const burst = perMinute / 4;
  // Burst and refill together stay within the figure in any minute.
  return { burst, perMinute: perMinute - burst };
}

async function takeAll(buckets: readonly Bucket[], signal: AbortSignal | null | undefined): Promise<void> {
  const taken: Bucket[] = [];
  try {
    for (const bucket of buckets) {
      await bucket.take(signal);
      taken.push(bucket);
    }
  } catch (error) {
    for (const bucket of taken) bucket.settle(false);
    throw error;
  }
}
