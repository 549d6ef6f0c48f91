import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/base/band-errors.js';
import { fakeAgentInput, FakeAgentTools, refusal } from '../../src/testing/index.js';

describe('FakeAgentTools', () => {
  it('shows what an adapter said, wrote and asked for', async () => {
    const tools = new FakeAgentTools();
    await tools.sendEvent('thinking', 'thought');
    await tools.sendMessage('hi', ['@user']);
    expect(tools.events.map(({ content }) => content)).toEqual(['thinking']);
    expect(tools.messages.map(({ content }) => content)).toEqual(['hi']);
    expect(tools.calls.map(({ method }) => method)).toEqual(['postEvent', 'postMessage']);
  });

  it('fails on request, once, as the platform would', async () => {
    const tools = new FakeAgentTools();
    tools.failNext('postMessage', refusal(403, 'BAND_FORBIDDEN', 'limit'));
    await expect(tools.sendMessage('hi', ['@user'])).rejects.toThrow(ApiError);
    await expect(tools.sendMessage('hi', ['@user'])).resolves.toMatchObject({ success: true });
  });

  it('keeps a small platform: people come and go, memories are kept', async () => {
    const tools = new FakeAgentTools({ peers: [{ id: 'p', name: 'Pal', type: 'Agent', handle: 'acme/pal' }] });
    await tools.addParticipant('Pal');
    expect((await tools.getParticipants()).map(({ id }) => id)).toEqual(['agent-1', 'user-1', 'p']);
    expect((await tools.lookupPeers()).data).toEqual([]);
    const { id } = await tools.storeMemory({
      content: 'tea, no sugar',
      system: 'long_term',
      type: 'semantic',
      segment: 'user',
      thought: 'asked twice',
      scope: 'organization',
    });
    await tools.archiveMemory(String(id));
    expect(await tools.getMemory(String(id))).toMatchObject({ content: 'tea, no sugar', status: 'archived' });
    await expect(tools.getMemory('none')).rejects.toThrow('404 Not Found');
  });
});

describe('fakeAgentInput', () => {
  it('is a text of the user in the tools’ room unless said otherwise', () => {
    const input = fakeAgentInput({ tools: new FakeAgentTools({ roomId: 'room-3' }), senderName: null });
    expect(input.roomId).toBe('room-3');
    expect(input.msg).toMatchObject({ roomId: 'room-3', content: 'hello', senderType: 'User', senderName: null });
    expect([input.history.isEmpty, input.isSessionBootstrap, input.signal.aborted]).toEqual([true, false, false]);
  });
});
