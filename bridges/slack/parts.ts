import { join } from 'node:path';
import type { Dispatcher } from 'undici';
import { Background } from '../../src/base/async.js';
import type { Clock } from '../../src/base/clock.js';
import { GatewayError } from '../../src/base/errors.js';
import type { HttpListener } from '../../src/base/http-mount.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { Blocker, BridgeReport, DeadLetters } from '../../src/core/bridge.js';
import type { AdapterFeatures } from '../../src/core/features.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import { isOutsideBrain } from '../../src/core/outside.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import type { Turn } from '../../src/core/turn.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { AgentTools } from '../../src/runtime/tools/agent-tools.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import type { StateStore } from '../../src/store/port.js';
import type { SlackAppConfig } from './apps.js';
import type { SlackThread } from './conversation.js';
import { createAppFiles } from './inbound/app-files.js';
import { Bindings } from './inbound/bindings.js';
import { createAsks } from './inbound/asks.js';
import { createCommands } from './inbound/commands/commands.js';
import { createAskForm } from './inbound/commands/form.js';
import { commandAnswer } from './inbound/commands/words.js';
import { createChangeHandler } from './inbound/change-events.js';
import { PendingChanges } from './inbound/changes.js';
import { Controls } from './inbound/controls.js';
import { createDispatcher } from './inbound/dispatcher.js';
import { createDoors } from './inbound/doors.js';
import { takeUpLate } from './inbound/late-install.js';
import { createLookBack } from './inbound/look-back.js';
import { INBOX_TRIES, openIntake } from './inbound/intake.js';
import { createMessageHandler } from './inbound/message.js';
import { createOutages } from './inbound/outage.js';
import { createReactions } from './inbound/reactions.js';
import { Surfaces } from './inbound/surfaces.js';
import { createReplay } from './inbound/replay.js';
import { threadLane } from './inbound/records.js';
import { Threads } from './inbound/threads.js';
import { createTurnFlow } from './inbound/turn-flow.js';
import { TurnRecords } from './inbound/turn-record.js';
import { TurnRunner } from './inbound/turn.js';
import { Installation } from './installations.js';
import { listenAt } from './listen.js';
import { neededScopes } from './manifest.js';
import { createSlackOut } from './outbound/slack-out.js';
import { createOutHooks, suspendAll } from './out-hooks.js';
import { createProxy } from './proxy.js';
import { blockersOf, createDeadLetters, reportOf } from './report.js';
import { createRoomSide, type RoomSide } from './room-side.js';
import type { SlackOptions } from './settings.js';
import { stopInOrder, type StopStep } from './stop-in-order.js';
import { startUpkeep } from './upkeep.js';

export interface PartsDeps {
  readonly apps: readonly SlackAppConfig[];
  readonly options: SlackOptions;
  readonly inner: FrameworkAdapter;
  readonly agentName: string;
  readonly agentId: string;
  readonly features: AdapterFeatures;
  readonly rest: BandRest;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Null: a folder of its own, closed at the end. */
  readonly store: StateStore | null;
  readonly prefix: string;
  readonly dataDir: string;
  readonly dispatcher: Dispatcher | undefined;
  readonly random: () => number;
  readonly newId: () => string;
}

/** Everything of one started bridge. */
export interface SlackParts extends RoomSide {
  readonly listener: HttpListener;
  readonly deadLetters: DeadLetters;
  start(): Promise<void>;
  listen(port: number, listener: HttpListener): Promise<void>;
  /** Called first at stop. */
  onStop(undo: () => void): void;
  report(): BridgeReport;
  blockers(): readonly Blocker[];
  stop(): Promise<void>;
}

const TURN_GRACE_MS = 5_000;
const FLUSH_MS = 5_000;

/** Puts the bridge together; nothing runs until `start`. */
export async function openParts(deps: PartsDeps): Promise<SlackParts> {
  const { apps, options, inner, rest, clock, log, metrics, prefix, random } = deps;
  const proxy = options.proxy === undefined ? null : createProxy(options.proxy);
  const dispatcher: Dispatcher | undefined = proxy ?? deps.dispatcher;
  const { slackApiUrl } = options;
  const store = deps.store ?? (await openLevelStore({ folder: join(deps.dataDir, 'slack-store'), clock, log }));
  const background = new Background((error) => {
    log.error({ err: error }, 'a background task of the Slack bridge failed');
  });
  const stopping = new AbortController();
  const undo: (() => void)[] = [];
  let open = true;

  const installations = new Map(
    apps.map((app) => [
      app.slug,
      new Installation(app, {
        slackApiUrl,
        dispatcher,
        clock,
        log,
        metrics,
        random,
        neededScopes: (of) => neededScopes(options, of),
        onKnown: ({ app: { slug } }, identity) => {
          background.run(async () => {
            await out.resume({ kind: 'token', slug, team: identity.teamId });
            await takeUpLate(inbox.queue, slug, identity, { clock, log });
            inbox.queue.wake();
            await lookBack.begun(slug);
          });
        },
        onRefused: (installation, error) => {
          background.run(() => suspendAll(installation, error, bindings, out));
        },
      }),
    ]),
  );
  const bindings = await Bindings.open({
    store,
    prefix: `${prefix}/bindings`,
    teamOf: (slug) => installations.get(slug)?.identity?.teamId ?? null,
    rest,
    clock,
    log,
    rescan: options.rescan,
    closing: stopping.signal,
    metrics,
  });
  const threads = new Threads(store, `${prefix}/threads`);
  const out = await createSlackOut({
    options,
    store,
    prefix,
    clock,
    log,
    metrics,
    random,
    dispatcher,
    ...createOutHooks({ installations, bindings, threads, rest, log }),
  });
  const { inbox, claims, past, accept } = await openIntake({ options, store, prefix, random, clock, log, metrics });
  const changes = new PendingChanges(store, `${prefix}/changes`, clock);
  const runner = new TurnRunner({ inner, clock, log, metrics, timeoutMs: options.turnTimeoutSeconds * 1_000 });
  const laneOfThread = (thread: SlackThread) =>
    threadLane(thread.slug, thread.team, thread.channel, { ts: thread.threadTs });
  const controls = new Controls({
    store,
    prefix: `${prefix}/controls`,
    clock,
    newId: deps.newId,
    out,
    runner,
    threads,
    bindings,
    inner,
    accept,
    wake: (thread) => {
      inbox.queue.wake(laneOfThread(thread));
    },
    controllers: options.controllers,
    openForm: (control, delivery, installation) => askForm.reopen(control, delivery, installation),
  });
  const asks = createAsks({ autoJoin: options.autoJoin, accept, clock, log });
  const askForm = createAskForm({ served: options.messageShortcut, controls, asks, out, log });
  const answerTo = (payload: unknown) => commandAnswer(payload, options.slashCommand !== 'off');
  const roomTools = (roomId: string, turn: Turn): AgentToolsProtocol =>
    new AgentTools({ rest, roomId, agentId: deps.agentId, turn, features: deps.features });
  const files = createAppFiles({
    slackApiUrl,
    dispatcher,
    folder: join(deps.dataDir, 'slack-files'),
    limits: options.files,
    clock,
    log,
  });

  const turns = new TurnRecords(store, `${prefix}/turns`);
  const outages = createOutages({
    out,
    probe: () => rest.getMe({ signal: stopping.signal }),
    wake: () => {
      inbox.queue.wake();
    },
    clock,
    log,
  });
  const surfaces = new Surfaces({ prompts: options.suggestedPrompts, log });
  const flow = createTurnFlow({
    options,
    inner,
    agentName: () => deps.agentName,
    rest,
    bindings,
    threads,
    past,
    turns,
    runner,
    controls,
    outages,
    surfaces,
    tries: INBOX_TRIES,
    out,
    filesIn: (installation) => files.of(installation),
    roomTools,
    clock,
    log,
    metrics,
    newReference: () => deps.newId().slice(0, 8),
  });
  const messages = createMessageHandler({
    options,
    bindings,
    threads,
    past,
    agentName: () => deps.agentName,
    changes,
    claims,
    turns,
    flow,
    outages,
    out,
    clock,
    log,
    metrics,
  });
  const onChange = createChangeHandler({
    options,
    rest,
    bindings,
    changes,
    past,
    claims,
    runner,
    accept,
    waiting: (thread) => inbox.queue.laneDepth(laneOfThread(thread)),
    clock,
    log,
  });

  const lookBack = createLookBack({
    mode: options.backfill,
    installations,
    bindings,
    threads,
    store,
    prefix: `${prefix}/look-back`,
    pingTimeoutMs: options.socket.pingTimeoutMs,
    accept,
    background,
    open: () => open,
    signal: stopping.signal,
    clock,
    log,
  });
  const { handle, crashLoop } = createDispatcher({
    installations,
    replayOf: (app) =>
      createReplay({ app, identity: () => installations.get(app.slug)?.identity ?? null, slackApiUrl }),
    messages,
    onChange,
    giveUp: (error, thread, record) => flow.giveUp(error, thread, record),
    tries: INBOX_TRIES,
    controls,
    onCommand: createCommands({
      options,
      agentName: deps.agentName,
      bindings,
      threads,
      runner,
      controls,
      asks,
      out,
      clock,
    }),
    askForm,
    onReaction: createReactions({ meanings: options.reactions, bindings, controls, runner, accept, rest, log }),
    surfaces,
    out,
    eventsDropped: (slug, minute) => {
      past.forgetAll();
      lookBack.dropped(slug, minute);
    },
    clock,
    log,
    metrics,
  });
  const { listener, sockets } = createDoors({
    apps,
    options,
    accept,
    answerTo,
    dispatcher,
    random,
    open: () => open,
    onConnections: (slug, connections) => {
      if (connections === 0) past.forgetAll();
      lookBack.noteConnections(slug, connections);
    },
    clock,
    log,
    metrics,
  });
  const roomSide = createRoomSide({
    options,
    rest,
    installations,
    bindings,
    threads,
    runner,
    controls,
    files,
    out,
    relays: isOutsideBrain(inner),
    background,
    newId: deps.newId,
    signal: stopping.signal,
    clock,
    log,
  });

  const stopAll = async (): Promise<void> => {
    if (!open) return;
    open = false;
    const steps: StopStep[] = [
      ...undo.reverse(),
      ...sockets.map((socket) => () => socket.stop()),
      () => inbox.queue.stop(TURN_GRACE_MS),
      () => inner.cleanupAll?.(),
      () => {
        stopping.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The Slack bridge was stopped.' }));
      },
      () => background.drain(),
      () => out.stop(FLUSH_MS),
      ...[...installations.values()].map((installation) => () => installation.stop()),
      ...(proxy ? [() => proxy.destroy()] : []),
      ...(deps.store ? [] : [() => store.close()]),
    ];
    await stopInOrder(steps, log);
  };

  return {
    ...roomSide,
    listener,
    deadLetters: createDeadLetters(inbox.queue, out.deadLetters),
    async start() {
      for (const installation of installations.values()) installation.start();
      await out.start();
      await lookBack.prepare();
      inbox.queue.start(handle, crashLoop);
      for (const socket of sockets) socket.start();
      const forgetters = [inbox, claims, controls, changes].map((one) => () => one.prune());
      undo.push(
        ...startUpkeep({
          forgetters: [...forgetters, () => files.sweep()],
          background,
          metrics,
          clock,
          log,
          inbox: inbox.queue,
          runner,
          bindings,
          installations,
        }),
      );
    },
    async listen(port, serve) {
      undo.push(await listenAt(port, serve));
    },
    onStop(step) {
      undo.push(step);
    },
    report: () => reportOf({ installations, sockets, inbox: inbox.queue, out, apps, bindings }),
    blockers: () => blockersOf({ installations, sockets, apps, clock }),
    stop: stopAll,
  };
}
