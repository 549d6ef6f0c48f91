import type { PromptResponse } from '@agentclientprotocol/sdk';
import { deferred, type Background, type Deferred } from '../../../src/base/async.js';
import { AcpFault } from '../errors.js';
import type { FlatPrompt } from '../parse.js';
import type { Attachment } from './attachment.js';
import { meta } from './updates.js';

/** One prompt from arrival to answer. */
export interface Job {
  /** Order of arrival on the wire, over all connections. */
  readonly seq: number;
  readonly attachment: Attachment;
  readonly prompt: FlatPrompt;
  readonly cancel: AbortController;
  readonly answer: Deferred<PromptResponse>;
}

export function newJob(seq: number, attachment: Attachment, prompt: FlatPrompt): Job {
  return { seq, attachment, prompt, cancel: new AbortController(), answer: deferred<PromptResponse>() };
}

/** Ends a turn from outside: the reason an aborted job carries. */
export class TurnCancelled extends Error {
  constructor() {
    super('The turn was cancelled');
    this.name = 'TurnCancelled';
  }
}

export function cancelledResponse(about: Readonly<Record<string, unknown>> = { delivered: false }): PromptResponse {
  return { stopReason: 'cancelled', _meta: meta(about) };
}

/** The prompts of one session: one runs, the others wait in the order they arrived. Each is answered exactly once. */
export class PromptQueue {
  readonly #maxWaiting: number;
  readonly #background: Background;
  readonly #run: (job: Job) => Promise<PromptResponse>;
  readonly #waiting: Job[] = [];
  #running: Job | null = null;
  #cancelledUpTo = 0;

  constructor(maxWaiting: number, background: Background, run: (job: Job) => Promise<PromptResponse>) {
    this.#maxWaiting = maxWaiting;
    this.#background = background;
    this.#run = run;
  }

  /** Prompts that run or wait. */
  get size(): number {
    return this.#waiting.length + (this.#running ? 1 : 0);
  }

  /** @throws {AcpFault} `prompt_queue_full` */
  add(job: Job): Promise<PromptResponse> {
    const { signal } = job.cancel;
    if (job.seq < this.#cancelledUpTo || signal.aborted) return Promise.resolve(cancelledResponse());
    if (this.#running && this.#waiting.length >= this.#maxWaiting) {
      throw new AcpFault('prompt_queue_full', { maxQueuedPrompts: this.#maxWaiting });
    }
    const at = this.#waiting.findIndex(({ seq }) => seq > job.seq);
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, job);
    const leave = () => {
      this.#leave(job);
    };
    signal.addEventListener('abort', leave, { once: true });
    this.#pump();
    return job.answer.promise;
  }

  /** Ends the running prompt and those that arrived before `seq`; later ones are not touched. */
  cancelBefore(seq: number): void {
    this.#cancelledUpTo = Math.max(this.#cancelledUpTo, seq);
    this.cancelWhere((job) => job.seq < seq);
  }

  cancelWhere(isMeant: (job: Job) => boolean): void {
    for (const job of [...this.#waiting, ...(this.#running ? [this.#running] : [])]) {
      if (isMeant(job)) job.cancel.abort(new TurnCancelled());
    }
  }

  /** Those that wait end with an error; the running one is its turn's affair. */
  refuseWaiting(fault: AcpFault): void {
    for (const job of this.#waiting.splice(0)) job.answer.reject(fault);
  }

  #leave(job: Job): void {
    const at = this.#waiting.indexOf(job);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    job.answer.resolve(cancelledResponse());
  }

  #pump(): void {
    if (this.#running) return;
    const job = this.#waiting.shift();
    if (!job) return;
    this.#running = job;
    this.#background.run(async () => {
      try {
        job.answer.resolve(await this.#run(job));
      } catch (error) {
        job.answer.reject(error);
      } finally {
        this.#running = null;
        this.#pump();
      }
    });
  }
}
