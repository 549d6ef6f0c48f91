import { type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { GatewayError } from '../../../src/base/errors.js';
import type { SlackClient } from '../client.js';
import { withinTime } from '../slack-fetch.js';
import type { LookUpPlace } from './look-up.js';
import type { Note } from './notes.js';

export interface FileToSend {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly title: string | null;
  /** mrkdwn. */
  readonly comment: string | null;
}

export interface SendFileDeps {
  readonly client: SlackClient;
  readonly dispatcher: Dispatcher | undefined;
  /** The configured Web API address, whose host is trusted as well. */
  readonly slackApiUrl: string | undefined;
  readonly note: Note;
  /** Puts the note on disk. */
  readonly save: () => Promise<void>;
}

const UPLOAD_TIMEOUT_MS = 120_000;
const targetSchema = z.looseObject({ upload_url: z.string(), file_id: z.string() });
const permalinkSchema = z.looseObject({ file: z.looseObject({ permalink: z.url().nullish().catch(null) }) });
const sharesSchema = z.looseObject({
  file: z.looseObject({
    shares: z.record(z.string(), z.record(z.string(), z.array(z.looseObject({ ts: z.string().nullish() })))).nullish(),
  }),
});

/**
 * A file into a conversation in three steps: ask for an address, send the bytes there without the token, share it. The
 * file's id is what makes the last step repeatable: it stands in the note before, and Slack is asked what became of it
 * (S-144).
 *
 * @returns the file's id
 * @throws {GatewayError} what the client throws; `details.method` names the step
 */
export async function sendFile(
  file: FileToSend,
  { channel, threadTs }: LookUpPlace,
  deps: SendFileDeps,
  signal: AbortSignal,
): Promise<string> {
  const { client, note, save } = deps;
  if (note.fileId !== null) {
    const shared = await isShared(client, note.fileId, channel, signal);
    if (shared === true) return note.fileId;
    if (shared === null) note.fileId = null;
  }
  if (note.fileId === null) {
    const answer = await client.call(
      'files.getUploadURLExternal',
      { filename: file.name, length: file.bytes.byteLength },
      { signal },
    );
    const target = targetSchema.safeParse(answer);
    if (!target.success) {
      throw new GatewayError('SLACK_BAD_ANSWER', {
        details: { method: 'files.getUploadURLExternal' },
        cause: target.error,
      });
    }
    await putBytes(target.data.upload_url, file.bytes, deps, signal);
    note.fileId = target.data.file_id;
    await save();
  }
  await client.call(
    'files.completeUploadExternal',
    {
      files: [{ id: note.fileId, title: file.title ?? file.name }],
      channel_id: channel,
      ...(threadTs === null ? {} : { thread_ts: threadTs }),
      ...(file.comment === null ? {} : { initial_comment: file.comment }),
    },
    { signal },
  );
  return note.fileId;
}

/** The address of a file that was shared; null where Slack does not say at once: nobody waits for it. */
export async function filePermalink(client: SlackClient, file: string, signal: AbortSignal): Promise<string | null> {
  try {
    const answer = await client.call('files.info', { file }, { signal, whenPutOff: 'throw' });
    return permalinkSchema.safeParse(answer).data?.file.permalink ?? null;
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

/** The message with which a file stands in a channel; null where Slack does not say. */
export async function sharedTs(
  client: SlackClient,
  file: string,
  channel: string,
  signal: AbortSignal,
): Promise<string | null> {
  const places = await sharesOf(client, file, signal);
  return places?.flatMap((place) => place[channel] ?? [])[0]?.ts ?? null;
}

/** Whether an earlier third step took effect; null when the file is gone or nobody can tell. */
async function isShared(
  client: SlackClient,
  file: string,
  channel: string,
  signal: AbortSignal,
): Promise<boolean | null> {
  const places = await sharesOf(client, file, signal);
  return places === null ? null : places.some((place) => channel in place);
}

type Shares = Readonly<Record<string, readonly { readonly ts?: string | null | undefined }[]>>;

async function sharesOf(client: SlackClient, file: string, signal: AbortSignal): Promise<readonly Shares[] | null> {
  try {
    const parsed = sharesSchema.safeParse(await client.call('files.info', { file }, { signal }));
    return parsed.success ? Object.values(parsed.data.file.shares ?? {}) : null;
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}

async function putBytes(
  uploadUrl: string,
  bytes: Uint8Array,
  { dispatcher, slackApiUrl }: SendFileDeps,
  signal: AbortSignal,
): Promise<void> {
  const url = URL.parse(uploadUrl);
  if (!url || !isSlackHost(url, slackApiUrl)) {
    throw new GatewayError('SLACK_REFUSED', {
      message: 'Slack named an upload address that is not one of its own.',
      details: { method: 'upload', slackError: 'upload_host', host: url?.host ?? 'unreadable' },
    });
  }
  await withinTime({ method: 'upload', timeoutMs: UPLOAD_TIMEOUT_MS }, signal, async (within) => {
    const answer = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body: bytes,
      signal: within,
      ...(dispatcher ? { dispatcher } : {}),
    });
    await answer.body.dump();
    if (answer.statusCode === 200) return;
    throw new GatewayError('SLACK_UNAVAILABLE', { details: { method: 'upload', status: answer.statusCode } });
  });
}

/** Hosts that get file bytes: Slack's own, and the one of a configured API address. */
export function isSlackHost(url: URL, slackApiUrl: string | undefined): boolean {
  const own = slackApiUrl === undefined ? null : URL.parse(slackApiUrl);
  if (url.host === own?.host && url.protocol === own.protocol) return true;
  return url.protocol === 'https:' && /(?:^|\.)(?:slack\.com|slack-edge\.com|slack-gov\.com)$/.test(url.hostname);
}
