import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { Handler, Outcome } from '../../../src/store/durable-queue.js';
import { isStoreFault } from '../../../src/store/store-fault.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { GatewayError, isGatewayError, toError } from '../../../src/base/errors.js';
import type { SlackAppConfig } from '../apps.js';
import type { Installation } from '../installations.js';
import type { SlackOut, ThreadRef } from '../outbound/port.js';
import {
  parseDelivery,
  type DeliverySource,
  type SlackCommandDelivery,
  type SlackDelivery,
  type SlackEventDelivery,
  type SlackShortcutDelivery,
  type SlackViewDelivery,
} from '../parse.js';
import type { SlackEvent } from '../parse-event.js';
import type { SlackIdentity } from '../web-methods.js';
import type { ChangeHandler } from './change-events.js';
import type { CommandHandler } from './commands/commands.js';
import type { AskForm } from './commands/form.js';
import { responseWay, type Controls } from './controls.js';
import { NO_INSTALLATION } from './late-install.js';
import type { MessageHandler } from './message.js';
import type { SlackRecord } from './records.js';
import type { ReactionHandler } from './reactions.js';
import type { Replay } from './replay.js';
import type { Surfaces } from './surfaces.js';
import type { TurnFlow } from './turn-flow.js';

type Record_ = QueueRecord<SlackRecord>;

export interface DispatcherDeps {
  readonly installations: ReadonlyMap<string, Installation>;
  readonly replayOf: (app: SlackAppConfig) => Replay;
  readonly messages: MessageHandler;
  readonly onChange: ChangeHandler;
  /** A message comes to no good end: its author is told. */
  readonly giveUp: TurnFlow['giveUp'];
  /** Tries of one record before it is given up. */
  readonly tries: number;
  readonly controls: Controls;
  readonly onCommand: CommandHandler;
  readonly askForm: AskForm;
  readonly onReaction: ReactionHandler;
  readonly surfaces: Surfaces;
  readonly out: SlackOut;
  /** Slack dropped events of this app for a minute, in seconds since the epoch: what was missed is looked for. */
  readonly eventsDropped: (slug: string, minute: number | null) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const DONE: Outcome = { kind: 'done' };
const IDENTITY_LOOK_MS = 1_000;
const PARKED_LOOK_MS = 60_000;

export interface Dispatcher {
  readonly handle: Handler<SlackRecord>;
  /** The end of a record that was there at too many ends of the process: its author hears of it. */
  readonly crashLoop: Handler<SlackRecord>;
}

/** Inbox record → Bolt → its handler. One record's failure is its own. */
export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const { installations, log, out } = deps;
  const replays = new Map([...installations].map(([slug, { app }]) => [slug, deps.replayOf(app)]));

  const handle: Handler<SlackRecord> = async (record, signal) => {
    const { slug, payload } = record.body;
    const installation = installations.get(slug);
    const replay = replays.get(slug);
    if (!installation || !replay) {
      return { kind: 'dead', code: NO_INSTALLATION, reason: `no app is called ${slug} any more` };
    }
    const delivery = parseDelivery(payload);
    // What steers the installation itself does not wait for Slack to say who the bot is.
    if (!installation.identity && !(delivery.kind === 'event' && isLifecycle(delivery.event))) {
      return lookLater(installation);
    }
    let outcome: Outcome = DONE;
    const take = async () => {
      outcome = await route(delivery, installation, record, signal);
    };
    const body = typeof payload === 'object' && payload !== null ? (payload as Record<string, unknown>) : {};
    try {
      if (!(await replay(body, take))) await take();
      return outcome;
    } catch (error) {
      return await failed(toError(error), delivery, installation, record, signal);
    }
  };

  const crashLoop: Handler<SlackRecord> = async (record, signal) => {
    const installation = installations.get(record.body.slug);
    if (!installation) return await handle(record, signal);
    // Nobody can be told before it is known who the bot is.
    if (!installation.identity) return lookLater(installation);
    const error = new GatewayError('CRASH_LOOP');
    return await failed(error, parseDelivery(record.body.payload), installation, record, signal);
  };

  return { handle, crashLoop };

  /** What failed after several steps may have done some of them; and no message ends without a word to its author. */
  async function failed(
    error: Error,
    delivery: SlackDelivery,
    installation: Installation,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const known = isGatewayError(error) ? error : null;
    const isLast = known?.retryable === false || record.failures + 1 >= deps.tries;
    const { identity } = installation;
    if (signal.aborted || !isLast || isStoreFault(error)) {
      const afterMs = known?.retryAfterMs ?? null;
      return { kind: 'retry', error, maybeDelivered: true, ...(afterMs === null ? {} : { afterMs }) };
    }
    if (identity && (delivery.kind === 'command' || delivery.kind === 'view')) {
      await tellFailed(delivery, installation, identity, record);
    }
    if (!identity || delivery.kind !== 'event' || delivery.event.kind !== 'message') throw error;
    const { event } = delivery;
    const { channel, message } = event;
    const place = { channel, threadTs: message.thread_ts ?? message.ts, user: message.user ?? null };
    const outcome = await deps.giveUp(error, placeOf(delivery, installation, identity, place), record);
    // The other event of the same message is not to go through all of this again.
    return deps.messages.ended({ installation, identity, delivery, event }, outcome, record);
  }

  /** Who asked by a command or a form was told that it would be done. */
  async function tellFailed(
    delivery: SlackCommandDelivery | SlackViewDelivery,
    installation: Installation,
    identity: SlackIdentity,
    record: Record_,
  ): Promise<void> {
    const isCommand = delivery.kind === 'command';
    const channel = isCommand ? delivery.channel : '';
    await out.ephemeral(
      { slug: installation.app.slug, team: identity.teamId, channel, threadTs: '', askerId: delivery.userId },
      delivery.userId,
      {
        id: `${record.id}:failed`,
        text: 'I could not do what you asked for. It was recorded; please try again later.',
        response: isCommand ? responseWay(delivery.responseUrl, record.putAt) : null,
      },
    );
  }

  async function route(
    delivery: SlackDelivery,
    installation: Installation,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> {
    switch (delivery.kind) {
      case 'event':
        return await routeEvent(delivery, installation, record, signal);
      case 'action':
        await deps.controls.press(delivery, installation);
        return DONE;
      case 'rate_limited':
        log.error({ app: installation.app.slug }, 'Slack dropped events of this workspace for a minute');
        deps.eventsDropped(installation.app.slug, delivery.minute);
        return DONE;
      case 'command':
      case 'shortcut':
      case 'view':
        return await routeAsked(delivery, installation, record, signal);
      case 'url_verification':
      case 'unknown':
        log.debug({ app: installation.app.slug, kind: delivery.kind }, 'a Slack delivery is not acted on');
        return DONE;
    }
  }

  /** What somebody asks for by a command, a shortcut or a form. */
  async function routeAsked(
    delivery: SlackCommandDelivery | SlackShortcutDelivery | SlackViewDelivery,
    installation: Installation,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { identity } = installation;
    if (!identity) return DONE;
    if (delivery.teamId !== null && delivery.teamId !== identity.teamId) return notInstalled(delivery, installation);
    switch (delivery.kind) {
      case 'command':
        await deps.onCommand(delivery, installation, identity, record, signal);
        return DONE;
      case 'shortcut':
        await deps.askForm.open(delivery, installation, identity, record, signal);
        return DONE;
      case 'view':
        await deps.askForm.submit(delivery, installation, identity, record, signal);
        return DONE;
    }
  }

  function notInstalled({ teamId }: DeliverySource, { app }: Installation): Outcome {
    log.error({ app: app.slug, team: teamId }, 'an event of a workspace without an installation');
    return { kind: 'dead', code: NO_INSTALLATION, reason: `no installation in workspace ${teamId ?? ''}` };
  }

  async function routeEvent(
    delivery: SlackEventDelivery,
    installation: Installation,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { event } = delivery;
    const { identity, directory } = installation;
    if (identity && delivery.teamId !== null && delivery.teamId !== identity.teamId) {
      return notInstalled(delivery, installation);
    }
    switch (event.kind) {
      case 'message':
        return identity ? await deps.messages.take({ installation, identity, delivery, event }, record, signal) : DONE;
      case 'edited':
      case 'deleted':
        return identity ? await deps.onChange({ installation, identity, delivery, event }, record, signal) : DONE;
      case 'reaction':
        if (identity) {
          const { slug, team } = keyOf(delivery, installation, identity);
          await deps.onReaction(event, { slug, team }, installation, identity, record, signal);
        }
        return DONE;
      case 'session_stopped':
        if (identity) {
          const thread = placeOf(delivery, installation, identity, event);
          await deps.controls.stopSession(thread, installation, record.id);
        }
        return DONE;
      case 'joined':
        if (event.user === identity?.botUserId) {
          await out.resume({ kind: 'joined', ...keyOf(delivery, installation, identity), channel: event.channel });
        }
        return DONE;
      case 'channel':
        directory.forgetChannel(event.channel);
        if (identity && event.type === 'channel_unarchive') {
          await out.resume({ kind: 'unarchived', ...keyOf(delivery, installation, identity), channel: event.channel });
        }
        return DONE;
      case 'user_changed':
        directory.forgetUser(event.user);
        return DONE;
      case 'uninstalled':
      case 'tokens_revoked':
        if (event.kind === 'uninstalled' || event.botUsers.length > 0) {
          installation.park(new GatewayError('SLACK_UNAUTHORIZED', { details: { slackError: event.kind } }));
        }
        return DONE;
      case 'thread_opened':
        await deps.surfaces.opened(event, installation, signal);
        return DONE;
      case 'context_changed':
        deps.surfaces.looked(event, installation);
        return DONE;
      case 'other':
        return DONE;
    }
  }
}

const lookLater = ({ refused }: Installation): Outcome => ({
  kind: 'wait',
  afterMs: refused ? PARKED_LOOK_MS : IDENTITY_LOOK_MS,
});

function isLifecycle(event: SlackEvent): boolean {
  return event.kind === 'uninstalled' || event.kind === 'tokens_revoked';
}

const keyOf = (delivery: SlackEventDelivery, { app }: Installation, identity: SlackIdentity) => ({
  slug: app.slug,
  team: delivery.teamId ?? identity.teamId,
});

function placeOf(
  delivery: SlackEventDelivery,
  installation: Installation,
  identity: SlackIdentity,
  at: { readonly channel: string; readonly threadTs?: string; readonly user?: string | null } = { channel: '' },
): ThreadRef {
  return {
    ...keyOf(delivery, installation, identity),
    channel: at.channel,
    threadTs: at.threadTs ?? '',
    askerId: at.user ?? null,
  };
}
