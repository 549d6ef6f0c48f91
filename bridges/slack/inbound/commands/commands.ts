import type { Clock } from '../../../../src/base/clock.js';
import type { QueueRecord } from '../../../../src/store/queue-records.js';
import { ANY_TEAM, slackKey } from '../../conversation.js';
import type { Installation } from '../../installations.js';
import { permalinkOf } from '../../outbound/compose.js';
import type { ControlButton, SlackOut, ThreadRef } from '../../outbound/port.js';
import type { SlackCommandDelivery } from '../../parse.js';
import type { SlackOptions } from '../../settings.js';
import type { SlackIdentity } from '../../web-methods.js';
import type { Asks, Opening } from '../asks.js';
import type { Binding, Bindings } from '../bindings.js';
import { responseWay, type Controls, type SteeringAction } from '../controls.js';
import { isDenied } from '../gate.js';
import type { SlackRecord } from '../records.js';
import type { ThreadState, Threads } from '../threads.js';
import type { TurnRunner } from '../turn.js';
import { readCommandLine, type CommandWord } from './words.js';

export interface CommandDeps {
  readonly options: Pick<SlackOptions, 'slashCommand' | 'threadFollowUps'>;
  readonly agentName: string;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly runner: TurnRunner;
  readonly controls: Controls;
  readonly asks: Asks;
  readonly out: SlackOut;
  readonly clock: Clock;
}

/** A command that is on disk and was answered at once; what more there is to say goes to its own address. */
export type CommandHandler = (
  delivery: SlackCommandDelivery,
  installation: Installation,
  identity: SlackIdentity,
  record: QueueRecord<SlackRecord>,
  signal: AbortSignal,
) => Promise<void>;

/** A conversation in which the person wrote lately. */
interface LiveThread {
  readonly binding: Binding;
  readonly state: ThreadState;
}

const LIVE_MS = 24 * 3_600_000;
/** Conversations of a channel that are looked at, and of those how many are listed. */
const MAX_LOOKED_AT = 500;
const MAX_LISTED = 5;

/** What steers a conversation, for which of them it is offered, and what the list says above them. */
const STEERING = {
  stop: { action: 'stop', offered: ({ paused }) => !paused, title: 'Which one shall I stop?' },
  play: { action: 'resume', offered: ({ paused }) => paused, title: 'Which one shall go on?' },
  interrupt: { action: 'interrupt', offered: (_state, runs) => runs, title: 'Which one shall I interrupt?' },
  mute: { action: 'mute', offered: ({ muted }) => !muted, title: 'Where shall I wait to be mentioned?' },
  unmute: { action: 'unmute', offered: ({ muted }) => muted, title: 'Where shall I answer again?' },
} as const satisfies Partial<
  Record<
    CommandWord,
    {
      readonly action: SteeringAction;
      readonly offered: (state: ThreadState, runs: boolean) => boolean;
      readonly title: string;
    }
  >
>;

const NONE = 'There is no such conversation of yours here from the last day.';

/** The slash command (S-169). Slack names no thread with it, so what is about one lists those of its author. */
export function createCommands(deps: CommandDeps): CommandHandler {
  const { options, bindings, threads, runner, controls, asks, out, clock } = deps;

  return async (delivery, installation, identity, record, signal) => {
    const { word, rest } = readCommandLine(delivery.text);
    if (options.slashCommand === 'off' || word === null || word === 'help') return;
    const place: ThreadRef = {
      slug: installation.app.slug,
      team: delivery.teamId ?? identity.teamId,
      channel: delivery.channel,
      threadTs: '',
      askerId: delivery.userId,
    };
    const answer = async (text: string, buttons: readonly ControlButton[] = []): Promise<void> => {
      const response = responseWay(delivery.responseUrl, record.putAt);
      await out.ephemeral(place, delivery.userId, { id: `${record.id}:answer`, text, buttons, response });
    };
    if (await refuses(delivery, installation, identity)) {
      await answer('I am not set up to answer you here.');
      return;
    }
    switch (word) {
      case 'ask': {
        if (rest === '') return;
        const opening = { ...openingOf(delivery), does: 'asks:', words: rest, about: null };
        const opened = await asks.ask(opening, delivery, identity, installation, record, signal);
        if (opened.kind === 'refused') await answer(opened.why);
        return;
      }
      case 'new': {
        const why = await begin(delivery, place, installation, record, signal);
        if (why !== null) await answer(why);
        return;
      }
      case 'status':
      case 'link': {
        const live = await liveThreads(place, delivery.userId);
        const lines = live.map((one) => lineOf(one, identity, word === 'status'));
        const head = word === 'status' ? `I am ${deps.agentName}. ` : '';
        await answer(lines.length === 0 ? `${head}${NONE}` : [`${head}Your conversations here:`, ...lines].join('\n'));
        return;
      }
      case 'stop':
      case 'play':
      case 'interrupt':
      case 'mute':
      case 'unmute': {
        const { action, offered, title } = STEERING[word];
        const live = (await liveThreads(place, delivery.userId)).filter(({ binding, state }) =>
          offered(state, runner.runs(slackKey(binding.thread))),
        );
        if (live.length === 0) {
          await answer(NONE);
          return;
        }
        const lines = live.map((one, index) => lineOf(one, identity, true, `${index + 1}.`));
        const buttons: ControlButton[] = [];
        for (const [index, { binding }] of live.entries()) {
          const button = await controls.button(action, asSeenBy(delivery.userId, binding));
          buttons.push(live.length === 1 ? button : { ...button, label: `${titleOf(word)} ${index + 1}` });
        }
        await answer([title, ...lines].join('\n'), buttons);
      }
    }
  };

  /** Opens a thread, with a room behind it, so that what is written there needs no mention. @returns why it could not */
  async function begin(
    delivery: SlackCommandDelivery,
    place: ThreadRef,
    installation: Installation,
    record: QueueRecord<SlackRecord>,
    signal: AbortSignal,
  ): Promise<string | null> {
    const free = options.threadFollowUps !== 'mention' || delivery.channel.startsWith('D');
    const does = free ? 'begins a conversation. Write in this thread.' : 'begins a conversation. Mention me in it.';
    const opened = await asks.post({ ...openingOf(delivery), does, words: '' }, installation, record, signal);
    if (opened.kind === 'refused') return opened.why;
    const thread = { ...place, threadTs: opened.threadTs };
    const { userId, enterpriseId } = delivery;
    const askedAt = Number(opened.ts) * 1_000;
    await bindings.open({ ...thread, enterpriseId, channelType: null, userId, askedAt }, signal);
    await threads.note(slackKey(thread), { ts: opened.ts, user: userId, isBot: false }, clock.now());
    return null;
  }

  /** Conversations of the channel in which the person wrote within a day, the latest first. */
  async function liveThreads({ slug, team, channel }: ThreadRef, userId: string): Promise<LiveThread[]> {
    const here = [...bindings.ofApp(slug)]
      .filter(({ thread }) => thread.channel === channel && (thread.team === team || thread.team === ANY_TEAM))
      .sort((a, b) => (a.thread.threadTs < b.thread.threadTs ? 1 : -1))
      .slice(0, MAX_LOOKED_AT);
    const live: LiveThread[] = [];
    for (const binding of here) {
      const state = await threads.get(slackKey({ ...binding.thread, team }));
      if (state.people.includes(userId) && state.touchedAt > clock.now() - LIVE_MS) {
        live.push({ binding: { ...binding, thread: { ...binding.thread, team } }, state });
      }
    }
    return live.sort((a, b) => b.state.touchedAt - a.state.touchedAt).slice(0, MAX_LISTED);
  }

  /** Who takes part in a conversation may steer it, unless somebody else's turn runs: that one is theirs to stop. */
  function asSeenBy(userId: string, { thread }: Binding): ThreadRef {
    const startedBy = runner.startedBy(slackKey(thread));
    return { ...thread, askerId: startedBy === null || startedBy === userId ? userId : null };
  }

  function lineOf({ binding, state }: LiveThread, { teamUrl }: SlackIdentity, withState: boolean, mark = '•'): string {
    const { thread } = binding;
    const age = `last written in ${ago(clock.now() - state.touchedAt)}`;
    const link = permalinkOf(teamUrl, thread.channel, thread.threadTs, null);
    const named = link === null ? age : `[${age}](${link})`;
    if (!withState) return `${mark} ${named}`;
    const runs = runner.runs(slackKey(thread));
    const states = [state.paused ? 'stopped' : runs ? 'working' : 'waiting', ...(state.muted ? ['muted'] : [])];
    return `${mark} ${named}: ${states.join(', ')}`;
  }
}

const openingOf = ({ channel, userId }: SlackCommandDelivery): Pick<Opening, 'channel' | 'threadTs' | 'userId'> => ({
  channel,
  threadTs: null,
  userId,
});

/** Whether the settings keep this person from talking to the agent in this channel. */
export async function refuses(
  { channel, userId, teamId }: { channel: string | null; userId: string; teamId: string | null },
  { app, directory }: Installation,
  { teamId: ownTeam }: SlackIdentity,
): Promise<boolean> {
  const asksWho = [...app.allow, ...app.deny].some((mark) => mark === 'guests' || mark === 'ext');
  const person = asksWho ? await directory.user(userId) : null;
  const isStranger = person?.isStranger ?? (teamId !== null && teamId !== ownTeam);
  const facts = { channel: channel ?? '', user: userId, authorTeam: person?.teamId ?? teamId };
  return isDenied({ ...facts, isGuest: person?.isGuest ?? false, isStranger }, app);
}

const titleOf = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A stretch of time as people say it. */
function ago(ms: number): string {
  if (ms < 2 * MINUTE_MS) return 'just now';
  const [count, unit] = ms < 2 * HOUR_MS ? [ms / MINUTE_MS, 'minutes'] : [ms / HOUR_MS, 'hours'];
  return `${Math.floor(count)} ${unit} ago`;
}
