import { describe, expect, it } from 'vitest';
import { mrkdwnToMarkdown } from '../../../../bridges/slack/convert/from-mrkdwn.js';
import { knownNames } from './known-names.js';
import { MRKDWN_TO_MARKDOWN } from './pairs.js';

describe('mrkdwn to Markdown', () => {
  it.each(MRKDWN_TO_MARKDOWN)('S-110 %s converts byte for byte', (_id, source, result) => {
    expect(mrkdwnToMarkdown(source, knownNames)).toBe(result);
  });
});
