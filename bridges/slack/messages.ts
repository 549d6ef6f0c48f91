import { z } from 'zod';

const text = z.string().nullish();

/** A file as it stands in a message; which of its fields are set depends on `mode` and `file_access`. */
export const slackFileSchema = z.looseObject({
  id: z.string(),
  name: text,
  title: text,
  mimetype: text,
  filetype: text,
  size: z.number().nullish(),
  mode: text,
  file_access: text,
  is_external: z.boolean().nullish(),
  external_url: text,
  url_private: text,
  url_private_download: text,
  permalink: text,
});
export type SlackFile = z.infer<typeof slackFileSchema>;

/** A message in an event, a thread or a channel's history. A field of an unexpected kind counts as absent. */
export const slackMessageSchema = z.looseObject({
  type: z.string().catch('message'),
  subtype: text.catch(null),
  ts: z.string(),
  thread_ts: text.catch(null),
  parent_user_id: text.catch(null),
  user: text.catch(null),
  username: text.catch(null),
  bot_id: text.catch(null),
  app_id: text.catch(null),
  team: text.catch(null),
  user_team: text.catch(null),
  source_team: text.catch(null),
  text: text.catch(null),
  blocks: z
    .array(z.looseObject({ type: z.string() }))
    .nullish()
    .catch(null),
  attachments: z.array(z.looseObject({})).nullish().catch(null),
  files: z.array(slackFileSchema).nullish().catch(null),
  edited: z.looseObject({ ts: text, user: text }).nullish().catch(null),
  metadata: z
    .looseObject({ event_type: text, event_payload: z.looseObject({}).nullish() })
    .nullish()
    .catch(null),
  client_msg_id: text.catch(null),
  permalink: text.catch(null),
  app_context: z.looseObject({}).nullish().catch(null),
});
export type SlackMessage = z.infer<typeof slackMessageSchema>;
