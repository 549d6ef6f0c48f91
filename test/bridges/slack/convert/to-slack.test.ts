import { describe, expect, it } from 'vitest';
import type { MentionPolicy } from '../../../../bridges/slack/convert/mentions.js';
import { markdownToMrkdwn } from '../../../../bridges/slack/convert/mrkdwn.js';
import { renderMarkdown } from '../../../../bridges/slack/convert/sanitize.js';
import { MARKDOWN_TO_MRKDWN, SANITIZED } from './pairs.js';

const policy: MentionPolicy = {
  user: (id) => id === 'U123ABC',
  channel: (id) => id === 'C123ABC',
  group: () => false,
  broadcast: false,
};

describe('Markdown to mrkdwn', () => {
  it.each(MARKDOWN_TO_MRKDWN)('S-110 %s converts byte for byte', (_id, source, result) => {
    expect(markdownToMrkdwn(source, policy)).toBe(result);
  });
});

describe('the sanitiser of the Markdown block', () => {
  it.each(SANITIZED)('S-110 %s comes out byte for byte', (_id, source, result) => {
    expect(renderMarkdown(source, policy)).toBe(result);
  });
});
