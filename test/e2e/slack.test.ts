import { describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { startHouse } from '../support/slack/house.js';

describe('Slack through the whole house', () => {
  it('S-016 answers a mention in its thread with no more than two tokens', async () => {
    const house = await startHouse();
    const said = house.alice.says('#general', '@gateway hello **there**');
    const [answer] = await house.hears(house.general, said.ts, 1);
    expect(answer).toContain('echo:');
    expect(answer).toContain('hello');
    house.slack.check();
  });

  it('S-065 takes a follow-up without a mention, into the same room', async () => {
    const house = await startHouse();
    const said = house.alice.says('#general', '@gateway one');
    await house.hears(house.general, said.ts, 1);
    house.alice.replies(said, 'two');
    const answers = await house.hears(house.general, said.ts, 2);
    expect(answers[1]).toContain('two');
    expect(house.sandbox.dev.state().rooms).toHaveLength(1);
  });

  it('S-060 answers a direct message', async () => {
    const house = await startHouse();
    const said = house.alice.says('dm', 'hello');
    expect((await house.hears(said.channel, said.ts, 1))[0]).toContain('hello');
  });

  it('S-072 goes on in the same room after a restart', async () => {
    const house = await startHouse();
    const said = house.alice.says('#general', '@gateway one');
    await house.hears(house.general, said.ts, 1);
    await house.restart();
    house.alice.replies(said, 'two');
    await house.hears(house.general, said.ts, 2);
    expect(house.sandbox.dev.state().rooms).toHaveLength(1);
  });

  it('S-195 finds what was written while it was down', async () => {
    const house = await startHouse();
    const said = house.alice.says('#general', '@gateway one');
    await house.hears(house.general, said.ts, 1);
    await house.stopBridge();
    house.app.subscriptions.clear();
    house.alice.replies(said, 'while you were away');
    await house.restart();
    const answers = await house.hears(house.general, said.ts, 2);
    expect(answers[1]).toContain('while you were away');
  });

  it('S-120 a brain of one’s own answers by slack_send_message', async () => {
    const inner = new GenericAdapter(async ({ message, tools }) => {
      await tools.executeToolCall('slack_send_message', { content: `# Hi\nyou said ${message.content}` });
    });
    const house = await startHouse({ inner });
    const said = house.alice.says('#general', '@gateway ping');
    expect((await house.hears(house.general, said.ts, 1))[0]).toContain('ping');
  });
});
