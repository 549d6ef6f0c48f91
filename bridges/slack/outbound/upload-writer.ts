import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import { prefixRange, type StateStore, type StoreChange } from '../../../src/store/port.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { fallbackText } from '../convert/index.js';
import type { SlackClient } from '../client.js';
import type { Reshape } from '../errors.js';
import { once, withTeam, type DeadEnd, type FaultDesk, type Ready, type WriteEnd } from './faults.js';
import type { UploadJob } from './jobs.js';
import type { Note, Notes } from './notes.js';
import { introduced, policyOf } from './post-steps.js';
import type { Relocation } from './relocation.js';
import { filePermalink, sendFile, sharedTs, type SendFileDeps } from './send-file.js';

export const MAX_FILE_BYTES = 20 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
const PREVIEW_CHARS = 3_000;

export interface UploadResult {
  readonly fileId: string;
  /** Null where Slack does not say. */
  readonly permalink: string | null;
}

/** The bytes of files that wait, beside their records and in chunks that a batch can hold. */
export class FileChunks {
  readonly #store: StateStore;
  readonly #prefix: string;

  constructor(store: StateStore, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
  }

  /** @returns how many chunks there are */
  async put(id: string, bytes: Uint8Array): Promise<number> {
    const count = Math.ceil(bytes.byteLength / CHUNK_BYTES);
    for (let index = 0; index < count; index += 1) {
      const value = bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES);
      await this.#store.batch([{ kind: 'put', key: this.#key(id, index), value }]);
    }
    return count;
  }

  /** @returns null when they are not all there */
  async read(id: string, { length, chunks }: Pick<UploadJob, 'length' | 'chunks'>): Promise<Uint8Array | null> {
    const bytes = new Uint8Array(length);
    let at = 0;
    for (let index = 0; index < chunks; index += 1) {
      const stored = await this.#store.get(this.#key(id, index));
      if (!stored || at + stored.value.byteLength > length) return null;
      bytes.set(stored.value, at);
      at += stored.value.byteLength;
    }
    return at === length ? bytes : null;
  }

  forget(id: string, chunks: number): StoreChange[] {
    return Array.from({ length: chunks }, (_, index) => ({ kind: 'delete', key: this.#key(id, index) }));
  }

  /** Removes what belongs to no record: a process that died while it wrote leaves some. */
  async sweep(isKnown: (id: string) => boolean): Promise<void> {
    const { from, to } = prefixRange(`${this.#prefix}/`);
    for (let next = from; ;) {
      const page = await this.#store.range({ from: next, to, limit: 8 });
      const orphans = page.filter(({ key }) => !isKnown(key.slice(this.#prefix.length + 1, key.lastIndexOf('/'))));
      if (orphans.length > 0) await this.#store.batch(orphans.map(({ key }) => ({ kind: 'delete', key })));
      const last = page.at(-1);
      if (!last || page.length < 8) return;
      next = `${last.key}\0`;
    }
  }

  #key(id: string, index: number): string {
    return `${this.#prefix}/${id}/${String(index).padStart(4, '0')}`;
  }
}

export interface UploadWriterDeps {
  readonly desk: FaultDesk;
  readonly notes: Notes;
  readonly places: Relocation;
  readonly chunks: FileChunks;
  readonly files: Pick<SendFileDeps, 'dispatcher' | 'slackApiUrl' | 'landing' | 'clock'>;
  ready: Ready;
}

/** The end of an upload; where Slack takes no file, `preview` is what can be posted of it. */
export type UploadEnd = WriteEnd<UploadResult> & { readonly preview?: string };

/** Sends one file into its thread. */
export function createUploadWriter({ desk, notes, places, chunks, files, ready }: UploadWriterDeps) {
  return async function write(record: QueueRecord<UploadJob>, signal: AbortSignal): Promise<UploadEnd> {
    const { body: job, id } = record;
    const note = await notes.get(id);
    const save = () => notes.put(id, note);
    const bytes = await chunks.read(id, job);
    if (!bytes) return FILE_LOST;
    for (;;) {
      const found = await ready(record, signal);
      if (typeof found === 'string') return desk.expired(found);
      const install = withTeam(found, job.thread, note);
      const { thread } = job;
      if (note.place === 'thread' && places.threadTs(thread) === null) note.place = 'channel';
      const place = {
        channel: thread.channel,
        threadTs: note.place === 'thread' ? places.threadTs(thread) : null,
      };
      const said = introduced(job.comment ?? '', thread, note, install).trim();
      const comment = said === '' ? null : fallbackText(said, policyOf(job, note));
      const file = { name: job.filename, title: job.title, bytes, comment };
      try {
        const fileId = await sendFile(file, place, { client: install.client, note, save, ...files }, signal);
        await settle(job, note, fileId, install.client, signal);
        return { kind: 'sent', result: { fileId, permalink: await filePermalink(install.client, fileId, signal) } };
      } catch (error) {
        const named = isGatewayError(error) ? error.details['method'] : null;
        const method = typeof named === 'string' ? named : 'files.completeUploadExternal';
        const step = await desk.judge(error, { thread: job.thread, note, install, method }, signal);
        await save();
        if (step.kind === 'resend' || step.kind === 'fulfilled') continue;
        if (step.kind === 'ended') return step.end;
        if (await elsewhere(step.to, job, note, install.client, signal)) {
          await save();
          continue;
        }
        const preview = previewFor(step.to, job, bytes);
        return preview === null ? step.end : { ...step.end, preview };
      }
    }
  };

  /** Another place for a file that its thread does not take. */
  async function elsewhere(
    to: Reshape,
    { thread }: UploadJob,
    note: Note,
    client: SlackClient,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (to === 'new-root' && once(note, 'survivor') && (await places.toSurvivor(thread, client, signal))) return true;
    if ((to !== 'new-root' && to !== 'into-channel') || !once(note, to)) return false;
    note.place = to === 'new-root' ? 'root' : 'channel';
    return true;
  }

  /** The conversation goes on where its file stands. */
  async function settle(
    { thread }: UploadJob,
    note: Note,
    fileId: string,
    client: SlackClient,
    signal: AbortSignal,
  ): Promise<void> {
    if (note.place === 'channel') await places.toChannel(thread);
    if (note.place !== 'root') return;
    // Where Slack does not say under which message that is, the next post makes a first message of its own.
    const ts = await sharedTs(client, fileId, thread.channel, signal);
    if (ts !== null) await places.toRoot(thread, ts);
  }
}

const FILE_LOST: DeadEnd = {
  kind: 'dead',
  slackError: 'file_lost',
  detail: 'The bytes of the file are gone.',
  notice: 'A file that waited to be sent could not be read back, so it was not sent.',
  direct: false,
};

/** What may be posted where the file may not: what was said with it, and what can be shown of it. */
function previewFor(to: Reshape, job: UploadJob, bytes: Uint8Array): string | null {
  if (to !== 'text-instead-of-file' && to !== 'comment-instead-of-file') return null;
  const shown = to === 'text-instead-of-file' ? previewOf(job, bytes) : null;
  const said = [job.comment, shown].filter((part) => part !== null);
  return said.length === 0 ? null : said.join('\n\n');
}

/** The beginning of a text file as Markdown; null for what is no text. */
function previewOf({ filename }: UploadJob, bytes: Uint8Array): string | null {
  const text = decode(bytes.subarray(0, PREVIEW_CHARS * 4));
  if (text === null || text.trim() === '') return null;
  const shown = text.slice(0, PREVIEW_CHARS);
  const longest = Math.max(2, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  const name = filename.replace(/[\\`*_~[\]()#|!&<>]/g, '\\$&');
  return `**${name}**\n\n${fence}\n${shown}${shown.endsWith('\n') ? '' : '\n'}${fence}`;
}

function decode(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true });
    return text.includes('\0') ? null : text;
  } catch {
    // Not UTF-8: a picture or the like has no preview.
    return null;
  }
}

/** @throws {GatewayError} `SLACK_FILE_SIZE` */
export function checkFileSize(bytes: Uint8Array): void {
  if (bytes.byteLength > 0 && bytes.byteLength <= MAX_FILE_BYTES) return;
  throw new GatewayError('SLACK_FILE_SIZE', { details: { bytes: bytes.byteLength, maxBytes: MAX_FILE_BYTES } });
}
