import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../../src/base/errors.js';
import { withCustomTools } from '../../../../src/core/custom-tools.js';
import { Turn } from '../../../../src/core/turn.js';
import { FakeAgentTools } from '../../../../src/testing/fake-agent-tools.js';
import { z } from 'zod';
import { withProgress, withSlackTools } from '../../../../bridges/slack/inbound/brain-tools.js';
import { createFakeSlackOut } from '../../../support/slack/fake-out.js';

const thread = { slug: 'main', team: 'T1', channel: 'C1', threadTs: '1.1', askerId: 'U1' };
const mentions = { users: ['U1'], groups: false, broadcast: false, channels: 'any' } as const;

function setUp(readFile: (id: string, offset: number) => Promise<unknown> = () => Promise.resolve(null)) {
  const out = createFakeSlackOut();
  const turn = new Turn();
  const room = new FakeAgentTools({ turn });
  let shown = 0;
  const tools = withSlackTools(room, {
    out,
    thread,
    turnId: 'turn-1',
    mentions,
    readFile,
    show: () => Promise.resolve(void (shown += 1)),
  });
  return { out, turn, room, tools, shown: () => shown };
}

describe('the tools of a bound room', () => {
  it('S-120 the reply tool is offered in both shapes beside the room’s own, and never by the plain tools', () => {
    const { tools, room } = setUp();
    const openai = tools.getToolSchemas('openai').map((schema) => schema.function.name);
    const anthropic = tools.getToolSchemas('anthropic').map((schema) => schema.name);
    for (const names of [openai, anthropic])
      expect(names).toEqual(expect.arrayContaining(['slack_send_message', 'band_send_message']));
    expect(room.getToolSchemas('openai').map((schema) => schema.function.name)).not.toContain('slack_send_message');
    const schema = tools.getToolSchemas('anthropic').find(({ name }) => name === 'slack_send_message');
    expect(schema?.input_schema).toMatchObject({ required: ['content'], properties: { content: { type: 'string' } } });
  });

  it('S-120 a reply goes to the thread, is durable first, says where it stands, and never reaches Band', async () => {
    const { tools, out, room, turn, shown } = setUp();
    const value = await tools.executeToolCall('slack_send_message', { content: '**hi**' });
    expect(value).toMatchObject({ ok: true, ts: [expect.any(String) as string] });
    expect(out.writes).toMatchObject([
      { kind: 'reply', thread, draft: { id: 'turn-1:reply:1', markdown: '**hi**', mentions } },
    ]);
    expect(shown()).toBe(1);
    expect(room.calls).toEqual([]);
    expect(turn.complete).toBe(true);
  });

  it.each([{}, { content: '' }, { content: '  ' }, { content: 7 }])(
    'S-120 %j is refused with a sentence about content',
    async (args) => {
      const { tools, out, turn } = setUp();
      const outcome = await tools.executeToolCallStructured('slack_send_message', args);
      expect(outcome.ok).toBe(false);
      expect(JSON.stringify([outcome.value, outcome.errorMessage])).toContain("requires a non-empty 'content'");
      expect(out.writes).toEqual([]);
      expect(turn.complete).toBe(false);
    },
  );

  it('S-120 a refusal by Slack is an answer for the brain, and no reply of the turn', async () => {
    const { tools, out, turn } = setUp();
    out.answerWith({ state: 'failed', error: 'is_archived', detail: 'The channel is archived.' });
    const outcome = await tools.executeToolCallStructured('slack_send_message', { content: 'x' });
    expect(outcome).toMatchObject({
      ok: false,
      value: { ok: false, error: 'is_archived', detail: 'The channel is archived.' },
    });
    expect(turn.complete).toBe(false);
    out.reply = () => Promise.reject(new GatewayError('QUEUE_FULL'));
    expect(await tools.executeToolCall('slack_send_message', { content: 'x' })).toMatchObject({
      ok: false,
      error: 'QUEUE_FULL',
    });
  });

  it('S-120 what Slack has not taken in time is said to be queued', async () => {
    const { tools, out } = setUp();
    out.answerWith({ state: 'queued' });
    expect(await tools.executeToolCall('slack_send_message', { content: 'x' })).toEqual({ ok: true, queued: true });
  });

  it('S-086 a file counts as a reply, declining as none, and nothing is posted after the end', async () => {
    const { tools, out, turn } = setUp();
    await tools.executeToolCall('slack_upload_file', { filename: 'a.txt', content: 'abc' });
    expect(out.writes).toMatchObject([{ kind: 'upload', draft: { id: 'turn-1:file:1', filename: 'a.txt' } }]);
    expect(
      (await tools.executeToolCallStructured('slack_upload_file', { filename: 'a.txt', content: 'a', base64: 'YQ==' }))
        .ok,
    ).toBe(false);
    expect(turn.complete).toBe(true);
    const other = setUp();
    expect(await other.tools.executeToolCall('slack_no_reply', { reason: 'nothing to add' })).toEqual({
      status: 'no_reply',
    });
    expect(other.turn.complete).toBe(true);
    other.turn.end();
    expect(JSON.stringify(await other.tools.executeToolCall('slack_send_message', { content: 'late' }))).toContain(
      'turn_ended',
    );
    expect(other.out.writes).toEqual([]);
  });

  it('S-118 a reply may page nobody when the brain wants it so', async () => {
    const { tools, out } = setUp();
    await tools.executeToolCall('slack_send_message', { content: 'x', silent_mentions: true });
    expect(out.writes[0]).not.toHaveProperty('draft.mentions');
  });

  it('reads a file of the thread by pieces', async () => {
    const { tools } = setUp((id, offset) => Promise.resolve({ text: `${id}@${offset}`, nextOffset: null }));
    expect(await tools.executeToolCall('slack_read_file', { file_id: 'F1', offset: 5 })).toEqual({
      text: 'F1@5',
      nextOffset: null,
    });
  });
});

describe('tools under progress', () => {
  const observed = () => {
    const { out, tools, turn } = setUp();
    const more = withCustomTools(tools, [
      { name: 'search', description: 'd', parameters: z.object({}), run: () => Promise.resolve('found') },
      {
        name: 'breaks',
        description: 'd',
        parameters: z.object({}),
        run: () => Promise.resolve({ ok: false, error: 'no luck' }),
      },
    ]);
    const seen = withProgress(more, out.progress(thread, 'turn-1'));
    return {
      out,
      seen,
      turn,
      drawn: () => out.writes.flatMap((write) => (write.kind === 'progress' ? [write.what] : [])),
    };
  };

  it('S-123 each tool is a task from start to end, the reply tool never', async () => {
    const { seen, drawn } = observed();
    expect(await seen.executeToolCall('search', {})).toBe('found');
    await seen.executeToolCall('breaks', {});
    await seen.executeToolCall('slack_send_message', { content: 'x' });
    expect(drawn().join('\n')).toMatch(/search[\s\S]*breaks/);
    expect(drawn().join('\n')).toContain('no luck');
    expect(drawn().join('\n')).not.toContain('slack_send_message');
  });

  it('S-123 a tool that throws is marked and its error goes on', async () => {
    const { out } = setUp();
    const room = new FakeAgentTools();
    const broken = new Proxy(room, {
      get: (target, key) =>
        key === 'executeToolCallStructured'
          ? () => Promise.reject(new Error('boom'))
          : (Reflect.get(target, key, target) as unknown),
    });
    const seen = withProgress(broken, out.progress(thread, 'turn-1'));
    await expect(seen.executeToolCallStructured('band_send_message', {})).rejects.toThrow('boom');
    expect(JSON.stringify(out.writes)).toContain('boom');
  });
});
