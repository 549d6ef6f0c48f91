import { randomUUID } from 'node:crypto';
import type { QueueItem } from '../../../src/store/durable-queue.js';
import { slackKey } from '../conversation.js';
import { copyRule, digest, laneOf, NOBODY, type Job } from './jobs.js';
import type { ThreadRef } from './port.js';

/** One line for the person who asked. */
export function tellItem(thread: ThreadRef, text: string, direct: boolean): QueueItem<Job> {
  const userId = thread.askerId ?? '';
  const body: Job = { kind: 'ephemeral', thread, userId, text, buttons: [], direct, response: null };
  return { id: `tell:${randomUUID()}`, lane: laneOf(body), body };
}

/** @param name - one name is told once */
export function roomErrorItem(
  thread: ThreadRef,
  name: string,
  error: { readonly text: string; readonly slackError: string; readonly ref: string },
): QueueItem<Job> {
  const body: Job = { kind: 'room_error', thread, ...error };
  return { id: `room:${digest(name)}`, lane: `room_error:${slackKey(thread)}`, body };
}

/** What is posted of a file that Slack does not take. */
export function previewItem(thread: ThreadRef, id: string, markdown: string): QueueItem<Job> {
  const body: Job = {
    kind: 'post',
    thread,
    post: 'reply',
    markdown,
    mentions: copyRule(NOBODY),
    speaker: null,
    buttons: [],
    broadcast: false,
  };
  return { id: `preview:${digest(id)}`, lane: laneOf(body), body };
}
