import { z } from 'zod';
import type { Logger } from '../../../../src/base/log.js';
import type { QueueRecord } from '../../../../src/store/queue-records.js';
import { escapeText } from '../../convert/index.js';
import { judgeFault, slackErrorOf } from '../../errors.js';
import type { Installation } from '../../installations.js';
import type { SlackOut, ThreadRef } from '../../outbound/port.js';
import type { SlackActionDelivery, SlackShortcutDelivery, SlackViewDelivery } from '../../parse.js';
import type { SlackIdentity } from '../../web-methods.js';
import type { Asks } from '../asks.js';
import { responseWay, type AskedAbout, type Controls } from '../controls.js';
import type { SlackRecord } from '../records.js';
import { refuses } from './commands.js';

/** What the shortcut of a message is called in the app's manifest, and the form that it opens. */
export const ASK_CALLBACK = 'band_ask';

export interface FormDeps {
  readonly served: boolean;
  readonly controls: Controls;
  readonly asks: Asks;
  readonly out: SlackOut;
  readonly log: Logger;
}

/** A question about a message: shortcut → form → the question in that message's thread (S-170). */
export interface AskForm {
  /** Somebody picked the shortcut of a message. */
  open(
    delivery: SlackShortcutDelivery,
    installation: Installation,
    identity: SlackIdentity,
    record: QueueRecord<SlackRecord>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Somebody asks for the form once more, since Slack found the first try too late. */
  reopen(
    control: { readonly thread: ThreadRef; readonly about: AskedAbout; readonly value: string },
    delivery: SlackActionDelivery,
    installation: Installation,
  ): Promise<void>;
  /** Somebody submitted it. */
  submit(
    delivery: SlackViewDelivery,
    installation: Installation,
    identity: SlackIdentity,
    record: QueueRecord<SlackRecord>,
    signal: AbortSignal,
  ): Promise<void>;
}

const QUESTION = { block: 'question', action: 'text' } as const;
const MAX_QUESTION_CHARS = 3_000;
const MAX_QUOTED_CHARS = 20_000;

const metadataSchema = z.object({ value: z.string(), channel: z.string() });
const valuesSchema = z.looseObject({
  [QUESTION.block]: z.looseObject({ [QUESTION.action]: z.looseObject({ value: z.string().nullish() }) }),
});

export function createAskForm({ served, controls, asks, out, log }: FormDeps): AskForm {
  const show = async (
    { value, thread, about }: { readonly value: string; readonly thread: ThreadRef; readonly about: AskedAbout },
    { userId, triggerId }: { readonly userId: string; readonly triggerId: string | null },
    { client, app }: Installation,
    again: boolean,
    signal?: AbortSignal,
  ): Promise<void> => {
    try {
      const args = { trigger_id: triggerId ?? '', view: formOf({ value, channel: thread.channel }) };
      await client.call('views.open', args, { signal, whenPutOff: 'throw' });
    } catch (error) {
      if (signal?.aborted) throw error;
      // The first try took effect although nobody heard so.
      if (again && slackErrorOf(error) === 'exchanged_trigger_id') return;
      log.info({ err: error, app: app.slug }, 'a form could not be opened');
      const { notice } = judgeFault(error, 'views.open');
      await out.ephemeral(thread, userId, {
        id: `form:${value}:${triggerId ?? ''}`,
        text: notice ?? 'Slack did not show the form. Please try again.',
        buttons: [{ action: 'ask', value }],
        response: about.response,
      });
    }
  };

  return {
    async open(delivery, installation, identity, record, signal) {
      const { callbackId, scope, userId, channel, messageTs, threadTs } = delivery;
      if (!served || callbackId !== ASK_CALLBACK || scope !== 'message' || channel === null || messageTs === null) {
        log.debug({ app: installation.app.slug, scope }, 'a shortcut that is not served');
        return;
      }
      const thread: ThreadRef = {
        slug: installation.app.slug,
        team: delivery.teamId ?? identity.teamId,
        channel,
        threadTs: threadTs ?? messageTs,
        askerId: userId,
      };
      const response = responseWay(delivery.responseUrl, record.putAt);
      if (await refuses(delivery, installation, identity)) {
        const text = 'I am not set up to answer you here.';
        await out.ephemeral(thread, userId, { id: `${record.id}:refused`, text, response });
        return;
      }
      const about = { quoted: delivery.messageText.slice(0, MAX_QUOTED_CHARS), response };
      const value = await controls.form(thread, about);
      await show({ value, thread, about }, delivery, installation, record.maybeDelivered, signal);
    },

    async reopen(control, delivery, installation) {
      await show(control, delivery, installation, false);
    },

    async submit(delivery, installation, identity, record, signal) {
      if (delivery.closed || delivery.callbackId !== ASK_CALLBACK) return;
      const { userId } = delivery;
      const metadata = readMetadata(delivery.privateMetadata);
      const found = metadata && (await controls.asked(metadata.value));
      const thread: ThreadRef = found?.thread ?? {
        slug: installation.app.slug,
        team: delivery.teamId ?? identity.teamId,
        channel: metadata?.channel ?? '',
        threadTs: '',
        askerId: userId,
      };
      const tell = async (text: string): Promise<void> => {
        const response = found?.about.response ?? null;
        await out.ephemeral(thread, userId, { id: `${record.id}:told`, text, response });
      };
      const question = questionOf(delivery.values);
      if (!found || question === '') {
        await tell('This form is too old. Please pick the shortcut again.');
        return;
      }
      if (await refuses({ ...delivery, channel: thread.channel }, installation, identity)) {
        await tell('I am not set up to answer you here.');
        return;
      }
      const { channel, threadTs } = thread;
      const opening = { channel, threadTs, userId, does: 'asks:', words: escapeText(question) };
      const about = found.about.quoted;
      const opened = await asks.ask({ ...opening, about }, delivery, identity, installation, record, signal);
      if (opened.kind === 'refused') await tell(opened.why);
      await controls.close(metadata.value);
    },
  };
}

/** The form as Slack shows it; what it is about is looked up when it comes back. */
function formOf(metadata: z.infer<typeof metadataSchema>): Readonly<Record<string, unknown>> {
  const plain = (text: string) => ({ type: 'plain_text', text, emoji: false });
  return {
    type: 'modal',
    callback_id: ASK_CALLBACK,
    private_metadata: JSON.stringify(metadata),
    title: plain('Ask about a message'),
    submit: plain('Ask'),
    close: plain('Cancel'),
    blocks: [
      {
        type: 'input',
        block_id: QUESTION.block,
        label: plain('Your question'),
        hint: plain('It is posted in the thread of the message, and answered there.'),
        element: {
          type: 'plain_text_input',
          action_id: QUESTION.action,
          multiline: true,
          max_length: MAX_QUESTION_CHARS,
          focus_on_load: true,
        },
      },
    ],
  };
}

function readMetadata(text: string): z.infer<typeof metadataSchema> | null {
  try {
    return metadataSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null; // Not ours: the caller says that the form is too old.
  }
}

function questionOf(values: Readonly<Record<string, unknown>>): string {
  const parsed = valuesSchema.safeParse(values);
  return parsed.success ? (parsed.data[QUESTION.block][QUESTION.action].value ?? '').trim() : '';
}
