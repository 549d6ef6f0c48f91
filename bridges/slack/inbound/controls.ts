import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import type { NewId } from '../../../src/base/ids.js';
import { isOutsideBrain } from '../../../src/core/outside.js';
import type { FrameworkAdapter } from '../../../src/core/framework-adapter.js';
import { readJson, toBytes } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import { slackKey } from '../conversation.js';
import type { Installation } from '../installations.js';
import type { ControlAction, ControlButton, SlackOut, ThreadRef } from '../outbound/port.js';
import type { SlackActionDelivery } from '../parse.js';
import type { Accept } from './accept.js';
import type { Bindings } from './bindings.js';
import { slackRecordSchema, type SlackRecord } from './records.js';
import type { Threads } from './threads.js';
import { TurnCut, type TurnRunner } from './turn.js';

const controlSchema = z.object({
  action: z.enum(['interrupt', 'stop', 'resume', 'retry']),
  thread: z.object({
    slug: z.string(),
    team: z.string(),
    channel: z.string(),
    threadTs: z.string(),
    askerId: z.string().nullable(),
  }),
  /** What a Retry hands in again. */
  record: slackRecordSchema.nullable(),
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
}

const LIFETIME_MS = 24 * 3_600_000;
const PRUNE_PAGE = 1_000;

/** The buttons of turns: made with an opaque value, looked up when pressed, for the people they are for (S-165). */
export class Controls {
  readonly #deps: ControlsDeps;

  constructor(deps: ControlsDeps) {
    this.#deps = deps;
  }

  /** A button that does `action` in the thread; good for a day, also after a restart (S-167). */
  async button(action: ControlAction, thread: ThreadRef, record: SlackRecord | null = null): Promise<ControlButton> {
    const { store, prefix, clock, newId } = this.#deps;
    const value = newId();
    const control: Control = { action, thread: { ...thread }, record, madeAt: clock.now() };
    await store.batch([{ kind: 'put', key: `${prefix}/${value}`, value: toBytes(control) }]);
    return { action, value };
  }

  /** Somebody pressed a button. */
  async press(delivery: SlackActionDelivery, installation: Installation): Promise<void> {
    const { store, prefix, clock, out } = this.#deps;
    const stored = delivery.value === null ? null : await store.get(`${prefix}/${delivery.value}`);
    const control = stored ? readJson(stored.value, controlSchema) : null;
    if (!control || control.madeAt + LIFETIME_MS < clock.now()) {
      if (delivery.channel === null) return;
      await this.#tell(this.#placeOf(delivery, installation), delivery, 'This has already been handled.');
      return;
    }
    const { thread } = control;
    if (!(await this.#may(delivery.userId, thread, installation))) {
      const who = 'Only the person who asked, and people in charge, can do this.';
      await this.#tell(thread, delivery, who);
      return;
    }
    const line = await this.act(control.action, thread, delivery.userId, control.record, delivery.value ?? '');
    // Used up only once what it does is on disk; until then a second press does the same thing.
    if (control.action === 'retry') await store.batch([{ kind: 'delete', key: `${prefix}/${delivery.value ?? ''}` }]);
    if (delivery.messageTs !== null) {
      const id = `control:${delivery.value ?? ''}:${control.action}`;
      await out.edit(thread, delivery.messageTs, { id, markdown: line });
    }
  }

  /** Somebody steered by a reaction: it counts in a thread that a room stands for, from who wrote there or may press. */
  async react(action: ControlAction, thread: ThreadRef, userId: string, by: Installation, id: string): Promise<void> {
    const { bindings, threads } = this.#deps;
    if (!bindings.find(thread)) return;
    const { people } = await threads.get(slackKey(thread));
    if (people.includes(userId) || (await this.#may(userId, thread, by))) {
      await this.act(action, thread, userId, null, id);
    }
  }

  /**
   * Does what a button, a reaction, Slack's own stop or a signal from Band asks for.
   *
   * @param userId - null for Band
   * @returns the line that says who did what
   */
  async act(
    action: ControlAction,
    thread: ThreadRef,
    userId: string | null,
    record: SlackRecord | null,
    id: string,
  ): Promise<string> {
    const { runner, threads, out, accept } = this.#deps;
    const key = slackKey(thread);
    const by = userId === null ? 'Band' : `<@${userId}>`;
    switch (action) {
      case 'interrupt': {
        runner.cut(key, new TurnCut('interrupt', userId));
        const goesOn = await this.#stopOutside(thread);
        return `Interrupted by ${by}.${goesOn}`;
      }
      case 'stop': {
        await threads.change(key, (state) => ({ ...state, paused: true }));
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
