import { describe, expect, it } from 'vitest';
import { BandConfigError, TurnResultAlreadyReported } from '../../src/base/band-errors.js';
import { GenericAdapter, type GenericTurn } from '../../src/adapters/index.js';
import { fakeAgentInput, FakeAgentTools } from '../../src/testing/index.js';

describe('GenericAdapter', () => {
  it('hands a turn to its one function and lets it answer', async () => {
    const turns: GenericTurn[] = [];
    const adapter = new GenericAdapter(async (turn) => {
      turns.push(turn);
      await turn.tools.sendMessage(`echo: ${turn.message.content}`, [{ id: turn.message.senderId }]);
    });
    const tools = new FakeAgentTools();
    const input = fakeAgentInput({ tools, content: 'hello', participantsMsg: 'who', isSessionBootstrap: true });
    await adapter.onEvent(input);
    expect(tools.messages).toEqual([{ roomId: 'room-1', content: 'echo: hello', mentions: [{ id: 'user-1' }] }]);
    expect(turns).toEqual([
      {
        message: input.msg,
        tools,
        history: input.history,
        participantsMsg: 'who',
        contactsMsg: null,
        roomId: 'room-1',
        isSessionBootstrap: true,
        signal: input.signal,
      },
    ]);
  });

  it('R-274 its turns are judged', async () => {
    const adapter = new GenericAdapter(() => Promise.resolve());
    await expect(adapter.onEvent(fakeAgentInput())).rejects.toThrow(TurnResultAlreadyReported);
  });

  it('a throw of the function is the attempt’s failure', async () => {
    const adapter = new GenericAdapter(() => Promise.reject(new Error('out of ideas')));
    await expect(adapter.onEvent(fakeAgentInput())).rejects.toThrow('out of ideas');
  });

  it('takes features like any adapter: both capabilities, no emit kinds', () => {
    const callback = () => Promise.resolve();
    expect(new GenericAdapter(callback, { capabilities: ['contacts', 'memory'] }).features.capabilities.size).toBe(2);
    expect(() => new GenericAdapter(callback, { emit: 'thoughts' })).toThrow(BandConfigError);
    expect(() => new GenericAdapter(callback, { model: 'x' } as never)).toThrow(TypeError);
    expect(() => new GenericAdapter('echo' as never)).toThrow(TypeError);
  });
});
