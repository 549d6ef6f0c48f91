export type { Guard } from './chunk.js';
export { messageToMarkdown } from './from-message.js';
export { mrkdwnToMarkdown } from './from-mrkdwn.js';
export { NO_MENTIONS, type MentionPolicy } from './mentions.js';
export { markdownToMrkdwn, RENDER_BUDGET_MS, type RenderOptions } from './mrkdwn.js';
export type { SlackNames } from './names.js';
export { richTextToMarkdown } from './rich-text.js';
export { renderMarkdown } from './sanitize.js';
export {
  fallbackText,
  splitReply,
  MRKDWN_CHARS,
  SECTION_CHARS,
  type RenderForm,
  type ReplyPart,
  type SplitReply,
} from './split.js';
export { cutMrkdwn, escapeText } from './text.js';
