import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Dispatcher } from 'undici';
import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { SlackClient } from '../client.js';
import { markdownFence } from '../convert/escape-markdown.js';
import { slackErrorOf } from '../errors.js';
import { slackFileSchema, type SlackFile, type SlackMessage } from '../messages.js';
import { downloadFile, type DownloadFailure } from './file-download.js';

const KEPT_MS = 7 * 86_400_000;
const READ_BYTES = 256 * 1024;
const MAX_NAME_CHARS = 120;

export type FileStatus =
  'ok' | 'external' | 'deleted' | 'hidden_by_limit' | 'not_visible' | 'too_many' | DownloadFailure;

/** One file of a message, as `metadata.slack_files` lists it. */
export interface SlackFileNote {
  readonly id: string;
  /** Safe to show: no path, no control characters, no backticks. */
  readonly name: string;
  readonly mimetype: string;
  /** Bytes read; the declared size where nothing was. */
  readonly size: number;
  /** Where the bytes lie on this machine; null when they were not taken. */
  readonly path: string | null;
  readonly permalink: string | null;
  readonly status: FileStatus;
}

export interface TakenFiles {
  readonly listed: readonly SlackFileNote[];
  /** Markdown to stand under the message: texts quoted, everything else named. Empty without files. */
  readonly inline: string;
}

/** Part of a file's text, or a sentence about a file that is no text. */
export interface FileExcerpt {
  readonly text: string;
  /** Where to go on reading; null at the end. */
  readonly nextOffset: number | null;
}

export interface FilesInDeps {
  readonly client: SlackClient;
  readonly team: string;
  readonly token: string;
  readonly slackApiUrl: string | undefined;
  readonly dispatcher: Dispatcher | undefined;
  /** Made when the first file comes. */
  readonly folder: string;
  readonly limits: {
    readonly maxCount: number;
    readonly maxBytes: number;
    readonly maxTotalBytes: number;
    readonly inlineBytes: number;
  };
  readonly clock: Clock;
  readonly log: Logger;
}

/** Files that people put into Slack, brought to this machine. */
export interface FilesIn {
  /** Takes a message's files. Never throws, except for an abort: a file that cannot be had is named with its cause. */
  take(message: Pick<SlackMessage, 'files'>, signal: AbortSignal): Promise<TakenFiles>;
  /** At most 256 KiB of a taken file from `offset` on; null for a file that was never taken or is gone. */
  read(fileId: string, offset: number): Promise<FileExcerpt | null>;
  /** Removes what is older than seven days. */
  sweep(): Promise<void>;
}

export function createFilesIn(deps: FilesInDeps): FilesIn {
  const { folder, team, limits, log, clock } = deps;
  const pathOf = (id: string) => join(folder, createHash('sha256').update(`${team}:${id}`).digest('hex').slice(0, 40));

  const takeOne = async (file: SlackFile, roomBytes: number, signal: AbortSignal): Promise<SlackFileNote> => {
    const gone = goneStatus(file);
    if (gone) return noteOf(file, gone);
    const known = file.file_access === 'check_file_info' ? await fileInfo(deps.client, file.id, signal) : file;
    if (typeof known === 'string') return noteOf(file, known);
    if (known.is_external === true || known.mode === 'external') return noteOf(known, goneStatus(known) ?? 'external');
    const url = known.url_private_download ?? known.url_private;
    if (!url) return noteOf(known, goneStatus(known) ?? 'not_found');
    const path = pathOf(known.id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const job = { url, path, limitBytes: Math.min(limits.maxBytes, roomBytes), htmlExpected: isHtml(known) };
    const result = await downloadFile(job, deps, signal);
    return result.ok ? { ...noteOf(known, 'ok'), size: result.bytes, path } : noteOf(known, result.why);
  };

  return {
    async take({ files }, signal) {
      const listed: SlackFileNote[] = [];
      const shown: string[] = [];
      let roomBytes = limits.maxTotalBytes;
      for (const [index, file] of (files ?? []).entries()) {
        const note = index < limits.maxCount ? await attempt(file, roomBytes, signal) : noteOf(file, 'too_many');
        if (note.path !== null) roomBytes -= note.size;
        if (note.status !== 'ok') log.info({ file: note.id, status: note.status }, 'a Slack file was not taken');
        listed.push(note);
        shown.push(await show(note));
      }
      return { listed, inline: shown.join('\n\n') };
    },
    async read(fileId, offset) {
      const path = pathOf(fileId);
      const size = await stat(path).then(
        (found) => found.size,
        () => null, // not there: answered below
      );
      if (size === null) return null;
      const bytes = await readBytes(path, Math.max(0, offset), READ_BYTES);
      const text = decodeText(bytes);
      if (text === null) return { text: `A binary file of ${size} bytes.`, nextOffset: null };
      const next = Math.max(0, offset) + Buffer.byteLength(text);
      return { text, nextOffset: next < size ? next : null };
    },
    async sweep() {
      const names = await readdir(folder).catch(() => []); // no folder, nothing to remove
      for (const name of names) {
        const path = join(folder, name);
        const age = await stat(path).then(
          ({ mtimeMs }) => clock.now() - mtimeMs,
          () => 0, // somebody removed it meanwhile
        );
        if (age > KEPT_MS) await rm(path, { force: true });
      }
    },
  };

  async function attempt(file: SlackFile, roomBytes: number, signal: AbortSignal): Promise<SlackFileNote> {
    try {
      return await takeOne(file, roomBytes, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn({ err: error, file: file.id }, 'a Slack file could not be stored');
      return noteOf(file, 'not_stored');
    }
  }

  async function show(note: SlackFileNote): Promise<string> {
    const line = `[file: ${note.name}, ${note.mimetype}, ${note.size} bytes${CAUSES[note.status]}]`;
    if (note.path === null || note.size > limits.inlineBytes || !isText(note)) return line;
    const text = decodeText(await readBytes(note.path, 0, note.size));
    return text === null ? line : `${line}\n${markdownFence(text.replace(/\n$/, ''))}`;
  }
}

const CAUSES: Readonly<Record<FileStatus, string>> = {
  ok: '',
  external: ', kept outside of Slack',
  deleted: ', deleted in Slack',
  not_visible: ', not taken: this app may not see it',
  hidden_by_limit: ', hidden by the limits of the workspace’s plan',
  too_many: ', not taken: too many files in one message',
  too_large: ', not taken: too large',
  not_found: ', not taken: Slack does not have it any more',
  missing_scope: ', not taken: the app lacks files:read or was not reinstalled since',
  refused_host: ', not taken: it lies outside of Slack',
  unavailable: ', not taken: Slack did not hand it over',
  not_stored: ', not taken: it could not be stored here',
};

const REFUSALS: ReadonlyMap<string, FileStatus> = new Map<string, FileStatus>([
  ['file_not_found', 'not_found'],
  ['file_deleted', 'deleted'],
  ['not_visible', 'not_visible'],
  ['missing_scope', 'missing_scope'],
]);

const infoSchema = z.looseObject({ file: slackFileSchema });

/** A file of a shared channel names nothing but its id. */
async function fileInfo(client: SlackClient, id: string, signal: AbortSignal): Promise<SlackFile | FileStatus> {
  try {
    return infoSchema.parse(await client.call('files.info', { file: id }, { signal })).file;
  } catch (error) {
    if (signal.aborted) throw error;
    return REFUSALS.get(slackErrorOf(error) ?? '') ?? 'unavailable';
  }
}

function goneStatus(file: SlackFile): FileStatus | null {
  if (file.mode === 'tombstone') return 'deleted';
  return file.mode === 'hidden_by_limit' ? 'hidden_by_limit' : null;
}

function noteOf(file: SlackFile, status: FileStatus): SlackFileNote {
  return {
    id: file.id,
    name: safeFileName(file.name ?? file.title ?? file.id),
    mimetype: file.mimetype ?? 'application/octet-stream',
    size: file.size ?? 0,
    path: null,
    permalink: file.permalink ?? file.external_url ?? null,
    status,
  };
}

/** A name that is no path and breaks no message: it came from whoever uploaded the file. */
export function safeFileName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? '';
  const safe = last

    .replace(/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069`<>[\]|*]/g, '')
    .replace(/^\.+/, '')
    .trim();
  return safe === '' ? 'file' : Array.from(safe).slice(0, MAX_NAME_CHARS).join('');
}

const TEXT_TYPES =
  /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|x-python|graphql)|.*\+(?:json|xml)$)/i;
const TEXT_NAMES =
  /\.(?:txt|md|csv|tsv|json|ya?ml|toml|xml|html?|css|[cm]?[jt]sx?|py|rb|go|rs|java|kt|c|h|cpp|cs|sh|sql|log|ini|conf|diff|patch)$/i;

const isText = ({ mimetype, name }: SlackFileNote): boolean => TEXT_TYPES.test(mimetype) || TEXT_NAMES.test(name);
const isHtml = (file: SlackFile): boolean => /^text\/html\b/i.test(file.mimetype ?? '') || file.filetype === 'html';

async function readBytes(path: string, offset: number, length: number): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** UTF-8 text, without a character that the end of the buffer cut in two; null for anything else. */
function decodeText(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null;
  for (let cut = 0; cut <= Math.min(3, bytes.length); cut += 1) {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, bytes.length - cut));
    } catch {
      // Perhaps only the last character is incomplete.
    }
  }
  return null;
}
