import { onTestFinished } from 'vitest';
import { silentLogger, type Logger } from '../../../../src/base/log.js';
import { noMetrics, type Labels, type Metrics } from '../../../../src/base/metrics.js';
import { parseOptions } from '../../../../src/config/setting.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';
import { createManualClock, type ManualClock } from '../../../../src/testing/manual-clock.js';
import { resolveApps } from '../../../../bridges/slack/apps.js';
import { createSlackClient, type SlackClient } from '../../../../bridges/slack/client.js';
import { createGuardedClient } from '../../../../bridges/slack/guarded-client.js';
import type { OutInstallation } from '../../../../bridges/slack/outbound/faults.js';
import type { ReplyDraft, SlackOut, ThreadRef } from '../../../../bridges/slack/outbound/port.js';
import { createSlackOut, type RoomError, type SlackOutDeps } from '../../../../bridges/slack/outbound/slack-out.js';
import { createThrottledClient } from '../../../../bridges/slack/outbound/throttled-client.js';
import { slackSettings, type SlackOptionsInput } from '../../../../bridges/slack/settings.js';
import { startAcme, type Acme } from '../../../support/slack/acme.js';
import type { AppSpec, InstallSpec } from '../../../support/slack/app-specs.js';

export interface OutLabOptions {
  readonly store?: StateStore;
  readonly settings?: SlackOptionsInput;
  readonly app?: AppSpec;
  readonly install?: InstallSpec;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  readonly persona?: { readonly name: string; readonly icon: string | null };
  readonly surface?: OutInstallation['app']['surface'];
  /** What the installation says its scopes are; default: those of the double. */
  readonly scopes?: readonly string[] | null;
  readonly hooks?: Partial<Pick<SlackOutDeps, 'roomError' | 'threadMoved' | 'replies' | 'unreachable' | 'refresh'>>;
  readonly rates?: boolean;
  readonly timeoutMs?: number;
  /** From 0, every wait at its shortest, to 1; default in the middle. */
  readonly jitter?: number;
  /** The double's chance for faults; default Math.random. */
  readonly random?: () => number;
}

/** The real writing side against the double, on a clock that stands still. */
export interface OutLab extends Acme {
  readonly clock: ManualClock;
  readonly store: StateStore;
  readonly out: SlackOut;
  readonly roomErrors: (RoomError & { readonly thread: ThreadRef })[];
  readonly moved: { readonly thread: ThreadRef; readonly newTs: string }[];
  readonly unreachable: ThreadRef[];
  /** A thread that a person has opened in #general. */
  readonly thread: ThreadRef;
  readonly installation: { current: OutInstallation | null };
  /** A client that has learned nothing yet, as after a restart. */
  freshClient(): SlackClient;
  /** Opens another writing side on the same store, as after a restart. */
  reopen(): Promise<SlackOut>;
  reply(markdown: string, more?: Partial<ReplyDraft>): ReturnType<SlackOut['reply']>;
  /** Lets `ms` pass in steps, with real I/O done in between. */
  pass(ms: number, stepMs?: number): Promise<void>;
  /** What the bot wrote into the thread, as shown. */
  shown(): string[];
}

let ids = 0;

export async function openOut(options: OutLabOptions = {}): Promise<OutLab> {
  const clock = createManualClock();
  const acme = await startAcme({
    clock,
    rates: options.rates ?? true,
    ...(options.random ? { random: options.random } : {}),
    ...(options.app ? { app: options.app } : {}),
    ...(options.install ? { install: options.install } : {}),
  });
  const { slack, alice, general } = acme;
  const store = options.store ?? createMemoryStore(clock);
  const said = alice.says('#general', '@gateway hello');
  const thread: ThreadRef = {
    slug: 'main',
    team: acme.team.id,
    channel: general.id,
    threadTs: said.ts,
    askerId: alice.id,
  };
  const settings = parseOptions(
    slackSettings,
    { botToken: acme.botToken, appToken: 'xapp-1', ...options.settings },
    'lab',
  );
  const [app] = resolveApps(settings);
  const metrics = options.metrics ?? noMetrics;
  const raw = createSlackClient({
    token: acme.botToken,
    slackApiUrl: slack.apiUrl,
    clock,
    metrics,
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  });
  /** Calls of the writing side that was opened last: what a former one waits for is nobody's affair. */
  let pending = { calls: 0 };
  const counted: SlackClient = {
    ...raw,
    call: (method, args, callOptions) => {
      const own = pending;
      own.calls += 1;
      return raw.call(method, args, callOptions).finally(() => (own.calls -= 1));
    },
  };
  const freshClient = () =>
    createGuardedClient(createThrottledClient(counted, { clock, metrics, random: () => 0.5 }), {
      slug: 'main',
      clock,
      log: options.log ?? silentLogger,
    });
  const installation: OutLab['installation'] = {
    current: {
      client: freshClient(),
      app: {
        ...app!,
        ...(options.persona ? { persona: options.persona } : {}),
        surface: options.surface === undefined ? 'assistant' : options.surface,
      },
      teamUrl: 'https://acme.slack.com/',
      botUserId: acme.bot.botUserId,
      scopes: options.scopes === undefined ? [...acme.bot.scopes] : options.scopes,
    },
  };
  const roomErrors: OutLab['roomErrors'] = [];
  const moved: OutLab['moved'] = [];
  const unreachable: ThreadRef[] = [];
  const opened: SlackOut[] = [];
  const open = async () => {
    const out = await createSlackOut({
      store,
      prefix: 'slack/test',
      clock,
      log: options.log ?? silentLogger,
      metrics,
      random: () => options.jitter ?? 0.5,
      options: { ...settings, slackApiUrl: slack.apiUrl },
      installation: () => installation.current,
      roomError: (about, error) => {
        roomErrors.push({ ...error, thread: about });
        return Promise.resolve();
      },
      threadMoved: (about, newTs) => {
        moved.push({ thread: about, newTs });
        return Promise.resolve();
      },
      unreachable: (about) => {
        unreachable.push(about);
        return Promise.resolve();
      },
      ...options.hooks,
    });
    opened.push(out);
    return out;
  };
  onTestFinished(async () => {
    for (const out of opened) {
      const stopped = out.stop(0);
      await clock.advance(1);
      await stopped;
    }
    raw.close();
    await slack.stop();
    slack.check();
  });
  const out = await open();
  await out.start();
  return {
    ...acme,
    clock,
    store,
    out,
    roomErrors,
    moved,
    unreachable,
    thread,
    installation,
    freshClient,
    reopen: async () => {
      pending = { calls: 0 };
      return await open();
    },
    reply: (markdown, more = {}) => out.reply(thread, { id: `reply-${(ids += 1)}`, markdown, kind: 'reply', ...more }),
    async pass(ms, stepMs = 250) {
      for (let left = ms; left > 0; left -= stepMs) {
        await clock.advance(Math.min(stepMs, left));
        await ioSettled(acme, () => pending.calls);
      }
    },
    shown: () => slack.botMessages(general, said.ts).map((one) => one.shown),
  };
}

const QUIET_ROUNDS = 4;
const LONGEST_IO_MS = 8_000;

/** No call is on its way, and what its answer led to has happened. */
async function ioSettled({ slack }: Acme, pending: () => number): Promise<void> {
  const begun = performance.now();
  for (let quiet = 0; quiet < QUIET_ROUNDS;) {
    const before = slack.calls().length;
    await new Promise((resolve) => setImmediate(resolve));
    const busy = pending() > 0 || slack.web.inFlight > 0 || slack.calls().length !== before;
    quiet = busy ? 0 : quiet + 1;
    if (performance.now() - begun > LONGEST_IO_MS) throw new Error('calls to the double do not end');
  }
}

/** Metrics that can be read back. */
export function recordedMetrics() {
  const counted: { name: string; labels: Labels; value: number }[] = [];
  const note =
    (name: string) =>
    (labels: Labels = {}, value = 1) => {
      counted.push({ name, labels, value });
    };
  const metrics: Metrics = {
    counter: (name) => ({ inc: note(name) }),
    gauge: (name) => ({
      set: (labels, value) => {
        note(name)(labels, value);
      },
    }),
    histogram: (name) => ({
      observe: (labels, value) => {
        note(name)(labels, value);
      },
    }),
  };
  return { metrics, counted, of: (name: string) => counted.filter((one) => one.name === name) };
}
