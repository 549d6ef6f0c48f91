import type { CancelTimer, Clock } from '../../../src/base/clock.js';
import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { slackKey } from '../conversation.js';
import { judgeFault } from '../errors.js';
import type { OutInstallation } from './faults.js';
import { Newest } from './newest.js';
import type { ThreadRef, ThreadStatus } from './port.js';

export interface StatusDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly status: 'auto' | 'agent-session' | 'assistant' | 'off';
  readonly statusText: string;
  readonly signal: AbortSignal;
  installation(thread: ThreadRef): OutInstallation | null;
  /** Null: the channel takes no replies; the status stands in the thread nevertheless. */
  threadTs(thread: ThreadRef): string | null;
}

type Surface = 'agent-session' | 'assistant';

/** Slack takes a status away after 120 seconds. */
const KEEP_ALIVE_MS = 90_000;
const GAP_MS = 1_000;
/** Work that nobody has ended by then is not going on. */
const LONGEST_MS = 4 * 3_600_000;
const MOST_FAILURES = 3;
const OFF_MS = 3_600_000;

interface Workspace {
  /** Null until one of the two was accepted. */
  surface: Surface | null;
  failures: number;
  offUntil: number;
}

/** The working status of threads. Best effort: three refusals in a row switch it off for an hour (S-133, S-134). */
export class StatusBoard {
  readonly #deps: StatusDeps;
  readonly #workspaces = new Map<string, Workspace>();
  readonly #shown = new Map<string, ShownStatus>();

  constructor(deps: StatusDeps) {
    this.#deps = deps;
  }

  of(thread: ThreadRef): ThreadStatus {
    return {
      set: (text = this.#deps.statusText) => {
        this.#shownOf(thread).set(text);
      },
      clear: () => {
        this.#shown.get(slackKey(thread))?.clear();
      },
    };
  }

  /** A post of ours takes a status away: it is set again while the work goes on. */
  posted(thread: ThreadRef): void {
    this.#shown.get(slackKey(thread))?.refresh();
  }

  async settled(): Promise<void> {
    for (const shown of this.#shown.values()) await shown.settled();
  }

  stop(): void {
    for (const shown of this.#shown.values()) shown.stop();
  }

  #shownOf(thread: ThreadRef): ShownStatus {
    const key = slackKey(thread);
    let shown = this.#shown.get(key);
    if (!shown) {
      shown = new ShownStatus(
        this.#deps.clock,
        (text, isNewest) => this.#write(thread, text, isNewest),
        () => this.#shown.delete(key),
      );
      this.#shown.set(key, shown);
    }
    return shown;
  }

  /** @returns whether Slack may show it now; not where something newer came before it had its turn (S-095) */
  async #write(thread: ThreadRef, text: string | null, isNewest: () => boolean): Promise<boolean> {
    const install = this.#deps.installation(thread);
    const { status, clock } = this.#deps;
    if (!install || status === 'off') return false;
    const workspace = this.#workspaceOf(thread, install);
    if (!workspace || clock.now() < workspace.offUntil) return false;
    const order: readonly Surface[] = workspace.surface ? [workspace.surface] : ['agent-session', 'assistant'];
    for (const surface of order) {
      const outcome = await this.#call(install, thread, surface, text, isNewest);
      if (outcome === 'superseded') return false;
      if (outcome === 'shown') {
        Object.assign(workspace, { surface, failures: 0 });
        return true;
      }
      if (outcome === 'unreachable') break;
    }
    workspace.failures += 1;
    if (workspace.failures >= MOST_FAILURES) {
      Object.assign(workspace, { failures: 0, offUntil: clock.now() + OFF_MS });
      this.#deps.log.warn({ app: thread.slug, team: thread.team }, 'Slack refuses the status; off for an hour');
    }
    // The answer may have been lost on the way.
    return true;
  }

  /** Null where the app has no place for a status. */
  #workspaceOf({ slug, team }: ThreadRef, { app }: OutInstallation): Workspace | null {
    const { status } = this.#deps;
    if (status === 'auto' && app.surface === 'none') return null;
    const key = `${slug}:${team}`;
    let workspace = this.#workspaces.get(key);
    if (!workspace) {
      const named = status === 'agent-session' || status === 'assistant' ? status : null;
      const bySurface = app.surface === 'agent' ? 'agent-session' : app.surface === 'assistant' ? 'assistant' : null;
      workspace = { surface: named ?? bySurface, failures: 0, offUntil: 0 };
      this.#workspaces.set(key, workspace);
    }
    return workspace;
  }

  async #call(
    { client }: OutInstallation,
    thread: ThreadRef,
    surface: Surface,
    text: string | null,
    isStillWanted: () => boolean,
  ): Promise<'shown' | 'refused' | 'unreachable' | 'superseded'> {
    const { signal, log } = this.#deps;
    const options = { signal, isStillWanted };
    const place = { channel_id: thread.channel, thread_ts: this.#deps.threadTs(thread) ?? thread.threadTs };
    try {
      if (surface === 'assistant') {
        await client.call('assistant.threads.setStatus', { ...place, status: text ?? '' }, options);
      } else {
        const initiator = thread.askerId === null ? {} : { initiator_user_id: thread.askerId };
        const status = text === null ? 'active' : 'processing';
        await client.call('agents.sessions.setStatus', { ...place, status, ...initiator }, options);
      }
      return 'shown';
    } catch (error) {
      if (isGatewayError(error, 'SLACK_SUPERSEDED')) return 'superseded';
      log.debug({ err: error, channel: thread.channel, surface }, 'status not shown');
      // A thread whose first message is gone says nothing about the others.
      if (isThreadGone(error, surface)) return 'superseded';
      return isGatewayError(error) && error.retryable ? 'unreachable' : 'refused';
    }
  }
}

function isThreadGone(error: unknown, surface: Surface): boolean {
  if (!isGatewayError(error)) return false;
  const { fault } = judgeFault(
    error,
    surface === 'assistant' ? 'assistant.threads.setStatus' : 'agents.sessions.setStatus',
  );
  return fault.kind === 'reshape' && fault.to === 'new-root';
}

class ShownStatus {
  readonly #clock: Clock;
  readonly #writer: Newest<string | null>;
  readonly #over: () => void;
  #wanted: string | null = null;
  /** What was never shown need not be taken away: with many threads it saves calls that others wait for. */
  #mayBeShown = false;
  #cancel: CancelTimer | null = null;

  constructor(
    clock: Clock,
    write: (text: string | null, isNewest: () => boolean) => Promise<boolean>,
    over: () => void,
  ) {
    this.#clock = clock;
    this.#over = over;
    this.#writer = new Newest(clock, GAP_MS, async (text, isNewest) => {
      if (text !== null || this.#mayBeShown) {
        const isSent = await write(text, isNewest);
        if (isSent) this.#mayBeShown = text !== null;
      }
      // With a write still to come, another one for the same thread must not begin beside it.
      if (this.#wanted === null && isNewest()) this.#over();
    });
  }

  set(text: string): void {
    this.#wanted = text;
    this.#writer.show(text);
    this.#cancel?.();
    const until = this.#clock.now() + LONGEST_MS;
    this.#cancel = this.#clock.every(KEEP_ALIVE_MS, () => {
      if (this.#clock.now() < until) this.refresh();
      else this.clear();
    });
  }

  refresh(): void {
    if (this.#wanted !== null) this.#writer.show(this.#wanted);
  }

  clear(): void {
    this.#wanted = null;
    this.#cancel?.();
    this.#cancel = null;
    this.#writer.showNow(null);
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  settled(): Promise<void> {
    return this.#writer.settled();
  }
}
