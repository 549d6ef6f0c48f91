import { describe, expect, it } from 'vitest';
import type { BandCalls } from '../../../bridges/a2a/band.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import type { StateStore } from '../../../src/store/port.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { message } from '../../support/a2a/client.js';
import { FakeRooms } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';
const WRITES: readonly (keyof BandCalls)[] = ['createChat', 'addParticipant', 'postEvent', 'postMessage'];

/**
 * A process that stops dead at its n-th step, a step being the moment before or after a write: from then on nothing it
 * does is carried out, and nothing it waits for comes.
 */
class Process {
  readonly #dieAt: number;
  readonly #frozen: ((error: Error) => void)[] = [];
  #isBuried = false;
  steps = 0;
  /** What it was about to do, or had just done. */
  diedAt: string | null = null;

  constructor(dieAt: number) {
    this.#dieAt = dieAt;
  }

  async write<T>(what: string, run: () => Promise<T>): Promise<T> {
    await this.#step(`before ${what}`);
    const result = await run();
    await this.#step(`after ${what}`);
    return result;
  }

  store(inner: StateStore): StateStore {
    return {
      ...inner,
      get: (key) => this.#alive(() => inner.get(key)),
      range: (options) => this.#alive(() => inner.range(options)),
      batch: (changes) => this.write('store', () => inner.batch(changes)),
    };
  }

  rest(inner: BandCalls): BandCalls {
    const wrapped: Record<string, unknown> = {};
    for (const [name, call] of Object.entries(inner) as [keyof BandCalls, (...args: unknown[]) => Promise<unknown>][]) {
      wrapped[name] = (...args: unknown[]) =>
        WRITES.includes(name) ? this.write(name, () => call(...args)) : this.#alive(() => call(...args));
    }
    return wrapped as unknown as BandCalls;
  }

  /** Lets go of what the dead process still waits for, and of what it would do then. */
  bury(): void {
    this.#isBuried = true;
    for (const reject of this.#frozen.splice(0)) reject(new Error('the process is dead'));
  }

  async #step(what: string): Promise<void> {
    if (this.diedAt === null) {
      this.steps += 1;
      if (this.steps === this.#dieAt) this.diedAt = what;
    }
    if (this.diedAt !== null) await this.#never();
  }

  #alive<T>(run: () => Promise<T>): Promise<T> {
    return this.diedAt === null ? run() : this.#never();
  }

  #never(): Promise<never> {
    if (this.#isBuried) return Promise.reject(new Error('the process is dead'));
    return new Promise((_, reject) => this.#frozen.push(reject));
  }
}

/** The peer: answers each text once; an answer that was not taken in is delivered again to the next process. */
class PeerOnTheOtherSide {
  readonly #rooms: FakeRooms;
  readonly #taken = new Set<string>();

  constructor(rooms: FakeRooms) {
    this.#rooms = rooms;
  }

  /** @returns whether every text has had its answer taken in */
  async answer(lab: A2ALab, isDead: () => boolean): Promise<boolean> {
    for (const { id, roomId, content } of this.#rooms.posted) {
      if (this.#taken.has(id) || isDead()) continue;
      const text = content.replace('@Helper ', '');
      const taken = lab.reply(text === 'ask' ? `Which?${ASK}` : `answer to ${text}`, { id: `reply-to-${id}`, roomId });
      taken.then(
        () => this.#taken.add(id),
        () => undefined,
      );
      await lab.until(() => this.#taken.has(id) || isDead());
    }
    return this.#rooms.posted.every(({ id }) => this.#taken.has(id));
  }
}

interface Send {
  readonly text: string;
  /** Continues the task of an earlier send. */
  readonly after?: string;
  taskId: string | null;
}

/** A client that sends its messages one after the other, and each again, under the same id, until it is answered. */
async function drive(lab: A2ALab, sends: readonly Send[], peer: PeerOnTheOtherSide, isDead: () => boolean) {
  for (const send of sends) {
    if (send.after !== undefined) {
      await lab.until(async () => isDead() || (await peer.answer(lab, isDead)));
    }
    if (isDead()) return;
    if (send.taskId !== null) continue;
    const earlier = sends.find(({ text }) => text === send.after)?.taskId;
    const fields = { messageId: `m-${send.text}`, contextId: 'c', ...(earlier != null && { taskId: earlier }) };
    const sent = lab.client.rpc('helper', 'SendMessage', message(send.text, fields, { returnImmediately: true }));
    sent.then(
      ({ body }) => {
        send.taskId = (body.result as { task?: { id: string } } | undefined)?.task?.id ?? null;
      },
      () => undefined,
    );
    await lab.until(() => send.taskId !== null || isDead(), `the answer to ${send.text}`);
  }
  await lab.until(async () => isDead() || ((await peer.answer(lab, isDead)) && lab.engine.held.tasks === 0));
}

const ROADS: Readonly<Record<string, readonly Omit<Send, 'taskId'>[]>> = {
  'two requests of one context': [{ text: 'one' }, { text: 'two' }],
  'a question and the answer to it': [{ text: 'ask' }, { text: 'the main one', after: 'ask' }],
};

describe.each(Object.entries(ROADS))('%s', (_name, road) => {
  it('A-321 A-322 A-173 wherever the process stops dead, everything is posted once, answered once and completed', async () => {
    const places: string[] = [];
    for (let dieAt = 1; ; dieAt += 1) {
      const rooms = new FakeRooms();
      const store = createMemoryStore();
      const peer = new PeerOnTheOtherSide(rooms);
      const sends: Send[] = road.map((one) => ({ ...one, taskId: null }));
      const first = new Process(Number.POSITIVE_INFINITY);
      const doomed = await a2aLab({ rooms, store: first.store(store), ports: { rest: first.rest(rooms.rest) } });
      // What a start writes is no part of the road.
      const offset = first.steps;
      await doomed.close();
      const process = new Process(dieAt);
      const lab = await a2aLab({ rooms, store: process.store(store), ports: { rest: process.rest(rooms.rest) } });
      expect([offset > 0, process.steps]).toEqual([true, 0]);
      await drive(lab, sends, peer, () => process.diedAt !== null);
      const { diedAt } = process;
      if (diedAt !== null) {
        places.push(diedAt);
        const next = await a2aLab({ rooms, store, clock: createManualClock(lab.clock.now()) });
        await drive(next, sends, peer, () => false);
        await check(next, rooms, sends, diedAt);
        await next.close();
      } else {
        await check(lab, rooms, sends, 'nowhere');
      }
      process.bury();
      await lab.close();
      if (diedAt === null) break;
    }
    // Every write of the road was a place to die at, on either side.
    expect(places.length).toBeGreaterThan(20);
    for (const write of [...WRITES, 'store']) {
      expect(places).toEqual(expect.arrayContaining([`before ${write}`, `after ${write}`]));
    }
  }, 60_000);
});

async function check(lab: A2ALab, rooms: FakeRooms, sends: readonly Send[], diedAt: string): Promise<void> {
  expect([diedAt, rooms.posted.map(({ content }) => content)]).toEqual([
    diedAt,
    sends.map(({ text }) => `@Helper ${text}`),
  ]);
  const ids = new Set(sends.map(({ taskId }) => taskId));
  for (const id of ids) {
    const task = await lab.get(id!);
    const last = sends.findLast(({ taskId }) => taskId === id)!;
    expect([diedAt, task.status.state]).toEqual([diedAt, 'TASK_STATE_COMPLETED']);
    expect([diedAt, task.artifacts?.map(({ parts }) => parts[0]?.text)]).toEqual([diedAt, [`answer to ${last.text}`]]);
    // The log tells the same as the row and the room: each message of the client once, in order.
    expect(task.history?.filter(({ role }) => role === 'ROLE_USER').map(({ parts }) => parts[0]?.text)).toEqual(
      sends.filter(({ taskId }) => taskId === id).map(({ text }) => text),
    );
  }
}
