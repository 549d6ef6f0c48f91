import { hasVisibleText } from '../../src/core/visible-text.js';
import { backoffMs } from '../../src/base/backoff.js';
import type { Background } from '../../src/base/async.js';
import type { Clock } from '../../src/base/clock.js';
import { isGatewayError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import { withoutMentions } from '../../src/adapters/relay-text.js';
import type { AgentInput } from '../../src/core/agent-input.js';
import type { Outlet } from '../../src/core/outside.js';
import type { AgentToolsProtocol } from '../../src/core/tools.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { slackKey } from './conversation.js';
import type { AppFiles } from './inbound/app-files.js';
import type { Binding, Bindings } from './inbound/bindings.js';
import { contextNote, copyReply } from './inbound/brain-message.js';
import { withProgress, withSlackTools } from './inbound/brain-tools.js';
import type { Controls } from './inbound/controls.js';
import { isOutage } from './inbound/outage.js';
import type { Threads } from './inbound/threads.js';
import type { TurnRunner } from './inbound/turn.js';
import type { Installation } from './installations.js';
import type { SlackOut, ThreadRef, ThreadStatus } from './outbound/port.js';
import { createOutlet } from './outlet.js';
import type { SlackOptions } from './settings.js';

export interface RoomSideDeps {
  readonly options: SlackOptions;
  readonly rest: BandRest;
  readonly installations: ReadonlyMap<string, Installation>;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly runner: TurnRunner;
  readonly controls: Controls;
  readonly files: AppFiles;
  readonly out: SlackOut;
  /** The brain speaks by its outlet whenever it likes, and needs no Slack tools. */
  readonly relays: boolean;
  readonly background: Background;
  readonly newId: () => string;
  /** Aborts when the bridge has stopped. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What comes from Band: a room's messages to the brain, its answers at any time, signals to steer. */
export interface RoomSide {
  readonly outlet: Outlet;
  /** How a message of the room reaches the brain, when the room stands for a thread; null when it does not. */
  placeOf(input: AgentInput): Promise<RoomPlace | null>;
  roomClosed(roomId: string): void;
  /** Band asks to interrupt, stop or resume, in one room or in all of them (S-166). */
  control(roomId: string | null, mode: 'interrupt' | 'stop' | 'play'): void;
}

export interface RoomPlace {
  /** Stands before the participants' note; empty for a brain that speaks by its outlet. */
  readonly note: string;
  run(work: (tools: AgentToolsProtocol) => Promise<void>): Promise<void>;
}

const RESOLVE_BACKOFF = { baseMs: 1_000, maxMs: 30_000 } as const;

const refOf = ({ thread }: Binding): ThreadRef => ({ ...thread, askerId: null });

/** Room → its thread → the brain with that thread's tools. */
export function createRoomSide(deps: RoomSideDeps): RoomSide {
  const { options, installations, bindings, threads, runner, controls, files, out, clock, log } = deps;
  const statuses = new Map<string, ThreadStatus>();

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

  /** A turn that a message of the room begins: with Slack's tools, and a status in the thread meanwhile. */
  const inThread =
    (binding: Binding, people: readonly string[], installation: Installation, { tools, msg }: AgentInput) =>
    async (work: (tools: AgentToolsProtocol) => Promise<void>): Promise<void> => {
      const thread = refOf(binding);
      const turnId = `band:${msg.id}`;
      const said = withoutMentions(msg.content);
      if (options.relayRoomMessages === 'mentions' && hasVisibleText(said)) {
        await out.reply(thread, {
          id: `peer:${msg.id}`,
          markdown: said,
          kind: 'relay',
          speaker: { name: msg.senderName ?? msg.senderType, icon: null },
        });
      }
      const slack = withSlackTools(tools, {
        out,
        thread,
        turnId,
        mentions: { users: people, groups: false, broadcast: false, channels: [thread.channel] },
        show: () => Promise.resolve(),
        ...(options.mirrorReplies ? { mirror: (text: string) => copyReply(deps.rest, binding, text, log) } : {}),
        readFile: async (fileId, offset) =>
          (await files.of(installation).read(fileId, offset)) ?? 'Error: this file was not taken, or is gone',
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
    };

  return {
    outlet: createOutlet({ bindings, threads, out, statuses, options, signal: deps.signal }),
    async placeOf(input) {
      const { roomId, signal, tools } = input;
      const binding = await resolved(roomId, signal);
      if (!binding) return null;
      const installation = installations.get(binding.thread.slug);
      if (!installation) {
        log.warn({ app: binding.thread.slug, roomId }, 'a room stands for a thread of an app that is not configured');
        return null;
      }
      if (deps.relays) return { note: '', run: (work) => work(tools) };
      const { people } = await threads.get(slackKey(binding.thread));
      const note = contextNote(await installation.directory.channelLabel(binding.thread.channel));
      return { note, run: inThread(binding, people, installation, input) };
    },
    roomClosed(roomId) {
      statuses.get(roomId)?.clear();
      statuses.delete(roomId);
    },
    control(roomId, mode) {
      const action = mode === 'play' ? 'resume' : mode;
      const asked =
        roomId === null
          ? [...installations.keys()].flatMap((slug) => [...bindings.ofApp(slug)])
          : [bindings.ofRoom(roomId)];
      deps.background.run(async () => {
        for (const binding of asked) {
          if (!binding) continue;
          // A signal for all rooms is about what runs, or what waits for it.
          const key = slackKey(binding.thread);
          const concerned = roomId !== null || (mode === 'play' ? (await threads.get(key)).paused : runner.runs(key));
          if (concerned) await controls.act(action, refOf(binding), null, null, deps.newId());
        }
      });
    },
  };
}
