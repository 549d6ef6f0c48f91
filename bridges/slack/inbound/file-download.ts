import { open, rename, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { request, type Dispatcher } from 'undici';
import { childSignal } from '../../../src/base/async.js';
import type { Clock } from '../../../src/base/clock.js';

const MAX_REDIRECTS = 5;
const DOWNLOAD_TIMEOUT_MS = 60_000;

export type DownloadFailure =
  | 'not_found'
  /** Slack showed its sign-in page: the token lacks `files:read`, or the app was not reinstalled since. */
  | 'missing_scope'
  | 'refused_host'
  | 'too_large'
  | 'unavailable'
  | 'not_stored';

export type DownloadResult =
  { readonly ok: true; readonly bytes: number } | { readonly ok: false; readonly why: DownloadFailure };

export interface DownloadDeps {
  readonly token: string;
  /** Its host may serve files as well: GovSlack, tests. */
  readonly slackApiUrl: string | undefined;
  readonly dispatcher: Dispatcher | undefined;
  readonly clock: Clock;
}

export interface DownloadJob {
  readonly url: string;
  /** Where the bytes go; nothing is left there after a failure. */
  readonly path: string;
  /** Counted on what is read, since the declared size may be anything. */
  readonly limitBytes: number;
  readonly htmlExpected: boolean;
}

/** Whether the workspace's token may be sent to this address: Slack's own hosts over TLS, and the configured API host. */
export function mayCarryToken(url: URL, slackApiUrl: string | undefined): boolean {
  if (slackApiUrl !== undefined) {
    const api = new URL(slackApiUrl);
    if (url.protocol === api.protocol && url.host === api.host) return true;
  }
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '') return false;
  return /(?:^|\.)slack\.com$/.test(url.hostname) || url.hostname.endsWith('.slack-edge.com');
}

/** Streams one file of Slack's to disk. Never throws, except for an abort. */
export async function downloadFile(job: DownloadJob, deps: DownloadDeps, signal: AbortSignal): Promise<DownloadResult> {
  using child = childSignal(signal);
  const cancel = deps.clock.after(DOWNLOAD_TIMEOUT_MS, () => {
    child.abort(new Error('the download took too long'));
  });
  const partial = `${job.path}.part`;
  try {
    const answer = await follow(job.url, deps, child.signal);
    if ('why' in answer) return { ok: false, why: answer.why };
    const bytes = await store(answer.body, partial, job.limitBytes, htmlIn(answer.contentType, job));
    if (typeof bytes === 'string') return { ok: false, why: bytes };
    await rename(partial, job.path);
    return { ok: true, bytes };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { ok: false, why: isDiskError(error) ? 'not_stored' : 'unavailable' };
  } finally {
    cancel();
    await rm(partial, { force: true });
  }
}

const htmlIn = (contentType: string, job: DownloadJob): boolean =>
  /^text\/html\b/i.test(contentType) && !job.htmlExpected;

interface Answer {
  readonly body: Readable;
  readonly contentType: string;
}

/** Redirects are followed inside the list of hosts only, so the token never leaves it (S-142). */
async function follow(
  start: string,
  deps: DownloadDeps,
  signal: AbortSignal,
): Promise<Answer | { why: DownloadFailure }> {
  let target = parseUrl(start);
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    if (!target || !mayCarryToken(target, deps.slackApiUrl)) return { why: 'refused_host' };
    const { statusCode, headers, body } = await request(target, {
      headers: { authorization: `Bearer ${deps.token}` },
      signal,
      ...(deps.dispatcher ? { dispatcher: deps.dispatcher } : {}),
    });
    if (statusCode === 200) return { body, contentType: first(headers['content-type']) };
    await body.dump();
    const location = first(headers['location']);
    if (statusCode < 300 || statusCode >= 400 || location === '') return { why: failureOf(statusCode) };
    target = parseUrl(location, target.href);
  }
  return { why: 'unavailable' };
}

const parseUrl = (text: string, base?: string): URL | null => (URL.canParse(text, base) ? new URL(text, base) : null);
const first = (header: string | string[] | undefined): string => (Array.isArray(header) ? header[0] : header) ?? '';

function failureOf(status: number): DownloadFailure {
  if (status === 401 || status === 403) return 'missing_scope';
  return status === 404 || status === 410 ? 'not_found' : 'unavailable';
}

async function store(
  body: Readable,
  path: string,
  limitBytes: number,
  signInPage: boolean,
): Promise<number | DownloadFailure> {
  // Leaving a body unread is reported on it as an error, which is no news here.
  body.on('error', () => undefined);
  if (signInPage) {
    body.destroy();
    return 'missing_scope';
  }
  const file = await open(path, 'w', 0o600);
  try {
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength;
      if (bytes > limitBytes) return 'too_large';
      await file.write(chunk);
    }
    return bytes;
  } finally {
    await file.close();
  }
}

const isDiskError = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && 'syscall' in error && 'path' in error;
