import type { Counter, Histogram, Metrics } from '../../../src/base/metrics.js';
import { isTerminal, type TaskState } from '../wire.js';
import type { TaskRow } from './records.js';

/** The figures of tasks: how many there are in each open state, how they end, and how long they take to get there. */
export class TaskFigures {
  readonly accepted: Counter;
  readonly late: Counter;
  readonly unmatched: Counter;
  readonly #ended: Counter;
  readonly #seconds: Histogram;
  readonly #laneWait: Histogram;
  readonly #firstReply: Histogram;
  readonly #setOpen: (state: TaskState, count: number) => void;

  constructor(metrics: Metrics) {
    const open = metrics.gauge('band_a2a_open_tasks', 'Open tasks, by state', ['state']);
    this.#setOpen = (state, count) => {
      open.set({ state: stateLabel(state) }, count);
    };
    this.accepted = metrics.counter('band_a2a_tasks_total', 'Tasks accepted');
    this.#ended = metrics.counter('band_a2a_tasks_ended_total', 'Tasks ended, by state', ['state']);
    this.late = metrics.counter('band_a2a_late_replies_total', 'Replies that came after the end of their task');
    this.unmatched = metrics.counter('band_a2a_unmatched_replies_total', 'Replies that belong to no task');
    this.#seconds = metrics.histogram('band_a2a_task_seconds', 'Seconds from acceptance to end, by state', ['state']);
    this.#laneWait = metrics.histogram('band_a2a_lane_wait_seconds', 'Seconds from acceptance to the first post');
    this.#firstReply = metrics.histogram('band_a2a_first_reply_seconds', 'Seconds from the post to the first reply');
  }

  /** The number of tasks in a state has changed. */
  counted(state: TaskState, count: number): void {
    if (!isTerminal(state)) this.#setOpen(state, count);
  }

  posted({ createdAt }: TaskRow, now: number): void {
    this.#laneWait.observe({}, seconds(createdAt, now));
  }

  /** @param askedAt - when the post that it answers was made */
  replied(askedAt: number, now: number): void {
    this.#firstReply.observe({}, seconds(askedAt, now));
  }

  ended({ state, createdAt }: TaskRow, now: number): void {
    const label = { state: stateLabel(state) };
    this.#ended.inc(label);
    this.#seconds.observe(label, seconds(createdAt, now));
  }
}

/** A state as figures and log lines name it, e.g. `input_required`. */
export function stateLabel(state: TaskState): string {
  return state.slice('TASK_STATE_'.length).toLowerCase();
}

function seconds(from: number, to: number): number {
  return Math.max(0, to - from) / 1_000;
}
