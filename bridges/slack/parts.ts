import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Dispatcher } from 'undici';
import { Background } from '../../src/base/async.js';
import { backoffMs } from '../../src/base/backoff.js';
import type { Clock } from '../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../src/base/errors.js';
import type { HttpListener } from '../../src/base/http-mount.js';
import type { Logger } from '../../src/base/log.js';
import type { Metrics } from '../../src/base/metrics.js';
import type { AgentInput } from '../../src/core/agent-input.js';
import type { Blocker, BridgeReport, DeadLetters } from '../../src/core/bridge.js';
import type { AdapterFeatures } from '../../src/core/features.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import { isOutsideBrain, type Outlet } from '../../src/core/outside.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import type { Turn } from '../../src/core/turn.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { AgentTools } from '../../src/runtime/tools/agent-tools.js';
import { Inbox } from '../../src/store/inbox.js';
import { openLevelStore } from '../../src/store/leveldb.js';
import type { StateStore } from '../../src/store/port.js';
import { SeenKeys } from '../../src/store/seen.js';
import type { SlackAppConfig } from './apps.js';
import { slackKey, type SlackThread } from './conversation.js';
import { createGauges, SAMPLE_EVERY_MS } from './gauges.js';
import { createAccept, type Accept } from './inbound/accept.js';
import { Bindings, type Binding } from './inbound/bindings.js';
import { contextNote } from './inbound/brain-message.js';
import { withProgress, withSlackTools } from './inbound/brain-tools.js';
import { catchUp } from './inbound/catch-up.js';
import { createAsks } from './inbound/asks.js';
import { createCommands } from './inbound/commands/commands.js';
import { createAskForm } from './inbound/commands/form.js';
import { commandAnswer } from './inbound/commands/words.js';
import { createChangeHandler } from './inbound/change-events.js';
import { PendingChanges } from './inbound/changes.js';
import { Controls } from './inbound/controls.js';
import { createDispatcher } from './inbound/dispatcher.js';
import { createFilesIn, type FilesIn } from './inbound/files-in.js';
import { createHttpIngress } from './inbound/http.js';
import { inTurns } from './inbound/in-turns.js';
import { createMessageHandler } from './inbound/message.js';
import { createOutages, isOutage } from './inbound/outage.js';
import { createReplay } from './inbound/replay.js';
import { slackRecordSchema, threadOf, type SlackRecord } from './inbound/records.js';
import { SocketLink } from './inbound/socket-link.js';
import { ThreadPast } from './inbound/thread-past.js';
import { Threads } from './inbound/threads.js';
import { createTurnFlow } from './inbound/turn-flow.js';
import { TurnRecords } from './inbound/turn-record.js';
import { TurnRunner } from './inbound/turn.js';
import { Installation } from './installations.js';
import { neededScopes } from './manifest.js';
import type { ThreadRef, ThreadStatus } from './outbound/port.js';
import { createSlackOut } from './outbound/slack-out.js';
import { createOutlet } from './outlet.js';
import { blockersOf, createDeadLetters, reportOf } from './report.js';
import type { SlackOptions } from './settings.js';

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
export interface SlackParts {
  readonly listener: HttpListener;
  readonly outlet: Outlet;
  readonly deadLetters: DeadLetters;
  start(): Promise<void>;
  listen(port: number, listener: HttpListener): Promise<void>;
  /** Called first at stop. */
  onStop(undo: () => void): void;
  /** How a message of the room reaches the brain, when the room stands for a thread; null when it does not. */
  placeOf(input: AgentInput): Promise<RoomPlace | null>;
  roomClosed(roomId: string): void;
  /** Band asks to interrupt, stop or resume, in one room or in all of them (S-166). */
  control(roomId: string | null, mode: 'interrupt' | 'stop' | 'play'): void;
  report(): BridgeReport;
  blockers(): readonly Blocker[];
  stop(): Promise<void>;
}

export interface RoomPlace {
  /** Stands before the participants' note; empty for a brain that speaks by its outlet. */
  readonly note: string;
  run(work: (tools: AgentToolsProtocol) => Promise<void>): Promise<void>;
}

const TURN_GRACE_MS = 5_000;
const FLUSH_MS = 5_000;
const PRUNE_EVERY_MS = 3_600_000;
const OUTAGE_MS = 30_000;
const RECENT_MS = 24 * 3_600_000;
/** Tries of one delivery, about ten minutes in all (S-040). */
const INBOX_TRIES = 5;
const RESOLVE_BACKOFF = { baseMs: 1_000, maxMs: 30_000 } as const;
const INBOX_BACKOFF = { baseMs: 2_000, maxMs: 480_000, factor: 4, jitter: 'tenth' } as const;

/** Puts the bridge together; nothing runs until `start`. */
export async function openParts(deps: PartsDeps): Promise<SlackParts> {
  const { apps, options, inner, rest, clock, log, metrics, prefix, dispatcher, random } = deps;
  const { slackApiUrl } = options;
  const store = deps.store ?? (await openLevelStore({ folder: join(deps.dataDir, 'slack-store'), clock, log }));
  const background = new Background((error) => {
    log.error({ err: error }, 'a background task of the Slack bridge failed');
  });
  const stopping = new AbortController();
  const closing = new AbortController();
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
        onKnown: ({ app: { slug } }, { teamId }) => {
          background.run(async () => {
            await out.resume({ kind: 'token', slug, team: teamId });
            inbox.queue.wake();
            await lookBack(slug);
          });
        },
      }),
    ]),
  );
  const bindings = await Bindings.open({
    store,
    prefix: `${prefix}/bindings`,
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
    installation: (slug, team) => {
      const found = installations.get(slug);
      if (!found?.identity || found.refused || found.identity.teamId !== team) return null;
      const { teamUrl, botUserId, scopes } = found.identity;
      return { client: found.client, app: found.app, teamUrl, botUserId, scopes };
    },
    roomError: async (thread, error, signal) => {
      const binding = bindings.find(thread);
      if (!binding) return;
      const metadata = { slack_error: error.slackError, slack_ref: error.ref };
      await rest.postEvent(binding.roomId, { content: error.text, messageType: 'error', metadata }, { signal });
    },
    threadMoved: async (thread, newThreadTs, signal) => {
      const binding = bindings.find(thread);
      if (binding) await bindings.move(binding, newThreadTs, signal);
    },
    unreachable: async (thread) => {
      log.error({ channel: thread.channel, app: thread.slug }, 'a Slack channel can no longer be reached');
      await bindings.markUnreachable(thread);
    },
  });
  const inbox = await Inbox.open<SlackRecord>({
    store,
    prefix: `${prefix}/inbox`,
    bodySchema: slackRecordSchema,
    clock,
    log,
    // `inTurns` says how many of which kind are worked on.
    maxRunning: Number.POSITIVE_INFINITY,
    maxFailures: INBOX_TRIES,
    backoff: { ...INBOX_BACKOFF, random },
    seenRetentionMs: options.dedupTtlHours * 3_600_000,
  });
  const claims = await SeenKeys.open({
    store,
    prefix: `${prefix}/claims`,
    clock,
    retentionMs: options.dedupTtlHours * 3_600_000,
  });
  const past = new ThreadPast();
  const takeIn = createAccept({
    inbox,
    clock,
    metrics,
    deadlineMs: options.ackDeadlineMs,
    maxQueuedPerThread: options.maxQueuedPerThread,
  });
  const accept: Accept = async (arrival) => {
    try {
      return await takeIn(arrival);
    } catch (error) {
      // What was not taken may be missing from the past of its thread.
      past.forgetAll();
      throw error;
    }
  };
  const changes = new PendingChanges(store, `${prefix}/changes`, clock);
  const runner = new TurnRunner({ inner, clock, log, metrics, timeoutMs: options.turnTimeoutSeconds * 1_000 });
  const laneOfThread = (thread: SlackThread) =>
    `thread:${threadOf(thread.slug, thread.team, thread.channel, { ts: thread.threadTs })}`;
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
  const asks = createAsks({ autoJoin: options.autoJoin, accept, log });
  const askForm = createAskForm({ served: options.messageShortcut, controls, asks, out, log });
  const answerTo = (payload: unknown) => commandAnswer(payload, options.slashCommand !== 'off');
  const roomTools = (roomId: string, turn: Turn): AgentToolsProtocol =>
    new AgentTools({ rest, roomId, agentId: deps.agentId, turn, features: deps.features });
  const filesByApp = new Map<string, FilesIn>();
  const filesIn = ({ app, client, identity }: Installation): FilesIn => {
    let files = filesByApp.get(app.slug);
    if (!files) {
      files = createFilesIn({
        client,
        team: identity?.teamId ?? '-',
        token: app.botToken,
        slackApiUrl,
        dispatcher,
        folder: join(deps.dataDir, 'slack-files', app.slug),
        limits: options.files,
        clock,
        log,
      });
      filesByApp.set(app.slug, files);
    }
    return files;
  };

  const turns = new TurnRecords(store, `${prefix}/turns`);
  const outages = createOutages({ out, clock, log });
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
    tries: INBOX_TRIES,
    out,
    filesIn,
    roomTools,
    clock,
    log,
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

  const recentThreads = async (slug: string) => {
    const recent: { thread: SlackThread; lastTs: string; touchedAt: number }[] = [];
    for (const { key, thread } of bindings.ofApp(slug)) {
      const { lastTs, touchedAt } = await threads.get(key);
      if (lastTs !== null && touchedAt > clock.now() - RECENT_MS) recent.push({ thread, lastTs, touchedAt });
    }
    return recent.sort((a, b) => b.touchedAt - a.touchedAt);
  };
  const lookBack = async (slug: string): Promise<void> => {
    const installation = installations.get(slug);
    if (!installation || !open) return;
    await catchUp(
      installation,
      { mode: options.backfill, accept, threads: recentThreads, clock, log },
      stopping.signal,
    ).catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });
  };
  const downSince = new Map<string, number>();
  /** An outage that Slack's own repeats may not cover makes bound threads looked through. */
  const noteConnections = (slug: string, connections: number): void => {
    if (connections === 0) {
      if (!downSince.has(slug)) downSince.set(slug, clock.now());
      return;
    }
    const since = downSince.get(slug);
    downSince.delete(slug);
    if (since !== undefined && clock.now() - since > OUTAGE_MS) background.run(() => lookBack(slug));
  };
  const dispatch = createDispatcher({
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
    isKnown: (slug, channel) => {
      for (const { thread } of bindings.ofApp(slug)) if (thread.channel === channel) return true;
      return false;
    },
    out,
    catchUp: (slug) => {
      past.forgetAll();
      background.run(() => lookBack(slug));
    },
    clock,
    log,
    metrics,
  });
  const sockets = apps.flatMap((app) =>
    app.transport === 'socket' && app.appToken !== null
      ? [
          new SocketLink({
            slug: app.slug,
            appToken: app.appToken,
            slackApiUrl,
            dispatcher,
            pingTimeoutMs: options.socket.pingTimeoutMs,
            connections: options.socket.connections,
            accept,
            answerTo,
            clock,
            log,
            metrics,
            random,
            onChange: ({ open: connections }) => {
              if (connections === 0) past.forgetAll();
              noteConnections(app.slug, connections);
            },
          }),
        ]
      : [],
  );
  const listener = createHttpIngress({
    apps: apps.filter(({ transport }) => transport === 'http'),
    mountPath: options.mountPath,
    accept,
    answerTo,
    clock,
    log,
    metrics,
    bodyLimitBytes: options.bodyLimitBytes,
    open: () => open,
  });
  /** What a peer says waits until it is known where to: a failure would lose it. */
  const resolved = async (roomId: string, signal: AbortSignal): Promise<Binding | null> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await bindings.resolve(roomId, signal);
      } catch (error) {
        if (signal.aborted || !isGatewayError(error) || !isOutage(error)) throw error;
        log.warn({ err: error, roomId, tries }, 'the thread of a room is not known yet');
        await clock.sleep(backoffMs(tries, RESOLVE_BACKOFF), signal);
      }
    }
  };
  const statuses = new Map<string, ThreadStatus>();
  const relays = isOutsideBrain(inner);
  const refOf = ({ thread }: Binding, askerId: string | null = null): ThreadRef => ({ ...thread, askerId });

  const stopAll = async (): Promise<void> => {
    if (!open) return;
    open = false;
    const steps: (() => Promise<void> | void)[] = [
      ...undo.reverse(),
      ...sockets.map((socket) => () => socket.stop()),
      () => {
        closing.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The Slack bridge is stopping.' }));
      },
      () => inbox.queue.stop(TURN_GRACE_MS),
      () => inner.cleanupAll?.(),
      () => {
        stopping.abort(new GatewayError('DEADLINE_EXCEEDED', { message: 'The Slack bridge was stopped.' }));
      },
      () => background.drain(),
      () => out.stop(FLUSH_MS),
      ...[...installations.values()].map((installation) => () => installation.stop()),
      ...(deps.store ? [] : [() => store.close()]),
    ];
    const failures: unknown[] = [];
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
        log.error({ err: error }, 'a part of the Slack bridge did not stop');
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'The Slack bridge did not stop in order');
  };

  return {
    listener,
    outlet: createOutlet({ bindings, threads, out, statuses, options, signal: stopping.signal }),
    deadLetters: createDeadLetters(inbox.queue, out.deadLetters),
    async start() {
      for (const installation of installations.values()) installation.start();
      await out.start();
      inbox.queue.start(inTurns(dispatch, { mostTurns: options.maxConcurrentTurns, closing: closing.signal }));
      for (const socket of sockets) socket.start();
      undo.push(
        clock.every(PRUNE_EVERY_MS, () => {
          background.run(async () => {
            await Promise.all([inbox.prune(), claims.prune(), controls.prune(), changes.prune()]);
            for (const files of filesByApp.values()) await files.sweep();
          });
        }),
      );
      const look = createGauges({ metrics, clock, log, inbox: inbox.queue, runner, bindings, installations });
      look();
      undo.push(clock.every(SAMPLE_EVERY_MS, look));
    },
    async listen(port, serve) {
      const server = createServer(serve);
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, '127.0.0.1', resolve);
      });
      undo.push(() => {
        server.close();
        server.closeIdleConnections();
      });
    },
    onStop(step) {
      undo.push(step);
    },
    async placeOf({ roomId, signal, tools, msg }) {
      const binding = await resolved(roomId, signal);
      if (!binding) return null;
      const installation = installations.get(binding.thread.slug);
      if (!installation) {
        log.warn({ app: binding.thread.slug, roomId }, 'a room stands for a thread of an app that is not configured');
        return null;
      }
      if (relays) return { note: '', run: (work) => work(tools) };
      const thread = refOf(binding);
      const { people } = await threads.get(slackKey(thread));
      return {
        note: contextNote(await installation.directory.channelLabel(thread.channel)),
        async run(work) {
          const turnId = `band:${msg.id}`;
          const slack = withSlackTools(tools, {
            out,
            thread,
            turnId,
            mentions: { users: people, groups: false, broadcast: false, channels: [thread.channel] },
            show: () => Promise.resolve(),
            readFile: async (fileId, offset) =>
              (await filesIn(installation).read(fileId, offset)) ?? 'Error: this file was not taken, or is gone',
          });
          const progress = options.showToolProgress ? out.progress(thread, turnId) : null;
          const status = out.status(thread);
          status.set();
          try {
            await work(progress ? withProgress(slack, progress) : slack);
          } finally {
            status.clear();
            await progress?.finish();
          }
        },
      };
    },
    roomClosed(roomId) {
      statuses.get(roomId)?.clear();
      statuses.delete(roomId);
    },
    control(roomId, mode) {
      const action = mode === 'play' ? 'resume' : mode;
      const asked = roomId === null ? apps.flatMap(({ slug }) => [...bindings.ofApp(slug)]) : [bindings.ofRoom(roomId)];
      background.run(async () => {
        for (const binding of asked) {
          if (!binding) continue;
          // A signal for all rooms is about what runs, or what waits for it.
          const key = slackKey(binding.thread);
          const concerned = roomId !== null || (mode === 'play' ? (await threads.get(key)).paused : runner.runs(key));
          if (concerned) await controls.act(action, refOf(binding), null, null, deps.newId());
        }
      });
    },
    report: () => reportOf({ installations, sockets, inbox: inbox.queue, out, apps, bindings }),
    blockers: () => blockersOf({ installations, sockets, apps, clock }),
    stop: stopAll,
  };
}
