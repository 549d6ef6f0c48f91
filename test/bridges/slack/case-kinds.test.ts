import { describe, expect, it } from 'vitest';
import { RelayAdapter } from '../../../src/adapters/relay.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { callRest } from '../../support/rest-call.js';
import { say, startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
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

/** Markdown as a reader sees it: escapes taken away. */
const read = (markdown: string) => markdown.replace(/\\([!-/:-@[-`{-~])/g, '$1');

describe('SLK-01 what a person types with signs that Slack escapes', () => {
  it.each(['text alone', 'blocks'] as const)('reaches Band as it was typed, decoded once, from %s', async (form) => {
    const lab = await startBridge({ inner: relay() });
    const typed = [
      'write &lt;br&gt; or <br>, &amp;lt; or &lt;',
      '&nbsp; &copy; &quot; &apos; &#39; &#x27; &#60; stay as they are',
      'a && b, c << 2, d >> 3, 100% & more',
      '&lt &gt &amp &; &&amp;&amp; end',
      'x &lt;!here&gt; &amp;#x3C;!here&amp;#x3E;',
    ];
    const root = lab.alice.says('#general', '@gateway the first');
    await expect.poll(() => posted(lab).flat()).toEqual(['the first']);
    for (const text of typed) {
      if (form === 'blocks') lab.alice.replies(root, text);
      else {
        const escaped = text.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;' })[sign] ?? '&gt;');
        lab.alice.saysRaw('#general', { text: escaped, threadTs: root.ts });
      }
    }
    await expect.poll(() => posted(lab).flat().length, { timeout: 8_000 }).toBe(1 + typed.length);
    expect(posted(lab).flat().slice(1).map(read)).toEqual(typed);
  });
});

describe('SLK-09 a message whose first delivery came to nothing', () => {
  it.each(['http', 'socket'] as const)('is posted to Band once by its repeat over %s', async (transport) => {
    const clock = createSkippingClock();
    const options: BridgeLabOptions = { clock, transport, settings: { socket: { connections: 1 } } };
    const lab = await startBridge({ ...options, acme: { clock }, inner: relay() });
    const passing = async (holds: () => boolean) => {
      await expect
        .poll(
          () => {
            if (!holds()) clock.advance(5_000);
            return holds();
          },
          { timeout: 12_000, interval: 20 },
        )
        .toBe(true);
    };
    const acked = (type: string) => () =>
      lab.slack.deliveries().every((delivery) => delivery.type !== type || delivery.state === 'acked');

    // Nobody is there for the first delivery, nor for the one that follows at once.
    const urls = lab.app.urls;
    lab.app.urls = null;
    lab.slack.sockets.mute = true;
    for (const socket of lab.slack.sockets.open(lab.app)) lab.slack.sockets.sever(socket);
    lab.alice.says('#general', '@gateway posted during the gap');
    await lab.slack.until(() => lab.slack.deliveries().every(({ attempts }) => attempts.length === 2));
    lab.app.urls = urls;
    lab.slack.sockets.mute = false;
    if (transport === 'socket') {
      await passing(() => lab.slack.sockets.open(lab.app).some((one) => one.saidHello));
    }
    await passing(acked('app_mention'));
    await lab.idle();
    expect(posted(lab).flat()).toEqual(['posted during the gap']);

    // It was taken, and its handling fails for a while; Slack repeats it meanwhile and afterwards.
    lab.sandbox.dev.faultRest({ callerId: DEMO.helpdesk.id, times: 100_000, status: 503 });
    const down = lab.bob.says('#rooms', '@gateway Band was down');
    await lab.slack.until(acked('app_mention'));
    const { body } = lab.slack.deliveries().findLast(({ type }) => type === 'app_mention')!;
    const repeat = async () => {
      const delivery = lab.slack.deliverRaw(lab.app, body);
      await lab.slack.until(() => delivery?.state === 'acked');
    };
    await repeat();
    await passing(() => lab.answers(down).length === 1);
    expect(lab.answers(down)[0]).toMatch(/trouble reaching Band/);
    lab.sandbox.dev.clearFaults();
    await passing(() => posted(lab).flat().length === 2);
    await repeat();
    await lab.idle();
    expect(posted(lab).flat().toSorted()).toEqual(['Band was down', 'posted during the gap']);
    expect(lab.answers(down)).toHaveLength(1);
  });

  it('is told to its author where it can never be posted', async () => {
    const lab = await startBridge({ inner: relay() });
    const said = lab.alice.says('#general', '@gateway first');
    await expect.poll(() => posted(lab).flat()).toEqual(['first']);
    lab.sandbox.dev.faultRest({ callerId: DEMO.helpdesk.id, method: 'POST', times: 100_000, status: 422 });
    lab.alice.replies(said, 'refused');
    await lab.slack.until(() => lab.answers(said).length === 1, 'a word to the author');
    await lab.idle();
    expect(lab.answers(said)).toEqual([expect.stringMatching(/could not|did not/i)]);
  });
});

describe('SLK-12 two conversations at once', () => {
  it('each have their own status, progress, reaction and answer', async () => {
    let arrived = 0;
    let open = (): void => undefined;
    const bothAreThere = new Promise<void>((resolve) => (open = resolve));
    const tools = { 'question A': 1, 'question B': 3 } as Record<string, number>;
    const lab = await startBridge({
      settings: { ackReaction: 'eyes' },
      onTurn: async (turn) => {
        const { content } = turn.message;
        await turn.tools.executeToolCall('band_get_participants', {});
        arrived += 1;
        if (arrived === 2) open();
        await bothAreThere;
        for (let more = 1; more < tools[content]!; more += 1) {
          await turn.tools.executeToolCall('band_get_participants', {});
        }
        await say(turn, `answer to ${content}`);
      },
    });
    const a = lab.alice.says('#general', '@gateway question A');
    const b = lab.bob.says('#general', '@gateway question B');
    await lab.slack.until(() => [a, b].every((said) => lab.answers(said).some((text) => text.startsWith('answer'))));
    await lab.idle();
    const tasksDone = (said: typeof a) => lab.answers(said)[0]!.match(/✅/g)!.length - 1;
    await lab.slack.until(() => [a, b].every((said) => lab.answers(said)[0]?.includes('Done')), 'what is done');
    expect([lab.answers(a)[1], lab.answers(b)[1]]).toEqual(['answer to question A', 'answer to question B']);
    expect([tasksDone(a), tasksDone(b)]).toEqual([1, 3]);
    expect([lab.answers(a), lab.answers(b)].map(({ length }) => length)).toEqual([2, 2]);
    const of = (method: string, field: string) =>
      new Set(lab.slack.calls(method).map(({ args }) => String(args[field])));
    expect(of('assistant.threads.setStatus', 'thread_ts')).toEqual(new Set([a.ts, b.ts]));
    for (const method of ['reactions.add', 'reactions.remove']) {
      expect(of(method, 'timestamp')).toEqual(new Set([a.ts, b.ts]));
      expect(lab.slack.calls(method)).toHaveLength(2);
    }
    for (const said of [a, b]) expect(lab.slack.status(said.channel, said.ts)).toBeNull();
    lab.slack.check();
  });
});

describe('SLK-17 progress that Slack puts off, by a status and then in words', () => {
  it('waits as long as Slack says each time, while answers go on, and is shown in the end', async () => {
    const clock = createSkippingClock();
    const lab = await startBridge({
      clock,
      acme: { clock },
      onTurn: async (turn) => {
        const count = turn.message.content === '8 files' ? 8 : 0;
        for (let tool = 0; tool < count; tool += 1) await turn.tools.executeToolCall('band_get_participants', {});
        await say(turn, `FINAL ANSWER to ${turn.message.content}`);
      },
    });
    const headers = { 'retry-after': '20' };
    lab.slack.fault({ method: 'chat.update', effect: { kind: 'status', status: 429, headers } });
    lab.slack.fault({ method: 'chat.update', effect: { kind: 'error', error: 'ratelimited' } });
    const said = lab.alice.says('#general', '@gateway 8 files');
    const begun = clock.now();
    const isAnswered = (of: typeof said, text: string) => lab.answers(of).includes(`FINAL ANSWER to ${text}`);
    await lab.slack.until(() => isAnswered(said, '8 files'), 'the answer');
    const edits = () => lab.slack.calls('chat.update');
    await expect
      .poll(
        async () => {
          if (edits().some(({ outcome }) => outcome === 'ok')) return true;
          if (edits().length === 1 && lab.heard.length === 1) {
            // The same workspace is served meanwhile.
            const other = lab.bob.says('#rooms', '@gateway other');
            await lab.slack.until(() => isAnswered(other, 'other'), 'another answer');
            expect(clock.now() - begun).toBeLessThan(20_000);
          }
          clock.advance(1_000);
          await lab.slack.settled();
          return false;
        },
        { timeout: 12_000, interval: 5 },
      )
      .toBe(true);
    const [refused, refusedAgain, third] = edits();
    expect([refused!.outcome, refusedAgain!.outcome]).toEqual(['status', 'ratelimited']);
    expect(refusedAgain!.at - refused!.at).toBeGreaterThanOrEqual(20_000);
    expect(third!.at - refusedAgain!.at).toBeGreaterThanOrEqual(30_000);
    expect(lab.answers(said).filter((text) => text.startsWith('FINAL'))).toHaveLength(1);
    await lab.slack.until(() => lab.answers(said)[0]!.includes('Done'), 'the last state');
    lab.slack.check();
  });
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
