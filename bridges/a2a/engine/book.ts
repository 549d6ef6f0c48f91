import { isGatewayError } from '../../../src/base/errors.js';
import { readJson } from '../../../src/store/json.js';
import { prefixRange, type StateStore, type StoreChange, type StoreEntry } from '../../../src/store/port.js';
import { isTerminal, type StreamEvent, type TaskState } from '../wire.js';
import { emptyView, fold, streamEvent, type LogEvent, type TaskView } from './log.js';
import {
  contextKeyOf,
  listedValue,
  logRecordSchema,
  MARK,
  taskRowSchema,
  type RecordKeys,
  type TaskRow,
} from './records.js';

/** Sees the events of one open task in order, from the moment it was added. */
export interface Watcher {
  /** `bytes` tells the size of the event as JSON; it is counted once for all who ask. */
  onEvent(event: StreamEvent, bytes: () => number): void;
  /** The task has ended and its last event was handed over. */
  onEnd(): void;
}

/** A task that has not ended, as this process holds it. */
export interface OpenTask {
  row: TaskRow;
  readonly view: TaskView;
  /** Of its context. */
  readonly contextKey: string;
  readonly watchers: Set<Watcher>;
}

/** A task as it stands, open or ended. */
export type FoundTask = Readonly<Pick<OpenTask, 'row' | 'view' | 'contextKey'>>;

/** What one step adds to a task. */
export interface Change {
  readonly events?: readonly LogEvent[];
  readonly row?: Partial<TaskRow>;
  /** Records of others that commit with it. */
  readonly also?: readonly StoreChange[];
}

interface Held extends OpenTask {
  /** Where its owner's list stands in the store. */
  readonly listOf: string;
  revision: number;
  /** A failed write may have reached the disk: the record is read again before the next step. */
  doubtful: boolean;
  tail: Promise<unknown>;
}

const LOG_PAGE = 1_000;
const OPEN_PAGE = 1_000;

/**
 * All tasks: open ones in memory, ended ones in the store. A step is one atomic batch (log entries, row, indexes) under
 * the task's lock; the store has it before anybody sees it, and streams, waits and lists read nothing else.
 */
export class TaskBook {
  readonly #open = new Map<string, Held>();
  readonly #byOwner = new Map<string, number>();
  readonly #byState = new Map<TaskState, number>();
  readonly #store: StateStore;
  readonly #keys: RecordKeys;
  readonly #onCount: (state: TaskState, count: number) => void;
  readonly #onReread: (task: OpenTask) => void;

  /**
   * @param onCount - told how many tasks are held in a state, whenever that changes
   * @param onReread - told that a step whose write had failed stands in the store all the same; the task may have ended
   */
  constructor(
    store: StateStore,
    keys: RecordKeys,
    onCount: (state: TaskState, count: number) => void,
    onReread: (task: OpenTask) => void = () => undefined,
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#onCount = onCount;
    this.#onReread = onReread;
  }

  get openCount(): number {
    return this.#open.size;
  }

  openCountOf(owner: string): number {
    return this.#byOwner.get(owner) ?? 0;
  }

  openTasks(): IterableIterator<OpenTask> {
    return this.#open.values();
  }

  find(id: string): OpenTask | null {
    return this.#open.get(id) ?? null;
  }

  /**
   * Stores a new task.
   *
   * @throws {GatewayError} `STORE_CONFLICT` when a condition of `also` does not hold; nothing was stored
   */
  async create(row: TaskRow, events: readonly LogEvent[], also: readonly StoreChange[]): Promise<OpenTask> {
    const view = emptyView(row.id, row.contextId);
    for (const event of events) fold(view, event);
    const stored: TaskRow = { ...row, seq: 1 };
    const listOf = this.#keys.listOf(row.owner, row.peerId);
    const revision = await this.#store.batch([
      { kind: 'put', key: this.#keys.task(row.id), value: JSON.stringify(stored), ifRevision: null },
      { kind: 'put', key: this.#keys.log(row.id, 0), value: JSON.stringify(events) },
      { kind: 'put', key: this.#keys.open(row.id), value: MARK },
      { kind: 'put', key: this.#listedKey(listOf, stored), value: listedValue(stored.state, stored.contextId) },
      ...also,
    ]);
    return this.#hold(stored, view, revision, listOf);
  }

  /**
   * One step of a task. `decide` sees the newest state and says what to add, or null for nothing; steps of one task
   * run one after the other.
   *
   * @returns the task after the step, or null when nothing was done: it has ended, or `decide` declined
   */
  change(id: string, decide: (task: OpenTask) => Change | null): Promise<OpenTask | null> {
    const held = this.#open.get(id);
    if (!held) return Promise.resolve(null);
    const step = held.tail.then(() => this.#step(held, decide));
    // A step that failed was reported to its caller; the next one starts afresh.
    held.tail = step.catch(() => undefined);
    return step;
  }

  /** The task, open or ended, or null. */
  async read(id: string): Promise<FoundTask | null> {
    const held = this.#open.get(id);
    if (held) return held;
    const stored = await this.#store.get(this.#keys.task(id));
    if (!stored) return null;
    const row = readJson(stored.value, taskRowSchema);
    const view = await this.#fold(row, 0, emptyView(row.id, row.contextId));
    return { row, view, contextKey: contextKeyOf(row.owner, row.contextId) };
  }

  /** Brings the open tasks of an earlier run into memory. */
  async load(): Promise<OpenTask[]> {
    const { to, from: first } = prefixRange(this.#keys.allOpen);
    const loaded: OpenTask[] = [];
    for (let from = first; ;) {
      const page = await this.#store.range({ from, to, limit: OPEN_PAGE });
      for (const entry of page) {
        const task = await this.adopt(entry.key.slice(this.#keys.allOpen.length));
        if (task) loaded.push(task);
      }
      const last = page.at(-1);
      if (!last || page.length < OPEN_PAGE) return loaded;
      from = `${last.key}\0`;
    }
  }

  /** Brings one open task from the store into memory; null when it is there already, has ended, or is not stored. */
  async adopt(id: string): Promise<OpenTask | null> {
    const stored = this.#open.has(id) ? null : await this.#store.get(this.#keys.task(id));
    if (!stored) return null;
    const row = readJson(stored.value, taskRowSchema);
    if (isTerminal(row.state)) return null;
    const view = await this.#fold(row, 0, emptyView(row.id, row.contextId));
    return this.#open.has(id) ? null : this.#hold(row, view, stored.revision);
  }

  /** Removes an ended task with everything that belongs to it. */
  async forget(row: TaskRow, endedKey: string): Promise<void> {
    const logs = await this.#logRecords(row.id, 0);
    await this.#store.batch([
      { kind: 'delete', key: endedKey },
      { kind: 'delete', key: this.#listedKey(this.#keys.listOf(row.owner, row.peerId), row) },
      { kind: 'delete', key: this.#keys.task(row.id) },
      ...logs.map(({ key }): StoreChange => ({ kind: 'delete', key })),
    ]);
  }

  async #step(held: Held, decide: (task: OpenTask) => Change | null): Promise<OpenTask | null> {
    if (held.doubtful) await this.#reread(held);
    if (isTerminal(held.row.state)) return null;
    const change = decide(held);
    if (!change) return null;
    const events = change.events ?? [];
    const before = held.row;
    const after = rowAfter(before, change);
    const puts: StoreChange[] = [
      { kind: 'put', key: this.#keys.task(after.id), value: JSON.stringify(after), ifRevision: held.revision },
    ];
    if (events.length > 0) {
      puts.push({ kind: 'put', key: this.#keys.log(after.id, before.seq), value: JSON.stringify(events) });
    }
    if (after.stateAt !== before.stateAt) puts.push({ kind: 'delete', key: this.#listedKey(held.listOf, before) });
    if (after.stateAt !== before.stateAt || after.state !== before.state) {
      puts.push({
        kind: 'put',
        key: this.#listedKey(held.listOf, after),
        value: listedValue(after.state, after.contextId),
      });
    }
    if (isTerminal(after.state)) {
      puts.push({ kind: 'put', key: this.#keys.ended(after.lastEventAt, after.id), value: MARK });
      puts.push({ kind: 'delete', key: this.#keys.open(after.id) });
    }
    try {
      held.revision = await this.#store.batch([...puts, ...(change.also ?? [])]);
    } catch (error) {
      if (!isGatewayError(error, 'STORE_TRIPPED')) held.doubtful = true;
      throw error;
    }
    this.#moved(before.state, after.state);
    held.row = after;
    this.#show(held, events);
    return held;
  }

  #show(held: Held, events: readonly LogEvent[]): void {
    for (const event of events) {
      fold(held.view, event);
      if (held.watchers.size === 0) continue;
      const shown = streamEvent(held.view, event);
      if (!shown) continue;
      let counted: number | null = null;
      const bytes = (): number => (counted ??= JSON.stringify(shown).length);
      for (const watcher of [...held.watchers]) watcher.onEvent(shown, bytes);
    }
    if (!isTerminal(held.row.state)) return;
    this.#open.delete(held.row.id);
    this.#count(held.row.state, -1);
    const left = (this.#byOwner.get(held.row.owner) ?? 1) - 1;
    if (left > 0) this.#byOwner.set(held.row.owner, left);
    else this.#byOwner.delete(held.row.owner);
    for (const watcher of [...held.watchers]) watcher.onEnd();
    held.watchers.clear();
  }

  /** After a write of unknown outcome: what the disk has is what happened. */
  async #reread(held: Held): Promise<void> {
    const stored = await this.#store.get(this.#keys.task(held.row.id));
    held.doubtful = false;
    if (!stored || stored.revision === held.revision) return;
    const row = readJson(stored.value, taskRowSchema);
    const missed: LogEvent[] = [];
    for (const { value } of await this.#logRecords(row.id, held.row.seq))
      missed.push(...readJson(value, logRecordSchema));
    held.revision = stored.revision;
    this.#moved(held.row.state, row.state);
    held.row = row;
    this.#show(held, missed);
    this.#onReread(held);
  }

  #hold(row: TaskRow, view: TaskView, revision: number, listOf = this.#keys.listOf(row.owner, row.peerId)): OpenTask {
    const held: Held = {
      row,
      view,
      contextKey: contextKeyOf(row.owner, row.contextId),
      watchers: new Set(),
      listOf,
      revision,
      doubtful: false,
      tail: Promise.resolve(),
    };
    this.#open.set(row.id, held);
    this.#count(row.state, 1);
    this.#byOwner.set(row.owner, this.openCountOf(row.owner) + 1);
    return held;
  }

  #moved(from: TaskState, to: TaskState): void {
    if (from === to) return;
    this.#count(from, -1);
    this.#count(to, 1);
  }

  #count(state: TaskState, change: number): void {
    const count = (this.#byState.get(state) ?? 0) + change;
    this.#byState.set(state, count);
    this.#onCount(state, count);
  }

  async #fold(row: TaskRow, fromSeq: number, view: TaskView): Promise<TaskView> {
    for (const { value } of await this.#logRecords(row.id, fromSeq)) {
      for (const event of readJson(value, logRecordSchema)) fold(view, event);
    }
    return view;
  }

  async #logRecords(id: string, fromSeq: number): Promise<StoreEntry[]> {
    const { to } = prefixRange(this.#keys.logOf(id));
    const records: StoreEntry[] = [];
    for (let from = this.#keys.log(id, fromSeq); ;) {
      const page = await this.#store.range({ from, to, limit: LOG_PAGE });
      records.push(...page);
      const last = page.at(-1);
      if (!last || page.length < LOG_PAGE) return records;
      from = `${last.key}\0`;
    }
  }

  #listedKey(listOf: string, row: TaskRow): string {
    return this.#keys.listed(listOf, row.stateAt, row.id);
  }
}

function rowAfter(before: TaskRow, { events = [], row }: Change): TaskRow {
  const status = events.findLast((event) => event.kind === 'status');
  return {
    ...before,
    ...row,
    ...(status && { state: status.status.state, stateAt: Date.parse(status.status.timestamp) }),
    seq: before.seq + (events.length > 0 ? 1 : 0),
  };
}
