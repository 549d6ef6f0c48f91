import { abortable, withDeadline } from '../../../src/base/async.js';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { Clock } from '../../../src/base/clock.js';
import { isGatewayError, toError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { isOutsideBrain } from '../../../src/core/outside.js';
import type { AgentToolsProtocol } from '../../../src/core/tools.js';
import { Turn } from '../../../src/core/turn.js';
import type { BandRest } from '../../../src/platform/rest/band-rest.js';
import type { Outcome } from '../../../src/store/durable-queue.js';
import { isStoreFault } from '../../../src/store/store-fault.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { slackKey } from '../conversation.js';
import { messageToMarkdown } from '../convert/index.js';
import type { Installation } from '../installations.js';
import type { MentionRule, SlackOut, ThreadRef, TurnProgress } from '../outbound/port.js';
import type { SlackMessage } from '../messages.js';
import type { SlackOptions } from '../settings.js';
import type { Binding, Bindings } from './bindings.js';
import { contextNote, copyReply, toBrainMessage, type SlackTurnFacts } from './brain-message.js';
import { withLateCount, withProgress, withSlackTools } from './brain-tools.js';
import type { Controls } from './controls.js';
import type { FilesIn } from './files-in.js';
import { readThread } from './history.js';
import type { MessageAt } from './message.js';
import { isGone, mirror } from './mirror.js';
import { isOutage, type Outages } from './outage.js';
import type { SlackRecord } from './records.js';
import type { Surfaces } from './surfaces.js';
import type { ThreadPast } from './thread-past.js';
import type { Threads } from './threads.js';
import type { TurnRecords } from './turn-record.js';
import { cutEnd, type TurnEnd, type TurnRunner } from './turn.js';

export interface TurnFlowDeps {
  readonly options: SlackOptions;
  readonly inner: FrameworkAdapter;
  readonly agentName: () => string;
  readonly rest: BandRest;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly past: ThreadPast;
  readonly turns: TurnRecords;
  readonly runner: TurnRunner;
  readonly controls: Controls;
  readonly outages: Outages;
  readonly surfaces: Surfaces;
  /** Tries of one record before it is given up. */
  readonly tries: number;
  readonly out: SlackOut;
  readonly filesIn: (installation: Installation) => FilesIn;
  /** The room's own tools for one turn. */
  readonly roomTools: (roomId: string, turn: Turn) => AgentToolsProtocol;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly newReference: () => string;
}

type Record_ = QueueRecord<SlackRecord>;

const LONGEST_DRAWING_MS = 5_000;
const PAUSED_LOOK_MS = 3_600_000;
const MAX_HELD = 10_000;

/** A message that is about to have its turn, and everything found out on the way. */
export interface TurnAt {
  readonly at: MessageAt;
  readonly message: SlackMessage;
  /** The message as it stands by now; null when it was deleted. */
  readonly latest: () => Promise<SlackMessage | null>;
  readonly thread: ThreadRef;
  readonly binding: Binding;
  readonly isNew: boolean;
  readonly people: readonly string[];
}

export interface TurnFlow {
  /** Runs the turn of a message whose room is open, and says what becomes of its record. */
  take(where: TurnAt, record: QueueRecord<SlackRecord>, signal: AbortSignal): Promise<Outcome>;
  /** The conversation is stopped: the message waits, and its author is told. */
  hold(thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<Outcome>;
  /** The message comes to no good end: its author and the room are told, and it may be tried again by hand. */
  giveUp(error: Error, thread: ThreadRef, record: QueueRecord<SlackRecord>): Promise<Outcome>;
}

/** What the brain is told → its turn → what the end of the turn means for record, thread and room. */
export function createTurnFlow(deps: TurnFlowDeps): TurnFlow {
  const { options, inner, bindings, threads, turns, runner, controls, out, clock, log } = deps;
  const relays = isOutsideBrain(inner);
  const lateCalls = deps.metrics.counter('slack_late_calls_total', 'Tool calls refused since their turn had ended', [
    'app',
  ]);

  /** Notices of held messages that were queued: a message that still waits makes no second button. */
  const held = new BoundedMap<string, true>(MAX_HELD);

  const holdPaused = async (thread: ThreadRef, record: Record_): Promise<Outcome> => {
    // A message that is stopped a second time is told so a second time.
    const { pausedAt } = await threads.get(slackKey(thread));
    const id = `held:${record.id}:${pausedAt}`;
    if (thread.askerId !== null && !held.has(id)) {
      held.set(id, true);
      await out.ephemeral(thread, thread.askerId, {
        id,
        text: 'This conversation is stopped. Your message waits until somebody resumes it.',
        buttons: [await controls.button('resume', thread)],
      });
    }
    return { kind: 'wait', afterMs: PAUSED_LOOK_MS };
  };

  const takeTurn = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<Outcome> => {
    const { thread, binding, message } = where;
    const { ackReaction } = options;
    if (record.maybeDelivered && (await turns.hasShown(record.id))) {
      const markdown = 'I was interrupted while answering this.';
      const retry = await controls.button('retry', thread, record.body);
      await out.reply(thread, { id: `${record.id}:cut-off`, markdown, kind: 'error', buttons: [retry] });
      // The turn that put it there ended with its process.
      if (ackReaction !== undefined) await mark(thread, message.ts, ackReaction, false);
      return { kind: 'done' };
    }
    const key = slackKey(thread);
    const running = runner.begin(key, { by: message.user ?? '', ts: message.ts }, signal);
    try {
      // From here on an edit or a deletion finds the turn running; what came just before is seen now.
      const latest = await where.latest();
      if (!latest) return { kind: 'done' };
      if ((await threads.get(key)).paused) return await holdPaused(thread, record);
      if (ackReaction !== undefined) await mark(thread, message.ts, ackReaction, true);
      const end = await runTurn({ ...where, message: latest }, record, running.signal).catch((error: unknown) => {
        // Cut before the brain had it: that is how the turn ends, and no failure.
        if (running.signal.aborted) return cutEnd(running.signal);
        throw error;
      });
      return await settle(end, thread, binding, record, signal);
    } finally {
      running.end();
      if (ackReaction !== undefined) await mark(thread, message.ts, ackReaction, false);
    }
  };

  /** The waiting reaction is a courtesy: its failure must not bring a finished turn back. */
  const mark = async (thread: ThreadRef, ts: string, emoji: string, on: boolean): Promise<void> => {
    await out.react(thread, ts, emoji, on).catch((error: unknown) => {
      log.warn({ err: error, app: thread.slug, on }, 'the waiting reaction could not be written');
    });
  };

  const runTurn = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<TurnEnd> => {
    const { at, message, thread, binding, isNew, people } = where;
    const { installation, identity } = at;
    const facts = await brainFacts(where, record, signal);
    const gone = !relays && options.mirrorSlackContext ? await mirror(facts, deps, signal) : null;
    if (gone) return { kind: 'failed', error: gone };
    const isFollowUp =
      message.thread_ts !== null && message.thread_ts !== undefined && message.thread_ts !== message.ts;
    const past =
      relays || !isFollowUp
        ? { messages: [], isMissing: false }
        : await readThread(
            installation,
            identity,
            deps.agentName(),
            { key: slackKey(thread), channel: thread.channel, threadTs: thread.threadTs, trigger: message },
            deps.past,
            { clock, log },
            signal,
          );
    const turn = new Turn({ signal, log });
    const withSlack = withSlackTools(deps.roomTools(binding.roomId, turn), {
      out,
      thread,
      turnId: record.id,
      mentions: mentionRule(options, thread, people),
      show: () => turns.show(record.id),
      ...(options.mirrorReplies ? { mirror: (text: string) => mirrorReply(binding, text) } : {}),
      readFile: async (fileId, offset) =>
        (await deps.filesIn(installation).read(fileId, offset)) ?? 'Error: this file was not taken, or is gone',
    });
    const progress =
      options.showToolProgress && !relays
        ? out.progress(thread, record.id, [
            await controls.button('stop', thread),
            await controls.button('interrupt', thread),
          ])
        : null;
    const status = relays ? null : out.status(thread);
    status?.set();
    try {
      return await runner.run({
        key: slackKey(thread),
        slug: thread.slug,
        message: toBrainMessage(facts, clock.now()),
        tools: withLateCount(progress ? withProgress(withSlack, progress) : withSlack, () => {
          lateCalls.inc({ app: thread.slug });
        }),
        turn,
        history: past.messages,
        note: contextNote(facts.channelLabel, facts.bandHandle, past.isMissing),
        isNew,
        roomId: binding.roomId,
        signal,
      });
    } finally {
      status?.clear();
      if (progress) await drawn(progress);
    }
  };

  /** The last drawing of the progress message; Slack may put it off for long, which holds up nobody. */
  const drawn = async (progress: TurnProgress): Promise<void> => {
    await withDeadline(clock, LONGEST_DRAWING_MS, null, () => progress.finish()).catch((error: unknown) => {
      log.debug({ err: error }, 'a progress message is drawn later');
    });
  };

  const brainFacts = async (where: TurnAt, record: Record_, signal: AbortSignal): Promise<SlackTurnFacts> => {
    const { at, message, thread, binding } = where;
    const { directory } = at.installation;
    const own = { userId: at.identity.botUserId, teamId: at.identity.teamId };
    const lookedUp = Promise.all([
      directory.namesFor(message, own),
      message.user ? directory.user(message.user) : null,
      directory.channel(thread.channel),
      directory.channelLabel(thread.channel),
      deps.filesIn(at.installation).take(message, signal),
    ]);
    const [names, sender, channel, channelLabel, files] = await abortable(lookedUp, signal);
    return {
      binding,
      message,
      markdown: [messageToMarkdown(message, names), files.inline].filter(Boolean).join('\n\n'),
      sender,
      channelLabel,
      channelName: channel?.name ?? null,
      channelType: at.event.channelType ?? channel?.kind ?? null,
      retryNum: record.body.retryNum,
      files: files.listed.map((file) => ({ ...file })),
      bandHandle: message.user ? (options.identity.map[message.user] ?? null) : null,
      context: deps.surfaces.contextOf(thread.slug, {
        channel: thread.channel,
        threadTs: thread.threadTs,
        user: message.user ?? null,
        own: message.app_context ?? null,
      }),
      delivery: record.id,
      // Slack's clock is right where this machine's is fast: what came of the message is not older than it.
      acceptedAt: Math.min(record.putAt, Number(message.ts) * 1_000),
      maybeDelivered: record.maybeDelivered,
    };
  };

  /** What the agent answers is copied into the room as well; a brain reads no thoughts, so it does not read its own words twice (S-129). */
  const mirrorReply = (binding: Binding, markdown: string): Promise<void> =>
    copyReply(deps.rest, binding, markdown, log);

  /** What the end of a turn means for its record, its thread and its room. */
  const settle = async (
    end: TurnEnd,
    thread: ThreadRef,
    binding: Binding,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    switch (end.kind) {
      case 'no_reply':
      case 'settled':
        return { kind: 'done' };
      case 'replied':
      case 'silent':
        // An answer that went to the room alone is none to the person who asked here (S-086).
        if (options.silentTurn === 'notice' && !(await turns.hasShown(record.id))) {
          const markdown = 'I have nothing to add to this.';
          await out.reply(thread, { id: `${record.id}:silent`, markdown, kind: 'notice' });
        }
        return { kind: 'done' };
      case 'cut':
        return await settleCut(end, thread, record, signal);
      case 'failed':
        return await settleFailed(end.error, thread, binding, record);
    }
  };

  const settleCut = async (
    { cut }: Extract<TurnEnd, { kind: 'cut' }>,
    thread: ThreadRef,
    record: Record_,
    signal: AbortSignal,
  ): Promise<Outcome> => {
    switch (cut.reason) {
      case 'shutdown':
        throw toError(signal.reason ?? cut);
      case 'timeout':
        return await giveUp('This took too long, so I stopped.', cut, thread, record);
      case 'stop':
        // Nothing of it was shown: it waits with the others and runs again on resume.
        if (!(await turns.hasShown(record.id))) return { kind: 'wait', afterMs: PAUSED_LOOK_MS };
        await out.reply(thread, {
          id: `${record.id}:stopped`,
          markdown: 'This was stopped before it was finished.',
          kind: 'error',
          buttons: [await controls.button('retry', thread, record.body)],
        });
        return { kind: 'done' };
      case 'interrupt':
      case 'deleted':
        return { kind: 'done' };
    }
  };

  const settleFailed = async (error: Error, thread: ThreadRef, binding: Binding, record: Record_): Promise<Outcome> => {
    if (isGatewayError(error, 'BAND_ROOM_STOPPED')) {
      await threads.change(slackKey(thread), (state) => ({ ...state, paused: true, pausedAt: clock.now() }));
      return await holdPaused(thread, record);
    }
    const hasShown = await turns.hasShown(record.id);
    if (isGatewayError(error, 'BAND_NOT_FOUND') && !hasShown && (await isGone(deps.rest, binding.roomId))) {
      await bindings.forget(binding);
      const markdown = 'The room behind this conversation is gone. I go on in a new one.';
      await out.reply(thread, { id: `${record.id}:new-room`, markdown, kind: 'notice' });
      return { kind: 'wait', afterMs: 0 };
    }
    if (isGatewayError(error) && !hasShown) {
      // The relay's message is kept until it can be posted; another brain's tries are numbered (S-040).
      if (isOutage(error) && relays && error.code !== 'BAND_BAD_ANSWER')
        return await deps.outages.wait(error, thread, record);
      if (isOutage(error)) await deps.outages.tell(thread, record);
      if ((isOutage(error) && record.failures + 1 < deps.tries) || isStoreFault(error)) throw error;
    }
    return await giveUp('I could not finish this.', error, thread, record, binding);
  };

  const giveUp = async (
    text: string,
    error: Error,
    thread: ThreadRef,
    record: Record_,
    binding: Binding | null = bindings.find(thread),
  ): Promise<Outcome> => {
    const reference = deps.newReference();
    log.error({ err: error, reference, app: thread.slug, roomId: binding?.roomId }, 'a Slack turn failed');
    await out.reply(thread, {
      id: `${record.id}:failed`,
      markdown: `${text} Reference: ${reference}`,
      kind: 'error',
      buttons: [await controls.button('retry', thread, record.body)],
    });
    if (binding) {
      const metadata = { slack_ref: reference, slack_error: isGatewayError(error) ? error.code : error.name };
      await deps.rest
        .postEvent(binding.roomId, { content: text, messageType: 'error', metadata })
        .catch((failure: unknown) => {
          log.warn({ err: failure, roomId: binding.roomId }, 'the room could not be told of a failed Slack turn');
        });
    }
    return { kind: 'dead', code: isGatewayError(error) ? error.code : 'BRAIN_FAILED', reason: error.message };
  };

  return {
    take: takeTurn,
    hold: holdPaused,
    giveUp: (error, thread, record) => giveUp('I could not finish this.', error, thread, record),
  };
}

function mentionRule(options: SlackOptions, thread: ThreadRef, people: readonly string[]): MentionRule {
  const { outbound, allowBroadcast, allowUserGroups } = options.mentions;
  return {
    users: outbound === 'thread' ? people : outbound,
    groups: allowUserGroups,
    broadcast: allowBroadcast,
    channels: [thread.channel],
  };
}
