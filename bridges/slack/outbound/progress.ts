import { z } from 'zod';
import { Background } from '../../../src/base/async.js';
import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Counter } from '../../../src/base/metrics.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import { judgeFault, type Reshape } from '../errors.js';
import { postMessage } from '../web-methods.js';
import { ownMetadata } from './compose.js';
import type { OutInstallation } from './faults.js';
import { digest } from './jobs.js';
import { lookUp } from './look-up.js';
import { LooseControls } from './loose-controls.js';
import { Newest } from './newest.js';
import type { ControlButton, ThreadRef, TurnProgress } from './port.js';
import { progressMessage, progressText, WRITE_TOOLS, type ProgressState, type ProgressTask } from './progress-view.js';

export interface ProgressDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  /** Where messages that are still shown as running are noted. */
  readonly prefix: string;
  readonly ambiguous: Counter;
  readonly enabled: boolean;
  readonly writeToolNames: readonly string[] | undefined;
  /** Ends what is under way at stop. */
  readonly signal: AbortSignal;
  /** Null while the place cannot be written to. */
  installation(thread: ThreadRef): OutInstallation | null;
  /** Where the thread's posts go; null: to the top level of the channel. */
  threadTs(thread: ThreadRef): string | null;
  /** Replies wait for this channel: they go first. */
  repliesWait(thread: ThreadRef): boolean;
  /** A message of ours has appeared in the thread. */
  posted(thread: ThreadRef): void;
}

const EDIT_GAP_MS = 1_500;
const SLOW_AFTER_MS = 120_000;
const MINUTE_MS = 60_000;
const FINAL_TRIES = 4;
const GIVE_WAY_MS = 1_000;
const MOST_WAITS = 60;
/** The reply itself is no task. */
const REPLY_TOOL = 'slack_send_message';
/** What a drawing can do without. */
const OTHER_FORMS: ReadonlySet<Reshape> = new Set<Reshape>(['mrkdwn', 'without-metadata']);
const MAX_OPEN = 1_000;

const openSchema = z.object({ slug: z.string(), team: z.string(), channel: z.string(), ts: z.string() });
type OpenMessage = z.infer<typeof openSchema>;

/** Progress messages: one per turn, drawn with the first tool call, edited with the newest state. Best effort. */
export class ProgressBoard {
  readonly #deps: ProgressDeps;
  readonly #background: Background;
  readonly #live = new Set<TurnMessage>();
  readonly #leftovers = new Map<string, OpenMessage>();

  constructor(deps: ProgressDeps) {
    this.#deps = deps;
    this.#background = new Background((error) => {
      deps.log.warn({ err: error }, 'progress message left behind');
    });
  }

  open(thread: ThreadRef, turnId: string, buttons: readonly ControlButton[]): TurnProgress {
    if (!this.#deps.enabled) return SILENT;
    const message = new TurnMessage(this.#deps, thread, turnId, buttons, () => this.#live.delete(message));
    this.#live.add(message);
    return message;
  }

  /** Notes what an earlier process left as running, before this one opens messages of its own. */
  async load(): Promise<void> {
    const { store, prefix } = this.#deps;
    for (const { key, value } of await store.range({ ...prefixRange(`${prefix}/`), limit: MAX_OPEN })) {
      this.#leftovers.set(key, readJson(value, openSchema));
    }
  }

  /** Closes what an earlier process left in a workspace, as soon as it can be written to. */
  closeLeftovers(slug: string, team: string): void {
    for (const [key, left] of this.#leftovers) {
      if (left.slug !== slug || left.team !== team) continue;
      this.#leftovers.delete(key);
      this.#background.run(async () => {
        await this.#closeLeftover(left);
        await this.#deps.store.batch([{ kind: 'delete', key }]);
      });
    }
  }

  async #closeLeftover({ slug, team, channel, ts }: OpenMessage): Promise<void> {
    const install = this.#deps.installation({ slug, team, channel, threadTs: ts, askerId: null });
    if (!install) return;
    const text = 'Interrupted by a restart';
    const blocks = [{ type: 'section', text: { type: 'mrkdwn', text: `*⏸ ${text}*` } }];
    try {
      await install.client.call('chat.update', { channel, ts, text, blocks }, { signal: this.#deps.signal });
    } catch (error) {
      // Refused for good: somebody has deleted it, or the channel is gone.
      if (!isGatewayError(error) || error.retryable) throw error;
    }
  }

  async settled(): Promise<void> {
    await this.#background.drain();
    for (const message of this.#live) await message.settled();
  }
}

const nothing = (): void => undefined;
const SILENT: TurnProgress = {
  toolStarted: nothing,
  toolEnded: nothing,
  controls: nothing,
  finish: () => Promise.resolve(),
};

class TurnMessage implements TurnProgress {
  readonly #deps: ProgressDeps;
  readonly #thread: ThreadRef;
  readonly #turnId: string;
  readonly #writeTools: ReadonlySet<string>;
  readonly #tasks = new Map<string, ProgressTask>();
  readonly #writer: Newest<ProgressState>;
  readonly #begunAt: number;
  readonly #over: () => void;
  #cancelSlow: CancelTimer;
  #buttons: readonly ControlButton[];
  #line: string | null = null;
  #finished = false;
  #ts: string | null = null;
  #givenUp = false;
  #controls: LooseControls | null = null;
  /** Forms that Slack has refused. */
  readonly #refused = new Set<Reshape>();

  constructor(
    deps: ProgressDeps,
    thread: ThreadRef,
    turnId: string,
    buttons: readonly ControlButton[],
    over: () => void,
  ) {
    this.#deps = deps;
    this.#thread = thread;
    this.#turnId = turnId;
    this.#buttons = buttons;
    this.#over = over;
    this.#writeTools = new Set(deps.writeToolNames ?? WRITE_TOOLS);
    this.#begunAt = deps.clock.now();
    this.#writer = new Newest(deps.clock, EDIT_GAP_MS, (state, isNewest) => this.#write(state, isNewest));
    this.#cancelSlow = deps.clock.after(SLOW_AFTER_MS, () => {
      this.#draw();
      this.#cancelSlow = deps.clock.every(MINUTE_MS, () => {
        this.#draw();
      });
    });
  }

  toolStarted(callId: string, name: string): void {
    if (name === REPLY_TOOL || this.#finished) return;
    this.#tasks.set(callId, { name, state: 'running', error: null });
    this.#draw();
  }

  toolEnded(callId: string, error: string | null = null): void {
    const task = this.#tasks.get(callId);
    if (!task || this.#finished) return;
    this.#tasks.set(callId, { ...task, state: error === null ? 'done' : 'failed', error });
    this.#draw();
  }

  controls(buttons: readonly ControlButton[], line?: string): void {
    this.#buttons = buttons;
    this.#line = line ?? this.#line;
    if (this.#ts !== null || this.#tasks.size > 0) this.#draw();
  }

  async finish(): Promise<void> {
    if (this.#finished) return;
    this.#finished = true;
    this.#cancelSlow();
    for (const [callId, task] of this.#tasks) {
      if (task.state === 'running') this.#tasks.set(callId, { ...task, state: 'left' });
    }
    if (this.#tasks.size > 0 || this.#ts !== null || this.#writer.isBusy) this.#writer.showNow(this.#state());
    await this.#writer.settled();
    this.#over();
  }

  settled(): Promise<void> {
    return this.#writer.settled();
  }

  #draw(): void {
    if (!this.#givenUp && !this.#finished) this.#writer.show(this.#state());
  }

  #state(): ProgressState {
    const minutes = Math.floor((this.#deps.clock.now() - this.#begunAt) / MINUTE_MS);
    return {
      tasks: [...this.#tasks.values()],
      writeTools: this.#writeTools,
      buttons: this.#buttons,
      line: this.#line,
      minutes: minutes * MINUTE_MS >= SLOW_AFTER_MS ? minutes : null,
      finished: this.#finished,
    };
  }

  /** Never throws: a drawing that fails disturbs nobody, and the next state is drawn anew. */
  async #write(state: ProgressState, isNewest: () => boolean): Promise<void> {
    const tries = state.finished ? FINAL_TRIES : 1;
    for (let attempt = 1; attempt <= tries && !this.#givenUp; attempt += 1) {
      if (await this.#tryWrite(state, isNewest)) break;
      if (attempt < tries) await this.#deps.clock.sleep(1_000 * attempt, this.#deps.signal).catch(nothing);
    }
    if (state.finished) await this.#close();
  }

  /** @returns whether this state needs no further try */
  async #tryWrite(state: ProgressState, isStillWanted: () => boolean): Promise<boolean> {
    const { log, signal } = this.#deps;
    const install = this.#deps.installation(this.#thread);
    if (!install) return true;
    const { channel } = this.#thread;
    const message = this.#refused.has('mrkdwn') ? progressText(state) : progressMessage(state);
    try {
      if (this.#ts === null) await this.#post(install, message, state.finished);
      else await install.client.call('chat.update', { channel, ts: this.#ts, ...message }, { signal, isStillWanted });
      if (this.#refused.has('mrkdwn')) await this.#showControls(install, state);
      return true;
    } catch (error) {
      if (signal.aborted || isGatewayError(error, 'SLACK_SUPERSEDED')) return true;
      const method = this.#ts === null ? 'chat.postMessage' : 'chat.update';
      const { fault } = isGatewayError(error) ? judgeFault(error, method) : { fault: { kind: 'dead' } as const };
      if (fault.kind === 'reshape' && OTHER_FORMS.has(fault.to) && !this.#refused.has(fault.to)) {
        this.#refused.add(fault.to);
        return await this.#tryWrite(state, isStillWanted);
      }
      if (fault.kind !== 'again' && fault.kind !== 'wait') this.#givenUp = true;
      else if (fault.kind === 'again' && fault.ambiguous && this.#ts === null) await this.#find(install);
      log.info({ err: error, channel, givenUp: this.#givenUp }, 'progress not drawn');
      return this.#givenUp;
    }
  }

  async #showControls(install: OutInstallation, { finished, buttons }: ProgressState): Promise<void> {
    const { log, signal } = this.#deps;
    const place = { channel: this.#thread.channel, threadTs: this.#deps.threadTs(this.#thread) };
    this.#controls ??= new LooseControls(this.#turnId, log);
    await this.#controls.show(install, place, finished ? [] : buttons, signal);
  }

  async #post(install: OutInstallation, message: ReturnType<typeof progressMessage>, finished: boolean): Promise<void> {
    const { clock, signal } = this.#deps;
    const thread = this.#thread;
    for (let waits = 0; this.#deps.repliesWait(thread) && waits < MOST_WAITS; waits += 1) {
      // Behind the reply, a message about the way there says nothing more.
      if (finished || this.#finished) return;
      await clock.sleep(GIVE_WAY_MS, signal);
    }
    const threadTs = this.#deps.threadTs(thread);
    const args = {
      channel: thread.channel,
      ...(threadTs === null ? {} : { thread_ts: threadTs }),
      ...message,
      ...(this.#refused.has('without-metadata') ? {} : { metadata: ownMetadata(this.#key, 'progress') }),
      unfurl_links: false,
      unfurl_media: false,
    };
    const { ts } = await postMessage(install.client, args, { signal });
    await this.#opened(ts);
  }

  /** The first post may have got through: found, it is the message; where nobody can tell, nothing more is drawn. */
  async #find(install: OutInstallation): Promise<void> {
    const { ambiguous, signal } = this.#deps;
    const place = { channel: this.#thread.channel, threadTs: this.#deps.threadTs(this.#thread) };
    try {
      // Without its key a message of changing text cannot be told from others.
      if (this.#refused.has('without-metadata')) throw new GatewayError('SLACK_BAD_ANSWER');
      const found = await lookUp(install.client, place, this.#begunAt, signal);
      const ts = found.byKey(this.#key);
      ambiguous.inc({ resolution: ts === null ? 'resent' : 'found' });
      if (ts !== null) await this.#opened(ts);
    } catch {
      // Drawing a second message would be worse than drawing none.
      ambiguous.inc({ resolution: 'gave_up' });
      this.#givenUp = true;
    }
  }

  async #opened(ts: string): Promise<void> {
    const { store } = this.#deps;
    this.#ts = ts;
    this.#deps.posted(this.#thread);
    const { slug, team, channel } = this.#thread;
    await store
      .batch([{ kind: 'put', key: this.#storeKey, value: toBytes({ slug, team, channel, ts }) }])
      .catch(nothing);
  }

  async #close(): Promise<void> {
    if (this.#ts === null) return;
    await this.#deps.store.batch([{ kind: 'delete', key: this.#storeKey }]).catch(nothing);
  }

  get #key(): string {
    return digest('progress', this.#turnId);
  }

  get #storeKey(): string {
    return `${this.#deps.prefix}/${this.#key}`;
  }
}
