import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { person } from '../../support/acp/fake-band.js';
import { createLab } from '../../support/acp/lab.js';

const RUNS = Number(process.env['ACP_STORM_RUNS'] ?? 1_000);
const FUZZ_FRAMES = Number(process.env['ACP_FUZZ_FRAMES'] ?? 10_000);

type Step =
  | {
      readonly kind: 'prompt' | 'cancel' | 'cancel-request' | 'close' | 'load' | 'reply' | 'other' | 'hang-up' | 'gone';
    }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'fail'; readonly method: 'postMessage' | 'listParticipants' | 'getContext' };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('prompt', 'reply', 'other') }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'cancel-request', 'load') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('close', 'hang-up', 'gone') }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(0, 60, 300, 20_000, 300_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fail' as const),
      method: fc.constantFrom('postMessage' as const, 'listParticipants' as const, 'getContext' as const),
    }),
  },
);

describe('storms', () => {
  it(
    `P-077 exactly one answer for each prompt, whatever happens (${RUNS} schedules)`,
    { timeout: Math.max(120_000, RUNS * 100) },
    async () => {
      const codex = person('codex');
      const reviewer = person('reviewer');
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 14 }),
          fc.boolean(),
          async (steps, showsDelivery) => {
            const lab = await createLab({
              peers: [codex, reviewer],
              options: { peers: ['codex', 'reviewer'], maxQueuedPrompts: 3 },
            });
            lab.band.showsDelivery = showsDelivery;
            const ed = await lab.editor();
            const session = await ed.newSession();
            const room = lab.band.room(session);
            const prompts: (string | number)[] = [];
            let isGone = false;
            for (const one of steps) {
              switch (one.kind) {
                case 'prompt':
                  prompts.push(ed.prompt(session, `prompt ${prompts.length}`));
                  break;
                case 'cancel':
                  ed.notify('session/cancel', { sessionId: session });
                  break;
                case 'cancel-request':
                  ed.notify('$/cancel_request', { requestId: prompts.at(-1) ?? 'none' });
                  break;
                case 'close':
                  ed.ask('session/close', { sessionId: session });
                  break;
                case 'load':
                  ed.ask('session/load', { sessionId: session, cwd: '/x', mcpServers: [] });
                  break;
                case 'reply':
                case 'other':
                  void lab.band.say(room, one.kind === 'reply' ? codex : reviewer, 'text');
                  break;
                case 'hang-up':
                  if (!isGone) ed.hangUp();
                  isGone = true;
                  break;
                case 'gone':
                  lab.server.sessions.roomGone(session);
                  break;
                case 'wait':
                  await lab.clock.advance(one.ms);
                  break;
                case 'fail':
                  lab.band.fail(one.method, 'BAND_UNAVAILABLE');
                  break;
              }
              if (isGone) break;
            }
            // Longer than any turn may take, however many of them wait.
            await lab.clock.advance(5 * 3_700_000);
            for (const id of prompts) {
              const answers = ed.frames.filter((frame) => frame.id === id && frame.method === undefined);
              if (isGone) expect(answers.length).toBeLessThanOrEqual(1);
              else expect(answers).toHaveLength(1);
            }
            expect(lab.server.sessions.openPrompts).toBe(0);
            await lab.close();
            expect(lab.clock.pending).toBe(0);
          },
        ),
        { numRuns: RUNS },
      );
    },
  );

  it(
    `P-162 odd frames crash nothing and every request among them is answered once (${FUZZ_FRAMES} frames)`,
    { timeout: 120_000 },
    async () => {
      const lab = await createLab({ peers: [person('codex')] });
      const ed = await lab.editor();
      const session = await ed.newSession();
      const methods = [
        'initialize',
        'authenticate',
        'session/new',
        'session/load',
        'session/list',
        'session/close',
        'session/delete',
        'session/resume',
        'session/set_mode',
        'session/set_config_option',
        'session/prompt',
        'session/cancel',
        '$/cancel_request',
        '_x',
        '',
        '__proto__',
        'constructor',
      ];
      const value = fc.oneof(
        fc.jsonValue({ maxDepth: 2 }),
        fc.constantFrom<unknown>(
          session,
          '/x',
          [],
          {},
          null,
          'default',
          [{ type: 'text', text: 'hi' }],
          [{ type: 'text' }],
        ),
      );
      const params = fc.dictionary(
        fc.constantFrom(
          'sessionId',
          'cwd',
          'mcpServers',
          'prompt',
          'modeId',
          'configId',
          'value',
          'requestId',
          'cursor',
          'methodId',
          'protocolVersion',
          '__proto__',
        ),
        value,
      );
      const frame = fc.record(
        {
          jsonrpc: fc.constantFrom<unknown>('2.0', '2.0', '2.0', '1.0', 2, null),
          id: fc.oneof(fc.integer({ min: 1_000 }), fc.string(), fc.constant(null)),
          method: fc.oneof(fc.constantFrom<unknown>(...methods), fc.integer()),
          params: fc.oneof(params, value),
          result: value,
          error: value,
        },
        { requiredKeys: ['jsonrpc'] },
      );
      const frames = fc.sample(frame, FUZZ_FRAMES);
      // What the SDK has to say about frames that answer nothing goes to standard error, here to nobody.
      const spoken = console.error;
      console.error = () => undefined;
      try {
        for (const [i, one] of frames.entries()) {
          if (one.method === 'session/prompt' || one.method === 'session/new') continue;
          ed.send(one);
          if (i % 50 === 0) await lab.clock.advance(0);
        }
        await ed.settle();
      } finally {
        console.error = spoken;
      }
      const list = await ed.request('session/list', {});
      expect(list.result).toBeDefined();
      for (const one of ed.frames) {
        expect(one.jsonrpc).toBe('2.0');
        if (one.error) expect(typeof one.error.data.reason).toBe('string');
      }
      await lab.server.close().catch(() => undefined);
    },
  );

  it(
    'P-161 a thousand prompts over fifty sessions leave no turn, timer, listener or memory behind',
    { timeout: 60_000 },
    async () => {
      const codex = person('codex');
      const lab = await createLab({ peers: [codex], options: { peers: ['codex'], deliveryPoll: 'off' } });
      const ed = await lab.editor();
      const sessions: string[] = [];
      for (let i = 0; i < 50; i += 1) sessions.push(await ed.newSession());
      lab.band.onPrompt = (room) => void lab.band.say(room, codex, 'ok');
      const round = async () => {
        for (const session of sessions) ed.prompt(session, 'go');
        await lab.clock.advance(10);
        await lab.clock.advance(400);
        ed.frames.length = 0;
        ed.asked.clear();
        for (const room of lab.band.rooms.values()) room.rows.length = 1;
        lab.band.calls.length = 0;
      };
      const heap = () => {
        (globalThis as { gc?: () => void }).gc?.();
        return process.memoryUsage().heapUsed;
      };
      for (let i = 0; i < 5; i += 1) await round();
      const timers = lab.clock.pending;
      const before = heap();
      for (let i = 0; i < 20; i += 1) await round();
      expect(lab.server.sessions.openPrompts).toBe(0);
      expect(lab.clock.pending).toBe(timers);
      if ('gc' in globalThis) expect(heap() / before).toBeLessThan(1.1);
      await lab.close();
    },
  );
});
