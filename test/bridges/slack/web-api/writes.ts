import { randomUUID } from 'node:crypto';
import type { FaultEffect } from '../../../support/slack/faults.js';
import type { OutLab } from '../outbound/lab.js';

/** Slack's word for a refusal, with HTTP 200. */
export const error = (word: string, extra: Record<string, unknown> = {}): FaultEffect => ({
  kind: 'error',
  error: word,
  extra,
});

/** Every way in which the bridge writes, by the method that it ends in. */
export const WRITES = {
  'chat.postMessage': (lab: OutLab) => lab.reply('hello'),
  'chat.postEphemeral': (lab: OutLab) =>
    lab.out.ephemeral(lab.thread, lab.alice.id, { id: randomUUID(), text: 'only you' }),
  'chat.update': async (lab: OutLab) => {
    await lab.out.edit(lab.thread, await ownMessage(lab), { id: randomUUID(), markdown: 'edited' });
  },
  'files.getUploadURLExternal': (lab: OutLab) => upload(lab),
  'files.completeUploadExternal': (lab: OutLab) => upload(lab),
  'reactions.add': (lab: OutLab) => lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', true),
  'reactions.remove': async (lab: OutLab) => {
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', true);
    await lab.pass(1_000, 500);
    await lab.out.react(lab.thread, lab.thread.threadTs, 'eyes', false);
  },
} as const;
export type WriteMethod = keyof typeof WRITES;

export const upload = (lab: OutLab, more: { readonly comment?: string; readonly waitMs?: number } = {}) =>
  lab.out.upload(lab.thread, { id: randomUUID(), filename: 'notes.txt', bytes: Buffer.from('some notes'), ...more });

/** A message of the bot in the thread, made now where there is none. */
export async function ownMessage(lab: OutLab): Promise<string> {
  const [known] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
  if (known) return known.ts;
  await lab.reply('to be edited', { kind: 'notice' });
  await lab.pass(1_000, 500);
  return lab.slack.botMessages(lab.general, lab.thread.threadTs)[0]!.ts;
}

/** Whether what {@link WRITES} writes can be seen. */
export function isThere(lab: OutLab, method: WriteMethod): boolean {
  const posts = lab.slack.botMessages(lab.general, lab.thread.threadTs);
  const marks = lab.general.messages.find(({ ts }) => ts === lab.thread.threadTs)!.reactions.length;
  switch (method) {
    case 'chat.postMessage':
      return posts.filter(({ shown }) => shown === 'hello').length === 1;
    case 'chat.postEphemeral':
      return lab.slack.ephemerals(lab.general, lab.alice.id).some(({ shown }) => shown === 'only you');
    case 'chat.update':
      return posts.filter(({ shown }) => shown === 'edited').length === 1;
    case 'files.getUploadURLExternal':
    case 'files.completeUploadExternal':
      return posts.filter(({ files }) => files.length > 0).length === 1;
    case 'reactions.add':
      return marks === 1;
    case 'reactions.remove':
      return marks === 0;
  }
}

/** What somebody got in the channel for their eyes only. */
export const told = (lab: OutLab): string[] => lab.slack.ephemerals(lab.general, lab.alice.id).map(({ text }) => text);

/** What somebody got from the bot by direct message. */
export const toldDirectly = (lab: OutLab): string[] => {
  const channel = lab.slack.directChannel(lab.alice.user, lab.bot);
  return lab.slack
    .messages(channel)
    .filter(({ fromBot }) => fromBot)
    .map(({ text }) => text);
};

export const deadCodes = async (lab: OutLab): Promise<string[]> =>
  (await lab.out.deadLetters.list()).map(({ code }) => code);

/** Calls of a method in #general. */
export const callsInGeneral = (lab: OutLab, method: string) =>
  lab.slack.calls(method).filter(({ args }) => [args['channel'], args['channel_id']].includes(lab.general.id));
