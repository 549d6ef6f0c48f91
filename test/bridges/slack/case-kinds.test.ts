import { describe, expect, it } from 'vitest';
import { RelayAdapter } from '../../../src/adapters/relay.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { callRest } from '../../support/rest-call.js';
import { startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import { createSkippingClock } from '../../support/skipping-clock.js';

const relay = () => new RelayAdapter({ peer: 'demo/editor' });

/** The texts that people's messages became in Band, room by room. */
const posted = (lab: BridgeLab): string[][] =>
  lab.sandbox.dev
    .state()
    .rooms.map(({ messages }) =>
      messages
        .filter(({ messageType, senderId }) => messageType === 'text' && senderId === DEMO.helpdesk.id)
        .map(({ content }) => content.split('): ').at(-1)!),
    );
const answer = (lab: BridgeLab, roomId: string, content: string) =>
  callRest(lab.sandbox.restUrl, 'POST', `/api/v1/agent/chats/${roomId}/messages`, DEMO.editor.apiKey, {
    message: { content, mentions: [{ id: DEMO.helpdesk.id }] },
  });

describe('SLK-07 one post that reaches the app again and again', () => {
  it.each(['http', 'socket'] as const)('is one message in Band over %s, also after a restart', async (transport) => {
    const clock = createSkippingClock();
    const store = createMemoryStore();
    const options: BridgeLabOptions = { clock, transport, store, settings: { socket: { connections: 2 } } };
    const lab = await startBridge({ ...options, acme: { clock }, inner: relay() });
    const said = lab.alice.says('#general', '@gateway status please');
    await expect.poll(() => posted(lab)).toEqual([['status please']]);
    const bodies = lab.slack.deliveries().filter(({ type }) => type === 'app_mention' || type === 'message');
    expect(bodies.map(({ type }) => type).toSorted()).toEqual(['app_mention', 'message']);
    const again = async (where: BridgeLab) => {
      for (const { body } of bodies) {
        const delivery = where.slack.deliverRaw(where.app, body);
        await where.slack.until(() => delivery?.state === 'acked');
        expect(delivery?.attempts).toHaveLength(1);
      }
      await where.idle();
    };
    clock.advance(60_000);
    await again(lab);
    await lab.stop();
    const next = await startBridge({ ...options, world: lab, sandbox: lab.sandbox, inner: relay() });
    clock.advance(240_000);
    await again(next);
    expect(posted(next)).toEqual([['status please']]);
    next.alice.replies(said, '@gateway status please');
    await expect.poll(() => posted(next)).toEqual([['status please', 'status please']]);
  });
});

describe('SLK-05 an answer longer than a message may be', () => {
  it('comes whole, in order, each piece with its own fence, and Slack refuses none', async () => {
    const lab = await startBridge({ inner: relay() });
    const said = lab.alice.says('#general', '@gateway the query, please');
    await expect.poll(() => lab.sandbox.dev.state().rooms.length).toBe(1);
    await expect.poll(() => posted(lab).flat().length).toBe(1);
    const lines = Array.from(
      { length: 700 },
      (_, i) => `    select col_${i}, sum(amount) as total_${i} from table_${i} group by 1`,
    );
    const content = `Here is the query:\n\n\`\`\`sql\n${lines.join('\n')}\n\`\`\`\n\nThat is the answer.`;
    await answer(lab, lab.sandbox.dev.state().rooms[0]!.id, content);
    await lab.slack.until(() => lab.answers(said).join('\n').includes('That is the answer.'), 'the end', 20_000);
    const pieces = lab.slack
      .calls('chat.postMessage')
      .map(
        ({ args }) => JSON.parse((args['blocks'] as string | undefined) ?? '[]') as { type: string; text?: string }[],
      )
      .map((blocks) => blocks.map(({ text }) => text ?? '').join('\n'))
      .filter((text) => text.includes('select') || text.includes('That is the answer.'));
    const code = pieces.flatMap((piece) => {
      const fences = piece.match(/^```.*$/gm) ?? [];
      expect(fences.length % 2).toBe(0);
      return [...piece.matchAll(/^```\w*\n([\s\S]*?)\n```$/gm)].flatMap(([, inside]) => inside!.split('\n'));
    });
    expect(code).toEqual(lines);
    expect(pieces[0]).toContain('```sql\n');
    expect(pieces.at(-1)!.trim().endsWith('```\n\nThat is the answer.')).toBe(true);
    expect(lab.slack.calls('chat.postMessage').every(({ outcome }) => outcome === 'ok')).toBe(true);
    lab.slack.check();
  });
});

describe('SLK-20 a process that ends when the room has just been made', () => {
  it.each([
    ['the answer about it was lost', { method: 'POST', path: '/api/v1/agent/chats', drop: 'after' }],
    ['it was not yet bound', { method: 'POST', path: '/api/v1/agent/chats/*/events', times: 1_000, drop: 'before' }],
    [
      'its binding was written and not confirmed',
      { method: 'POST', path: '/api/v1/agent/chats/*/events', drop: 'after' },
    ],
  ] as const)('makes no second conversation when %s', async (_how, fault) => {
    const store = createMemoryStore();
    const lab = await startBridge({ store, inner: relay() });
    lab.sandbox.dev.faultRest(fault);
    const said = lab.alice.says('#general', '@gateway open');
    lab.bob.replies(said, '@gateway and one more thing');
    await expect.poll(() => lab.slack.deliveries().every(({ state }) => state === 'acked')).toBe(true);
    await expect.poll(() => lab.sandbox.dev.state().rooms.length).toBe(1);
    await lab.stop();
    lab.sandbox.dev.clearFaults();
    const next = await startBridge({ store, world: lab, sandbox: lab.sandbox, inner: relay() });
    await expect.poll(() => posted(next).flat(), { timeout: 8_000 }).toEqual(['open', 'and one more thing']);
    expect(posted(next).filter((texts) => texts.length > 0)).toHaveLength(1);
    const bound = next.sandbox.dev
      .state()
      .rooms.filter(({ messages }) => messages.some(({ messageType }) => messageType === 'task'));
    expect(bound).toHaveLength(1);
  });
});
