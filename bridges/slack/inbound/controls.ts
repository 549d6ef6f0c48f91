import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import type { NewId } from '../../../src/base/ids.js';
import { isOutsideBrain } from '../../../src/core/outside.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slackKey } from '../conversation.js';
import type { Installation } from '../installations.js';
import {
  CONTROL_ACTIONS,
  type ControlAction,
  type ControlButton,
  type ResponseWay,
  type SlackOut,
  type ThreadRef,
} from '../outbound/port.js';
import { markdownName } from '../outbound/compose.js';
import type { SlackActionDelivery } from '../parse.js';
import type { Accept } from './accept.js';
import type { Bindings } from './bindings.js';
import { slackRecordSchema, type SlackRecord } from './records.js';
import type { Threads } from './threads.js';
import { TurnCut, type TurnRunner } from './turn.js';

const askedAboutSchema = z.object({
  /** The message, in mrkdwn. */
  quoted: z.string(),
  /** Where its asker can be answered. */
  response: z.object({ url: z.string(), until: z.number() }).nullable(),
});
/** What a question about a message needs to know of it until it is asked. */
export type AskedAbout = z.infer<typeof askedAboutSchema>;

const controlSchema = z.object({
  action: z.enum(CONTROL_ACTIONS),
  thread: z.object({
    slug: z.string(),
    team: z.string(),
    channel: z.string(),
    threadTs: z.string(),
    askerId: z.string().nullable(),
  }),
  /** What a Retry hands in again. */
  record: slackRecordSchema.nullable(),
  /** What a form for a question is about. */
  about: askedAboutSchema.nullable().default(null),
  madeAt: z.number(),
});
type Control = z.infer<typeof controlSchema>;

export interface ControlsDeps {
  readonly store: StateStore;
  readonly prefix: string;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly out: SlackOut;
  readonly runner: TurnRunner;
  readonly threads: Threads;
  readonly bindings: Bindings;
  readonly inner: FrameworkAdapter;
  readonly accept: Accept;
  /** Lets waiting messages of a thread go on. */
  readonly wake: (thread: ThreadRef) => void;
  /** User ids that may steer every turn. */
  readonly controllers: readonly string[];
  /** Shows the form in which a question about a message is written; for a button that asks for it. */
  readonly openForm: (
    control: { readonly thread: ThreadRef; readonly about: AskedAbout; readonly value: string },
    delivery: SlackActionDelivery,
    installation: Installation,
  ) => Promise<void>;
}

/** What steers a turn or a thread, by button, reaction, command or signal. */
export type SteeringAction = Exclude<ControlAction, 'ask'>;

const LIFETIME_MS = 24 * 3_600_000;
const PRUNE_PAGE = 1_000;
/** How long Slack takes answers to an interaction. */
export const RESPONSE_MS = 30 * 60_000;

/** The buttons of turns: made with an opaque value, looked up when pressed, for the people they are for (S-165). */
export class Controls {
  readonly #deps: ControlsDeps;

  constructor(deps: ControlsDeps) {
    this.#deps = deps;
  }

  /** A button that does `action` in the thread; good for a day, also after a restart (S-167). */
  async button(action: ControlAction, thread: ThreadRef, record: SlackRecord | null = null): Promise<ControlButton> {
    return { action, value: await this.#keep({ action, thread: { ...thread }, record, about: null }) };
  }

  /** A form, and a button that opens it anew, for a question about a message. @returns what {@link asked} takes */
  async form(thread: ThreadRef, about: AskedAbout): Promise<string> {
    return await this.#keep({ action: 'ask', thread: { ...thread }, record: null, about });
  }

  /** What a form was about; null when that is a day ago or the question was asked. */
  async asked(value: string): Promise<{ readonly thread: ThreadRef; readonly about: AskedAbout } | null> {
    const control = await this.#find(value);
    return control?.about ? { thread: control.thread, about: control.about } : null;
  }

  /** The question was asked: its form is used up. */
  async close(value: string): Promise<void> {
    const { store, prefix } = this.#deps;
    await store.batch([{ kind: 'delete', key: `${prefix}/${value}` }]);
  }

  /** Somebody pressed a button. */
  async press(delivery: SlackActionDelivery, installation: Installation): Promise<void> {
    const { out } = this.#deps;
    const value = delivery.value ?? '';
    const control = value === '' ? null : await this.#find(value);
    if (!control) {
      if (delivery.channel === null) return;
      await this.#tell(this.#placeOf(delivery, installation), delivery, 'This has already been handled.');
      return;
    }
    const { action, thread, about } = control;
    if (action === 'ask') {
      if (about) await this.#deps.openForm({ thread, about, value }, delivery, installation);
      return;
    }
    if (!(await this.#may(delivery.userId, thread, installation))) {
      const who = 'Only the person who asked, and people in charge, can do this.';
      await this.#tell(thread, delivery, who);
      return;
    }
    const who = await actorOf(delivery.userId, installation);
    const line = await this.act(action, thread, who, control.record, value);
    // Used up only once what it does is on disk; until then a second press does the same thing.
    if (action === 'retry') await this.close(value);
    const id = `control:${value}:${action}`;
    // What one person sees is no message that could be edited: it is replaced the way its press came.
    if (delivery.isEphemeral) {
      const response = responseWay(delivery.responseUrl, this.#deps.clock.now(), true);
      await out.ephemeral(thread, delivery.userId, { id, text: line, response });
    } else if (delivery.messageTs !== null) await out.edit(thread, delivery.messageTs, { id, markdown: line });
  }

  /** Somebody steered by a reaction: it counts in a thread that a room stands for, from who wrote there or may press. */
  async react(action: SteeringAction, thread: ThreadRef, userId: string, by: Installation, id: string): Promise<void> {
    if (!this.#deps.bindings.find(thread)) return;
    // Whoever put the reaction there asked for nothing by it alone.
    const place = { ...thread, askerId: null };
    if (await this.maySteer(place, userId, by)) {
      await this.act(action, thread, await actorOf(userId, by), null, id);
    }
  }

  /** Whether somebody may steer a thread without having been given a button: who wrote there, and who may press. */
  async maySteer(thread: ThreadRef, userId: string, by: Installation): Promise<boolean> {
    const { people } = await this.#deps.threads.get(slackKey(thread));
    return people.includes(userId) || (await this.#may(userId, { ...thread, askerId: null }, by));
  }

  /** Slack's own stop control, which a thread confirms in one line. */
  async stopSession(thread: ThreadRef, by: Installation, id: string): Promise<void> {
    const who = await actorOf(thread.askerId ?? '', by);
    const line = await this.act('interrupt', thread, who, null, id);
    if (!this.#deps.bindings.find(thread)) return;
    await this.#deps.out.reply(thread, { id: `stopped:${id}`, markdown: line, kind: 'control' });
  }

  /**
   * Does what a button, a reaction, Slack's own stop or a signal from Band asks for.
   *
   * @param who - null for Band
   * @returns the line that says who did what
   */
  async act(
    action: SteeringAction,
    thread: ThreadRef,
    who: Actor | null,
    record: SlackRecord | null,
    id: string,
  ): Promise<string> {
    const { runner, threads, out, accept } = this.#deps;
    const key = slackKey(thread);
    const by = who === null ? 'Band' : markdownName(who.name);
    const userId = who?.id ?? null;
    switch (action) {
      case 'interrupt': {
        runner.cut(key, new TurnCut('interrupt', userId));
        const goesOn = await this.#stopOutside(thread);
        return `Interrupted by ${by}.${goesOn}`;
      }
      case 'stop': {
        await threads.change(key, (state) => ({ ...state, paused: true, pausedAt: this.#deps.clock.now() }));
        runner.cut(key, new TurnCut('stop', userId));
        const goesOn = await this.#stopOutside(thread);
        await out.reply(thread, {
          id: `paused:${id}`,
          markdown: `Stopped.${goesOn} Messages wait here until somebody resumes.`,
          kind: 'control',
          buttons: [await this.button('resume', thread)],
        });
        return `Stopped by ${by}.`;
      }
      case 'resume':
        await threads.change(key, (state) => ({ ...state, paused: false }));
        this.#deps.wake(thread);
        return `Resumed by ${by}.`;
      case 'retry':
        if (record) await accept({ ...record, key: `retry:${id}`, again: true });
        return `Tried again by ${by}.`;
      case 'mute':
        await threads.change(key, (state) => ({ ...state, muted: true }));
        return `Muted by ${by}. I answer here only when I am mentioned.`;
      case 'unmute':
        await threads.change(key, (state) => ({ ...state, muted: false }));
        return `Unmuted by ${by}.`;
    }
  }

  /** Forgets buttons past their day. */
  async prune(): Promise<void> {
    const { store, prefix, clock } = this.#deps;
    const { from, to } = prefixRange(`${prefix}/`);
    for (let next = from; ;) {
      const page = await store.range({ from: next, to, limit: PRUNE_PAGE });
      const old = page.filter(({ value }) => readJson(value, controlSchema).madeAt + LIFETIME_MS < clock.now());
      const changes = old.map(({ key }): StoreChange => ({ kind: 'delete', key }));
      if (changes.length > 0) await store.batch(changes);
      const last = page.at(-1);
      if (!last || page.length < PRUNE_PAGE) return;
      next = `${last.key}\0`;
    }
  }

  async #keep(control: Omit<Control, 'madeAt'>): Promise<string> {
    const { store, prefix, clock, newId } = this.#deps;
    const value = newId();
    const stored: Control = { ...control, madeAt: clock.now() };
    await store.batch([{ kind: 'put', key: `${prefix}/${value}`, value: toBytes(stored) }]);
    return value;
  }

  async #find(value: string): Promise<Control | null> {
    const { store, prefix, clock } = this.#deps;
    const stored = await store.get(`${prefix}/${value}`);
    const control = stored ? readJson(stored.value, controlSchema) : null;
    return control && control.madeAt + LIFETIME_MS >= clock.now() ? control : null;
  }

  /** @returns a sentence for the person when the work itself cannot be stopped from here; else nothing */
  async #stopOutside(thread: ThreadRef): Promise<string> {
    const { inner, bindings } = this.#deps;
    const binding = bindings.find(thread);
    if (!binding || !isOutsideBrain(inner)) return '';
    return (await inner.stopOutside(binding.roomId))
      ? ''
      : ' The agent that was asked cannot be stopped from here; an answer that still comes is posted.';
  }

  async #may(userId: string, thread: ThreadRef, { directory }: Installation): Promise<boolean> {
    if (userId === thread.askerId || this.#deps.controllers.includes(userId)) return true;
    if (this.#deps.runner.startedBy(slackKey(thread)) === userId) return true;
    return (await directory.user(userId))?.isAdmin ?? false;
  }

  async #tell(thread: ThreadRef, delivery: SlackActionDelivery, text: string): Promise<void> {
    const id = `press:${delivery.triggerId ?? `${delivery.actionTs ?? ''}:${delivery.userId}`}`;
    await this.#deps.out.ephemeral(thread, delivery.userId, { id, text });
  }

  #placeOf(delivery: SlackActionDelivery, { app, identity }: Installation): ThreadRef {
    return {
      slug: app.slug,
      team: delivery.teamId ?? identity?.teamId ?? '-',
      channel: delivery.channel ?? '',
      threadTs: delivery.threadTs ?? delivery.messageTs ?? '',
      askerId: delivery.userId,
    };
  }
}

/** Who steers, as the thread will read it. */
export interface Actor {
  readonly id: string;
  readonly name: string;
}

export async function actorOf(id: string, { directory }: Installation): Promise<Actor> {
  const user = await directory.user(id);
  return { id, name: user?.name ?? (user?.handle ? `@${user.handle}` : 'a person') };
}

/** How an interaction that came just now may be answered; null where Slack gave no way. */
export function responseWay(url: string | null, now: number, replace = false): ResponseWay | null {
  return url === null ? null : { url, until: now + RESPONSE_MS, ...(replace ? { replace } : {}) };
}
