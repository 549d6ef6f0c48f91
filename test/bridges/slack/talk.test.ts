import { describe, expect, it } from 'vitest';
import { startBridge } from '../../support/slack/bridge-lab.js';

describe('a person and the agent', () => {
  it('a mention is answered in its thread', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway hello *there*');
    expect(await lab.answered(said)).toEqual(['echo: hello **there**']);
    lab.slack.check();
  });
});
