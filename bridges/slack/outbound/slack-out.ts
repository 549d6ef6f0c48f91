import { randomUUID } from 'node:crypto';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../../src/base/clock.js';
import { GatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import type { Metrics } from '../../../src/base/metrics.js';
import { hasVisibleText } from '../../../src/core/visible-text.js';
import type { StateStore } from '../../../src/store/port.js';
import type { QueueRecord } from '../../../src/store/queue-records.js';
import { slackKey } from '../conversation.js';
import type { SlackOptions } from '../settings.js';
import { FaultDesk, type OutInstallation, type Ready, type WriteEnd } from './faults.js';
import { safeFileName } from './file-name.js';
import { copyRule, digest, laneOf, NOBODY, referenceOf, type Job, type PostJob } from './jobs.js';
import { outboundMeters } from './meters.js';
import { Moves } from './moves.js';
import { Notes } from './notes.js';
import { NOTHING, Outbox, type Done, type Ended, type JobEnd } from './outbox.js';
import { roomErrorItem } from './outbox-items.js';
import { Parks } from './parks.js';
import type { ParkInfo, ReplyDraft, SentState, SlackOut, ThreadRef, UploadState } from './port.js';
import { Landing } from './landing.js';
import { createPostOnce } from './post-once.js';
import { createPostWriter } from './post-writer.js';
import { createRelocation, type RelocationDeps } from './relocation.js';
import { ProgressBoard } from './progress.js';
import { createSmallWriters, runHook } from './small-writers.js';
import { StatusBoard } from './status.js';
import { Tells } from './tells.js';
import { checkFileSize, createUploadWriter, FileChunks } from './upload-writer.js';

/** What a room learns of something that did not reach Slack. */
export interface RoomError {
  readonly text: string;
  /** For the event's metadata `slack_error`. */
  readonly slackError: string;
  /** For the event's metadata `slack_ref`. */
  readonly ref: string;
}

export interface SlackOutDeps {
  readonly store: StateStore;
  /** E.g. `slack/helpdesk`: the outbox stands under it, and beside it what belongs to the outbox. */
  readonly prefix: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly options: Pick<
    SlackOptions,
    | 'render'
    | 'maxParts'
    | 'unfurlLinks'
    | 'unfurlMedia'
    | 'showToolProgress'
    | 'writeToolNames'
    | 'status'
    | 'statusText'
    | 'autoJoin'
    | 'slackApiUrl'
  >;
  readonly dispatcher?: Dispatcher | undefined;
  /** Numbers in [0, 1); default Math.random. */
  readonly random?: () => number;
  /** Null until the app's token has worked; its records wait for `resume` with `token`. */
  installation(slug: string, team: string): OutInstallation | null;
  /** Posts an `error` event into the thread's room. Repeated until it resolves; for an unbound thread there is nothing to do. */
  roomError(thread: ThreadRef, error: RoomError, signal: AbortSignal): Promise<void>;
  /** The thread's first message is gone and it goes on under another: rebind. Repeated until it resolves. */
  threadMoved(thread: ThreadRef, newThreadTs: string, signal: AbortSignal): Promise<void>;
  /** See {@link RelocationDeps.replies}; left out, none are known. */
  readonly replies?: RelocationDeps['replies'];
  /** The thread's channel is out of reach for good. */
  unreachable(thread: ThreadRef): Promise<void>;
  /** Refreshes a rotated token; left out, there is nothing to refresh. */
  readonly refresh?: (slug: string, team: string, signal: AbortSignal) => Promise<boolean>;
}

const DEFAULT_GRACE_MS = 5_000;

/**
 * Opens everything that writes into Slack. A write goes: `reply` → outbox (on disk) → lane of its channel → pace of its
 * method → Slack, once. What Slack refuses gets another form, waits for its event, or ends as a dead letter of which
 * the room and the person hear.
 */
export async function createSlackOut(deps: SlackOutDeps): Promise<SlackOut> {
  const { store, prefix, clock, log, options, random = Math.random } = deps;
  const meters = outboundMeters(deps.metrics);
  const parks = await Parks.open(store, `${prefix}/parks`, clock);
  const moves = await Moves.open(store, `${prefix}/moves`, clock);
  const tells = await Tells.open(store, `${prefix}/told`, clock);
  const landing = new Landing(clock);
  const notes = new Notes(store, `${prefix}/notes`);
  const chunks = new FileChunks(store, `${prefix}/files`);
  const outbox = await Outbox.open({
    store,
    prefix: `${prefix}/outbox`,
    clock,
    log,
    meters,
    notes,
    tells,
    write: (record, signal) => write(record, signal),
    leavings: ({ id, body }) => (body.kind === 'upload' ? chunks.forget(id, body.chunks) : []),
  });

  const desk = new FaultDesk({
    clock,
    log,
    parks,
    autoJoin: options.autoJoin,
    random,
    refresh: deps.refresh,
    tell: (thread, cause, notice, direct) => outbox.tell(thread, cause, notice, direct),
    unreachable: async (thread) => {
      try {
        await deps.unreachable(thread);
      } catch (error) {
        log.error({ err: error, channel: thread.channel }, 'a channel out of reach could not be marked');
      }
    },
  });
  const places = createRelocation({
    moves,
    replies: (thread) => deps.replies?.(thread) ?? Promise.resolve([]),
    moved: async (thread, newTs) => {
      const id = `moved:${digest(slackKey(thread), newTs)}`;
      await outbox.inbox.accept({ id, lane: `moved:${slackKey(thread)}`, body: { kind: 'moved', thread, newTs } });
    },
  });
  const ready = readyFor((thread) => thread);
  /** The channel of a person's notice may be closed: only the installation counts. */
  const installed = readyFor((thread) => ({ ...thread, channel: '' }));
  const shared = {
    desk,
    notes,
    log,
    places,
    chunks,
    ready,
    installed: async (record: QueueRecord<Job>, signal: AbortSignal) => {
      const found = await installed(record, signal);
      if (typeof found === 'string') throw new GatewayError('SLACK_NOT_INSTALLED', { details: { cause: found } });
      return found;
    },
    files: { dispatcher: deps.dispatcher, slackApiUrl: options.slackApiUrl, landing, clock },
  };
  const postOnce = createPostOnce({ notes, landing, clock, log, ambiguous: meters.ambiguous });
  const writePost = createPostWriter({
    ...shared,
    options,
    postOnce,
    fallbacks: meters.fallbacks,
  });
  const writeUpload = createUploadWriter(shared);
  const small = createSmallWriters({
    ...shared,
    clock,
    post: async (id, thread, markdown, buttons) => {
      const body = postJob(thread, { markdown, kind: 'notice', buttons });
      await outbox.inbox.accept({ id, lane: laneOf(body), body });
    },
  });

  const surroundings = {
    clock,
    log,
    signal: outbox.signal,
    installation: (thread: ThreadRef) => (parks.find(thread) ? null : deps.installation(thread.slug, thread.team)),
    threadTs: (thread: ThreadRef) => places.threadTs(thread),
  };
  const status = new StatusBoard({ ...surroundings, status: options.status, statusText: options.statusText });
  const progress = new ProgressBoard({
    ...surroundings,
    store,
    prefix: `${prefix}/progress`,
    ambiguous: meters.ambiguous,
    enabled: options.showToolProgress,
    writeToolNames: options.writeToolNames,
    repliesWait: (thread) => outbox.laneDepth(laneOf({ kind: 'post', thread })) > 0,
    posted: (thread) => {
      status.posted(thread);
    },
  });

  await progress.load();

  /** Waits for what is parked, then for the installation. */
  function readyFor(place: (thread: ThreadRef) => ThreadRef): Ready {
    return async (record, signal) => {
      const { thread } = record.body;
      let told = false;
      for (;;) {
        const expired = await parks.free(place(thread), record.putAt, signal, (park) => {
          outbox.stick(record.lane);
          if (!told) tellRoom(record, park);
          told = true;
        });
        if (expired !== null) return expired;
        const found = deps.installation(thread.slug, thread.team);
        if (found) {
          outbox.unstick(record.lane);
          return found;
        }
        outbox.stick(record.lane);
        await parks.nextChange(signal);
      }
    };
  }

  /** A room whose words wait for the whole installation hears of it once. */
  function tellRoom({ id, body }: QueueRecord<Job>, park: ParkInfo): void {
    if (park.channel !== null || (body.kind !== 'post' && body.kind !== 'upload')) return;
    const { thread } = body;
    const text = `Slack takes nothing from this app at the moment (${park.cause}); what it has to say waits.`;
    const error = { text, slackError: park.cause, ref: referenceOf(id) };
    outbox.inbox.accept(roomErrorItem(thread, `${slackKey(thread)}:${park.since}`, error)).catch((failure: unknown) => {
      log.warn({ err: failure }, 'a room could not be told that Slack takes nothing');
    });
  }

  async function write(record: QueueRecord<Job>, signal: AbortSignal): Promise<JobEnd> {
    const { body } = record;
    switch (body.kind) {
      case 'post': {
        const end = await writePost({ ...record, body }, signal);
        if (end.kind !== 'sent') return end;
        if (body.post !== 'reply' && body.post !== 'relay') status.posted(body.thread);
        return { kind: 'sent', result: { ...end.result, fileId: null } };
      }
      case 'upload': {
        const end = await writeUpload({ ...record, body }, signal);
        return end.kind === 'sent' ? { kind: 'sent', result: { ...NOTHING, ...end.result } } : end;
      }
      case 'ephemeral':
        return sentOr(await small.ephemeral({ ...record, body }, signal));
      case 'edit':
        return sentOr(await small.edit({ ...record, body }, signal));
      case 'reaction':
        return sentOr(await small.reaction({ ...record, body }, signal));
      case 'room_error': {
        const { thread, text, slackError, ref } = body;
        const post = () => deps.roomError(thread, { text, slackError, ref }, signal);
        return sentOr(await runHook(record, shared, post, signal));
      }
      case 'moved':
        return sentOr(await runHook(record, shared, () => deps.threadMoved(body.thread, body.newTs, signal), signal));
    }
  }

  return {
    async reply(thread, draft) {
      requireText(draft.markdown);
      const end = await outbox.put(outboxId(draft.id), postJob(thread, draft), draft.waitMs ?? 0);
      return stateOf<SentState>(end, ({ ts, permalink }) => ({ state: 'sent', ts, permalink }));
    },

    async ephemeral(thread, userId, { id, text, buttons = [], response = null }) {
      requireText(text);
      const way = response && { ...response };
      const body: Job = {
        kind: 'ephemeral',
        thread: plain(thread),
        userId,
        text,
        buttons: [...buttons],
        direct: false,
        response: way,
      };
      await outbox.put(outboxId(id), body, 0);
    },

    async edit(thread, ts, { id, markdown, buttons = [] }) {
      requireText(markdown);
      await outbox.put(outboxId(id), { kind: 'edit', thread: plain(thread), ts, markdown, buttons: [...buttons] }, 0);
    },

    async upload(thread, draft) {
      const { filename, bytes, title, comment, mentions = NOBODY } = draft;
      checkFileSize(bytes);
      const id = outboxId(draft.id);
      const count = outbox.has(id) ? 0 : await chunks.put(id, bytes);
      const body: Job = {
        kind: 'upload',
        thread: plain(thread),
        filename: safeFileName(filename),
        title: title === undefined ? null : safeTitle(title),
        comment: comment === undefined || !hasVisibleText(comment) ? null : comment,
        mentions: copyRule(mentions),
        length: bytes.byteLength,
        chunks: count,
      };
      const end = await outbox.put(id, body, draft.waitMs ?? 0);
      // An id that was sent long ago needs no bytes.
      if (count > 0 && !outbox.has(id)) await store.batch(chunks.forget(id, count));
      return stateOf<UploadState>(end, ({ fileId, permalink }) => ({ state: 'sent', fileId: fileId ?? '', permalink }));
    },

    async react(thread, ts, emoji, on) {
      await outbox.put(`reaction:${randomUUID()}`, { kind: 'reaction', thread: plain(thread), ts, emoji, on }, 0);
    },

    progress: (thread, turnId, buttons = []) => progress.open(plain(thread), turnId, buttons),
    status: (thread) => status.of(plain(thread)),

    async resume(event) {
      outbox.unstickWaiting();
      await parks.resume(event);
      if (event.kind === 'token') progress.closeLeftovers(event.slug, event.team);
    },
    async suspend(slug, team, cause) {
      const park = { kind: 'park', what: 'installation', until: 'new_token', atMostMs: null } as const;
      if (!(await parks.add({ slug, team, channel: '' }, park, cause))) return;
      log.error({ app: slug, team, slackError: cause }, 'Slack installation parked');
    },
    parks: () => parks.list(),

    async start() {
      await chunks.sweep((id) => outbox.has(id));
      await notes.sweep((id) => outbox.has(id));
      outbox.start();
    },
    async stop(graceMs = DEFAULT_GRACE_MS) {
      status.stop();
      await outbox.stop(graceMs);
    },
    async idle() {
      await outbox.quiet();
      await progress.settled();
      await status.settled();
    },
    queues: () => [{ name: 'outbox', depth: outbox.depth, dead: outbox.deadCount }],
    deadLetters: outbox.deadLetters,
  };
}

function postJob(thread: ThreadRef, draft: Omit<ReplyDraft, 'id' | 'waitMs'>): PostJob {
  const { markdown, kind, mentions = NOBODY, speaker = null, buttons = [], broadcast = false } = draft;
  const copied = { mentions: copyRule(mentions), speaker, buttons: [...buttons] };
  return { kind: 'post', thread: plain(thread), post: kind, markdown, ...copied, broadcast };
}

const sentOr = (end: WriteEnd<null>): JobEnd => (end.kind === 'sent' ? { kind: 'sent', result: NOTHING } : end);

function stateOf<S extends SentState | UploadState>(end: Ended | null, sent: (done: Done) => S): S {
  if (!end) return { state: 'queued' } as S;
  if (end.state === 'sent') return sent(end.done);
  return { state: 'failed', error: end.slackError, detail: end.detail } as S;
}

/** Ids of callers may hold anything of any length; what stands in a store key may not. */
const outboxId = (id: string): string => (/^[!-~]{1,200}$/.test(id) ? id : digest(id));

const plain = ({ slug, team, channel, threadTs, askerId }: ThreadRef): ThreadRef => ({
  slug,
  team,
  channel,
  threadTs,
  askerId,
});

const safeTitle = (title: string): string =>
  title
    .replace(/[\p{Cc}<>]+/gu, ' ')
    .trim()
    .slice(0, 200);

function requireText(markdown: string): void {
  if (!hasVisibleText(markdown)) throw new GatewayError('SLACK_EMPTY');
}
