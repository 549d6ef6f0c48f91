import { describe, expect, it } from 'vitest';
import { openOut } from './lab.js';

describe('a reply', () => {
  it('S-112 is posted once as a Markdown block with a text for notifications, into its thread', async () => {
    const lab = await openOut();
    const sent = await lab.reply('**bold** and `code`', { waitMs: 5_000 });
    const [message] = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(sent).toEqual({
      state: 'sent',
      ts: [message!.ts],
      permalink: `https://acme.slack.com/archives/C07ROOMS001/p${message!.ts.replace('.', '')}?thread_ts=${lab.thread.threadTs}&cid=C07ROOMS001`,
    });
    expect(message!.blocks).toEqual([{ type: 'markdown', text: '**bold** and `code`' }]);
    expect(message!.text).toBe('*bold* and `code`');
  });
});
