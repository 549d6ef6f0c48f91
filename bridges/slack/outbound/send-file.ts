import { type Dispatcher, request } from 'undici';
import { z } from 'zod';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError, isGatewayError } from '../../../src/base/errors.js';
import type { SlackClient } from '../client.js';
import { putOff, withinTime } from '../slack-fetch.js';
import type { Landing } from './landing.js';
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
  readonly landing: Landing;
  readonly clock: Clock;
  readonly note: Note;
  /** Puts the note on disk. */
  readonly save: () => Promise<void>;
}

const UPLOAD_TIMEOUT_MS = 120_000;
/** Slack shows a file in its conversation a moment after it said so. */
const SHARING = 'sharing';
/** What became of a file is asked for so long; then it is uploaded anew. */
const LOOK_FOR_MS = 5 * 60_000;
const SHARE_METHOD = 'files.completeUploadExternal';
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
 * (S-144), once more when an earlier request can no longer take effect.
 *
 * @returns the file's id
 * @throws {GatewayError} what the client throws; `details.method` names the step
 * @throws {TooEarly} while an earlier last step may still take effect
 */
export async function sendFile(
  file: FileToSend,
  { channel, threadTs }: LookUpPlace,
  deps: SendFileDeps,
  signal: AbortSignal,
): Promise<string> {
  const { client, note, save } = deps;
  if (note.fileId !== null) {
    const shared = await isShared(note.fileId, channel, deps, signal);
    if (shared === true) return note.fileId;
    if (shared === null) note.fileId = null;
    else if (note.unsure?.path === SHARING) deps.landing.check(note.unsure);
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
  }
  const begun = deps.landing.begin(SHARING);
  note.unsure = begun;
  await save();
  const share = {
    files: [{ id: note.fileId, title: file.title ?? file.name }],
    channel_id: channel,
    ...(threadTs === null ? {} : { thread_ts: threadTs }),
    ...(file.comment === null ? {} : { initial_comment: file.comment }),
  };
  try {
    await client.call(SHARE_METHOD, share, { signal });
  } catch (error) {
    note.unsure = deps.landing.after(error, begun, SHARE_METHOD);
    throw error;
  }
  note.unsure = null;
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
  try {
    const places = await sharesOf(client, file, signal);
    return places?.flatMap((place) => place[channel] ?? [])[0]?.ts ?? null;
  } catch (error) {
    if (signal.aborted || !isGatewayError(error)) throw error;
    return null;
  }
}

/** Whether an earlier third step took effect; null when the file is gone or nobody can tell. */
async function isShared(
  file: string,
  channel: string,
  { client, note, clock }: SendFileDeps,
  signal: AbortSignal,
): Promise<boolean | null> {
  try {
    const places = await sharesOf(client, file, signal);
    note.lookingSince = null;
    return places === null ? null : places.some((place) => channel in place);
  } catch (error) {
    if (signal.aborted || !isGatewayError(error)) throw error;
    note.lookingSince ??= clock.now();
    // A second file would be worse than a late one.
    if (error.retryable && clock.now() - note.lookingSince < LOOK_FOR_MS) throw error;
    return null;
  }
}

type Shares = Readonly<Record<string, readonly { readonly ts?: string | null | undefined }[]>>;

/** Where Slack shows a file, by channel; null where it does not say. @throws {GatewayError} what the client throws */
async function sharesOf(client: SlackClient, file: string, signal: AbortSignal): Promise<readonly Shares[] | null> {
  const parsed = sharesSchema.safeParse(await client.call('files.info', { file }, { signal }));
  return parsed.success ? Object.values(parsed.data.file.shares ?? {}) : null;
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
    if (answer.statusCode === 429) throw putOff(answer.headers['retry-after'], { method: 'upload' });
    throw new GatewayError('SLACK_UNAVAILABLE', { details: { method: 'upload', status: answer.statusCode } });
  });
}

/** Hosts that get file bytes: Slack's own, and the one of a configured API address. */
export function isSlackHost(url: URL, slackApiUrl: string | undefined): boolean {
  const own = slackApiUrl === undefined ? null : URL.parse(slackApiUrl);
  if (url.host === own?.host && url.protocol === own.protocol) return true;
  return url.protocol === 'https:' && /(?:^|\.)(?:slack\.com|slack-edge\.com|slack-gov\.com)$/.test(url.hostname);
}
