import { describe, expect, it } from 'vitest';
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { createFront, type Backend, type Say } from '../../../../bridges/acp/stdio/front.js';
import { encodeFrame } from '../../../../bridges/acp/stdio/frames.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Scripted {
  readonly open: (say: Say) => Backend;
  readonly got: AnyMessage[];
  say(message: unknown): Promise<void>;
  closed: boolean;
}
/** A backend that answers `initialize` and `session/resume`, and the rest when told to. */
function scripted(name: string): Scripted {
  let speak: Say = () => Promise.resolve();
  const made: Scripted = {
    got: [],
    closed: false,
    say: (message) => speak(encodeFrame(message as AnyMessage), message as AnyMessage),
    open: (say) => {
      speak = say;
      return {
        async send({ message }) {
          made.got.push(message);
          const { id, method } = message as { id?: unknown; method?: string };
          if (method === 'initialize' || method === 'session/resume') {
            await made.say({ jsonrpc: '2.0', id, result: { by: name } });
          }
        },
        end: () => Promise.resolve(),
        close: () => {
          made.closed = true;
        },
      };
    },
  };
  return made;
}
function lab() {
  const out: Record<string, unknown>[] = [];
  const front = createFront((line) => {
    out.push(JSON.parse(String(line)) as Record<string, unknown>);
    return Promise.resolve();
  });
  const send = (message: Record<string, unknown>) => {
    const frame = { jsonrpc: '2.0', ...message } as unknown as AnyMessage;
    return front.receive({ message: frame, bytes: new TextEncoder().encode(JSON.stringify(frame)) });
  };
  return { front, out, send };
}
const initialize = { id: 0, method: 'initialize', params: { protocolVersion: 1 } };
const methodsOf = (one: Scripted) => one.got.map((message) => (message as { method?: string }).method);

describe('the front of a stdio process', () => {
  it('P-155 a lost owner: open requests are told so, the next one learns of initialize and of the sessions', async () => {
    const { front, out, send } = lab();
    const owner = scripted('owner');
    await front.use(owner.open, { resend: false });
    await send(initialize);
    await send({ id: 1, method: 'session/new', params: { cwd: '/a', mcpServers: [] } });
    await owner.say({ jsonrpc: '2.0', id: 1, result: { sessionId: 's1' } });
    await send({ id: 2, method: 'session/load', params: { sessionId: 's2', cwd: '/b', mcpServers: [] } });
    await owner.say({ jsonrpc: '2.0', id: 2, result: {} });
    await send({ id: 3, method: 'session/close', params: { sessionId: 's2' } });
    await owner.say({ jsonrpc: '2.0', id: 3, result: {} });
    await send({ id: 4, method: 'session/prompt', params: { sessionId: 's1' } });
    out.length = 0;
    const mine = scripted('mine');
    await front.use(mine.open, { resend: false });
    expect(owner.closed).toBe(true);
    expect(out).toEqual([
      {
        jsonrpc: '2.0',
        id: 4,
        error: {
          code: -32_603,
          message: expect.any(String) as string,
          data: { reason: 'gateway_lost', retryable: true },
        },
      },
    ]);
    expect(
      mine.got.map((message) => [(message as { method: string }).method, (message as { params: unknown }).params]),
    ).toEqual([
      ['initialize', { protocolVersion: 1 }],
      ['session/resume', { sessionId: 's1', cwd: '/a', mcpServers: [] }],
    ]);
    await owner.say({ jsonrpc: '2.0', id: 4, result: {} });
    await send({ id: 5, method: 'session/prompt', params: { sessionId: 's1' } });
    await mine.say({ jsonrpc: '2.0', id: 5, result: { stopReason: 'end_turn' } });
    expect(out.slice(1), 'the lost one has no voice any more').toEqual([
      { jsonrpc: '2.0', id: 5, result: { stopReason: 'end_turn' } },
    ]);
  });

  it('P-155 requests that nothing was done for go to the owner, in order', async () => {
    const { front, out, send } = lab();
    const waiting = scripted('waiting');
    await front.use(waiting.open, { resend: false });
    await send(initialize);
    await send({ id: 1, method: 'session/new', params: { cwd: '/a', mcpServers: [] } });
    await send({ id: 2, method: 'session/list', params: {} });
    const owner = scripted('owner');
    await front.use(owner.open, { resend: true });
    expect(methodsOf(owner)).toEqual(['initialize', 'session/new', 'session/list']);
    expect((owner.got[1] as { id: number }).id).toBe(1);
    expect(
      out.map(({ id }) => id),
      'the second initialize is not answered to the editor',
    ).toEqual([0]);
  });

  it('frames that come during a change wait for it and reach the new backend once', async () => {
    const { front, send } = lab();
    const early = send(initialize);
    const mine = scripted('mine');
    const using = front.use(mine.open, { resend: false });
    await Promise.all([early, using]);
    const owner = scripted('owner');
    const change = front.use(owner.open, { resend: true });
    const late = send({ id: 9, method: 'session/list', params: {} });
    await Promise.all([change, late]);
    await turn();
    expect(methodsOf(owner)).toEqual(['initialize', 'session/list']);
    expect(methodsOf(mine)).toEqual(['initialize']);
  });
});
