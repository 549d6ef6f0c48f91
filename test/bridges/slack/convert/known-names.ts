import type { SlackNames } from '../../../../bridges/slack/convert/names.js';

/** The people and places of the conversion pairs. */
export const knownNames: SlackNames = {
  ownUserId: 'U0BOT00',
  team: 'T1',
  user: (id) => ({ U123ABC: 'Alice', U999ZZZ: 'Bob [QA]' })[id] ?? null,
  channel: (id) => ({ C123ABC: 'general' })[id] ?? null,
  group: (id) => ({ S123ABC: 'devs' })[id] ?? null,
};
