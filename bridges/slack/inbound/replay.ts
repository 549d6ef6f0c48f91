import { App, type Receiver } from '@slack/bolt';
import type { SlackAppConfig } from '../apps.js';
import { mutedLogger } from '../client.js';
import type { SlackIdentity } from '../web-methods.js';

/** What a stored payload is handed to; a rejection means that it is tried again. */
export type OnDelivery = (payload: Readonly<Record<string, unknown>>) => Promise<void>;

export interface ReplayDeps {
  readonly app: SlackAppConfig;
  readonly identity: () => SlackIdentity | null;
  readonly slackApiUrl: string | undefined;
}

/** Hands a stored payload through Bolt to its listener. @returns false when Bolt knows no listener for its kind */
export type Replay = (payload: Readonly<Record<string, unknown>>, onDelivery: OnDelivery) => Promise<boolean>;

/**
 * Bolt behind the inbox. Bolt acknowledges before its listeners run (T-06), so its receiver here is one that
 * acknowledges nothing: the inbox did, long ago. Errors of a listener come back to the caller instead of being
 * swallowed.
 */
export function createReplay({ app, identity, slackApiUrl }: ReplayDeps): Replay {
  const idle: Receiver = {
    init: () => undefined,
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
  };
  const bolt = new App({
    receiver: idle,
    logger: mutedLogger,
    // Who is ours is for the gate to say: Bolt's own rule drops most of what carries our user id (T-14).
    ignoreSelf: false,
    authorize: () => {
      const known = identity();
      return Promise.resolve({
        botToken: app.botToken,
        ...(known ? { botUserId: known.botUserId, teamId: known.teamId } : {}),
        ...(known?.botId ? { botId: known.botId } : {}),
      });
    },
    // A fresh object each: Bolt writes the token into the headers it is given (T-01).
    clientOptions: { headers: {}, ...(slackApiUrl === undefined ? {} : { slackApiUrl }) },
  });
  bolt.error((error) => Promise.reject(error instanceof Error && 'original' in error ? toCause(error) : error));

  const everything = /^/;
  const hand = async ({ context }: { context: Record<string, unknown> }): Promise<void> => {
    const { replayed } = context as { replayed?: Replayed };
    if (!replayed || replayed.taken) return;
    replayed.taken = true;
    await replayed.onDelivery(replayed.payload);
  };
  bolt.event(everything, hand);
  bolt.action(everything, hand);
  bolt.command(everything, hand);
  bolt.shortcut(everything, hand);
  bolt.view(everything, hand);
  bolt.view({ callback_id: everything, type: 'view_closed' }, hand);

  return async (payload, onDelivery) => {
    const replayed: Replayed = { payload, onDelivery, taken: false };
    await bolt.processEvent({ body: payload, ack: () => Promise.resolve(), customProperties: { replayed } });
    return replayed.taken;
  };
}

interface Replayed {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly onDelivery: OnDelivery;
  /** One payload may match several listeners; the first takes it. */
  taken: boolean;
}

/** Bolt wraps what a listener threw. */
function toCause(error: Error & { original?: unknown }): Error {
  return error.original instanceof Error ? error.original : error;
}
