import type { SessionUpdate } from '@agentclientprotocol/sdk';
import { abortable, deferred } from '../../../src/base/async.js';
import { BoundedMap } from '../../../src/base/bounded.js';
import type { Editor } from '../client/editor.js';

/** Bytes of one session that may wait for one editor before the room waits for the editor. */
const HIGH_WATER_BYTES = 262_144;
const REMEMBERED_REPLAY_IDS = 1_000;
/** Live messages wait in the room; only what the bridge itself says is held here. */
const MAX_HELD_UPDATES = 100;

/**
 * One editor's view of one session. It opens once the answer that introduces the session is on the wire; until then
 * live messages wait, so that no update comes before its session.
 */
export class Attachment {
  readonly editor: Editor;
  /** The id this editor uses; another one than the room's where another bridge made the session. */
  readonly sessionId: string;
  readonly #opened = deferred();
  readonly #replayed = new BoundedMap<string, true>(REMEMBERED_REPLAY_IDS);
  readonly #held: SessionUpdate[] = [];
  #isOpen = false;
  #waitingBytes = 0;
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(editor: Editor, sessionId: string) {
    this.editor = editor;
    this.sessionId = sessionId;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The session is introduced: what was held goes out. */
  open(): void {
    this.#isOpen = true;
    for (const update of this.#held.splice(0)) this.#write(update);
    this.#opened.resolve();
  }

  /** It will not open, or not any more: what was held is dropped, and whoever waits for it goes on. */
  abandon(): void {
    this.#held.length = 0;
    this.#isOpen = true;
    this.#opened.resolve();
  }

  opened(signal: AbortSignal | null): Promise<void> {
    return abortable(this.#opened.promise, signal);
  }

  /** Remembers what a replay showed, so that the same message does not come again live. */
  replayed(messageId: string): void {
    this.#replayed.set(messageId, true);
  }

  hasReplayed(messageId: string): boolean {
    return this.#replayed.has(messageId);
  }

  /** Sends an update, or holds it until the session is introduced. */
  send(update: SessionUpdate): void {
    if (this.#isOpen) this.#write(update);
    else if (this.#held.length < MAX_HELD_UPDATES) this.#held.push(update);
  }

  /** Sends a piece of a replay, which comes before the session is introduced. */
  replay(update: SessionUpdate): void {
    this.#write(update);
  }

  #write(update: SessionUpdate): void {
    const bytes = roughBytes(update);
    this.#waitingBytes += bytes;
    this.#lastWrite = this.editor.update(this.sessionId, update).then(() => {
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when everything sent so far was written. */
  flushed(signal: AbortSignal | null): Promise<void> {
    return abortable(this.#lastWrite, signal);
  }

  /** Resolves once little enough waits for this editor; a slow editor slows its own sessions only. */
  async drained(signal: AbortSignal | null): Promise<void> {
    if (this.#waitingBytes > HIGH_WATER_BYTES) await abortable(this.#lastWrite, signal);
  }
}

function roughBytes(update: SessionUpdate): number {
  const { content } = update as { content?: unknown };
  const text = (content as { text?: unknown } | undefined)?.text;
  return 200 + (typeof text === 'string' ? text.length : 0);
}
