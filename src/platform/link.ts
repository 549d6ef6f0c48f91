import { type Clock, systemClock } from '../base/clock.js';
import { GatewayError, toError } from '../base/errors.js';
import { type Logger, silentLogger } from '../base/log.js';
import { type Metrics, noMetrics } from '../base/metrics.js';
import { EventQueue } from './event-queue.js';
import { readPush } from './events.js';
import type { BandLink, LinkState } from './link-port.js';
import { createOpenWebSocket } from './socket/open-web-socket.js';
import { PhoenixSocket } from './socket/phoenix-socket.js';
import { createReconnectPolicy } from './socket/reconnect-policy.js';
import { type OnConflict, socketUrl } from './socket/socket-url.js';
import type { OpenWebSocket } from './socket/web-socket.js';
import { roomOfTopic } from './topics.js';
import type { AgentControl, Supersede } from './wire/socket-events.js';

export interface BandLinkOptions {
  /** e.g. `wss://app.band.ai/api/v1/socket/websocket`, with or without the last part. */
  wsUrl: string;
  agentId: string;
  /** Goes as header and in the query; in no error and no log line. */
  apiKey: string;
  /** What the first connection asks for when another one of this agent is live. */
  onConflict: OnConflict;
  openWebSocket?: OpenWebSocket;
  clock?: Clock;
  random?: () => number;
  log?: Logger;
  metrics?: Metrics;
  /** Failed tries after which `connect` gives up; default 11. A link that was up once never gives up. */
  initialTries?: number;
  /** Joins that wait for their answer at the same time; default 512. */
  maxJoinsInFlight?: number;
  /** Messages of one room that wait for the consumer; default 1,000. */
  maxMessagesPerRoom?: number;
  /** Estimated size of all events that wait for the consumer; default 64 MiB. */
  maxQueuedBytes?: number;
}

/**
 * {@link BandLink} over one WebSocket. A frame's way: socket → connection (is it a frame?) → channels (is it of a
 * joined topic, and of its latest join?) → `readPush` (is the payload right?) → the event queue, or at once to the
 * control handler.
 */
export function createBandLink(options: BandLinkOptions): BandLink {
  const { clock = systemClock, random = Math.random, metrics = noMetrics } = options;
  const log = (options.log ?? silentLogger).child({ agentId: options.agentId });
  const droppedFrames = metrics.counter('band_link_frames_dropped_total', 'Frames from Band that were left out.', [
    'reason',
  ]);
  const droppedEvents = metrics.counter(
    'band_link_events_dropped_total',
    'Events left out because a buffer was full; each is followed by a catch-up.',
  );
  const stateChanges = metrics.counter('band_link_state_changes_total', 'States that the link to Band entered.', [
    'state',
  ]);

  const queue = new EventQueue({
    ...(options.maxMessagesPerRoom === undefined ? {} : { maxMessagesPerRoom: options.maxMessagesPerRoom }),
    ...(options.maxQueuedBytes === undefined ? {} : { maxBytes: options.maxQueuedBytes }),
    dropped: () => {
      droppedEvents.inc();
    },
  });
  let garbage = 0;
  let invalid = 0;
  const stateHandlers = new Set<(state: LinkState) => void>();
  let controlHandler: ((control: AgentControl) => void) | null = null;

  const socket = new PhoenixSocket({
    open: options.openWebSocket ?? createOpenWebSocket(),
    urlFor: (onConflict) => socketUrl(options.wsUrl, { apiKey: options.apiKey, agentId: options.agentId, onConflict }),
    headers: { 'x-api-key': options.apiKey, 'user-agent': 'band-gateway' },
    policy: createReconnectPolicy({ firstConflict: options.onConflict, clock, random }),
    clock,
    random,
    log,
    maxJoinsInFlight: options.maxJoinsInFlight ?? 512,
    initialTries: options.initialTries ?? 11,
    events: {
      push(topic, name, payload) {
        const push = readPush(topic, name, payload);
        switch (push.kind) {
          case 'event':
            queue.push(push.event);
            return;
          case 'control':
            control(push.control);
            return;
          case 'supersede':
            socket.end(superseded(push.supersede));
            return;
          case 'unknown':
            droppedFrames.inc({ reason: 'unknown_event' });
            log.debug({ topic, event: name }, 'band event of an unknown kind left out');
            return;
          case 'invalid':
            droppedFrames.inc({ reason: 'invalid_payload' });
            if (nowAndThen(invalid++)) {
              log.warn(
                { topic, event: name, problem: push.problem, invalid },
                'band event with an invalid payload left out',
              );
            }
            return;
        }
      },
      rejoined(topic) {
        queue.push({ kind: 'resync', roomId: roomOfTopic(topic), why: 'rejoined' });
      },
      lost(topic, error) {
        log.warn({ topic, reason: error.details['reason'] }, 'band topic lost');
        queue.push({ kind: 'topic_lost', topic, roomId: roomOfTopic(topic), error });
      },
      dropped(reason, topic) {
        droppedFrames.inc({ reason });
        if (reason !== 'garbage') log.debug({ topic, reason }, 'band frame left out');
        else if (nowAndThen(garbage++)) log.warn({ garbage }, 'band sent something that is no frame; left out');
      },
      down(why) {
        queue.push({ kind: 'disconnected', why });
      },
      reconnected() {
        queue.push({ kind: 'reconnected' });
      },
      stateChanged(state) {
        stateChanges.inc({ state: state.kind });
        for (const handler of stateHandlers) {
          guarded(() => {
            handler(state);
          }, 'state');
        }
      },
    },
  });

  const control = (signal: AgentControl) => {
    guarded(() => controlHandler?.(signal), 'control');
  };

  /** A handler's mistake is its own; the frames after it still have to be read. */
  const guarded = (call: () => void, handler: string) => {
    try {
      call();
    } catch (error) {
      log.error({ err: toError(error), handler }, 'a handler of the band link threw');
    }
  };

  void socket.finished.then(() => {
    queue.end();
  });

  return {
    connect: (signal) => socket.connect(signal),
    close: () => socket.close(),
    join: (topic, signal) => socket.join(topic, signal),
    leave: (topic) => socket.leave(topic),
    events: queue,
    onControl(handler) {
      controlHandler = handler;
    },
    get state() {
      return socket.state;
    },
    onState(handler) {
      stateHandlers.add(handler);
      return () => {
        stateHandlers.delete(handler);
      };
    },
    closed: socket.finished,
  };
}

/** The first and every thousandth: a platform that talks nonsense must not fill the log with it. */
const nowAndThen = (before: number): boolean => before % 1_000 === 0;

function superseded({ reason, message, correlation_id }: Supersede): GatewayError {
  return new GatewayError('BAND_SUPERSEDED', {
    message: `Another connection of this agent replaced this one (${reason.slice(0, 100)}): ${message.slice(0, 300)}`,
    details: { reason, ...(typeof correlation_id === 'string' ? { correlationId: correlation_id } : {}) },
  });
}
