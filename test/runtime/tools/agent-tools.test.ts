import { describe, expect, it, vi } from 'vitest';
import {
  ApiError,
  BandConnectionError,
  BandToolError,
  RoomExecutionStoppedError,
  TurnEndedError,
  ValueError,
} from '../../../src/base/band-errors.js';
import { GatewayError } from '../../../src/base/errors.js';
import { Roster } from '../../../src/core/participants.js';
import { Turn } from '../../../src/core/turn.js';
import { AgentTools } from '../../../src/runtime/tools/agent-tools.js';
import { createFakeRest } from '../../../src/testing/fake-rest.js';
import { FakeAgentTools, refusal } from '../../../src/testing/index.js';

const PEERS = [
  { id: 'peer-1', name: 'Planner', type: 'Agent', handle: 'acme/planner', description: 'plans' },
  { id: 'peer-2', name: 'Twin', type: 'Agent', handle: 'acme/twin-a' },
  { id: 'peer-3', name: 'Twin', type: 'Agent', handle: 'acme/twin-b' },
];
const methodsOf = (tools: FakeAgentTools) => tools.calls.map(({ method }) => method);
const USER = { id: 'user-1', handle: 'user' };

describe('sendMessage', () => {
  it('R-264 posts to the room with id and handle of everyone mentioned', async () => {
    const tools = new FakeAgentTools();
    expect(await tools.sendMessage('hi', ['@user'])).toMatchObject({ success: true });
    expect(tools.messages).toEqual([{ roomId: 'room-1', content: 'hi', mentions: [USER] }]);
    expect(tools.turn).toMatchObject({ complete: true, replied: true });
  });

  it.each([[undefined], [null], [[]]])(
    'R-264 without a mention (%j) it is refused with the handles there are',
    async (mentions) => {
      const tools = new FakeAgentTools();
      const failure = tools.sendMessage('hi', mentions);
      await expect(failure).rejects.toThrow(BandToolError);
      await expect(failure).rejects.toThrow('at least one mention; available handles: @user');
      expect([tools.calls, tools.turn.complete]).toEqual([[], false]);
    },
  );

  it('R-264 an unknown mention is refused and nothing is posted', async () => {
    const tools = new FakeAgentTools();
    await expect(tools.sendMessage('hi', ['@user', '@ghost'])).rejects.toThrow(ValueError);
    expect(tools.calls).toEqual([]);
  });

  it.each(['', '  \n', '\u200b'])(
    'R-266 blank text %j is refused, posts nothing and records nothing',
    async (content) => {
      const tools = new FakeAgentTools();
      expect(await tools.sendMessage(content, ['@user'])).toBeNull();
      expect(await tools.sendNotice(content, ['@user'])).toBeNull();
      expect(await tools.sendEvent(content, 'thought')).toBeNull();
      expect([tools.calls, tools.turn.complete]).toEqual([[], false]);
      expect(
        await tools.executeToolCallStructured('band_send_message', { content, mentions: ['@user'] }),
      ).toMatchObject({
        ok: false,
        errorMessage: 'band_send_message: nothing was posted, the content is blank',
      });
    },
  );

  it('R-279 a notice is the same post and never the reply', async () => {
    const tools = new FakeAgentTools();
    await tools.sendNotice('one moment', ['@user']);
    expect(tools.messages).toEqual([{ roomId: 'room-1', content: 'one moment', mentions: [USER] }]);
    expect(tools.turn).toMatchObject({ complete: false, replied: false });
  });
});

describe('sendEvent and sendFailure', () => {
  it('R-267 an event goes out without mentions, shortened to the limit', async () => {
    const tools = new FakeAgentTools();
    await tools.sendEvent('x'.repeat(20_000), 'tool_result', { id: 'call-1' });
    expect(tools.events[0]).toMatchObject({ messageType: 'tool_result', metadata: { id: 'call-1' } });
    expect(tools.events[0]?.content).toHaveLength(16_384);
    expect(tools.turn.complete).toBe(false);
  });

  it('R-268 sendFailure posts an error event and the turn counts as reported', async () => {
    const tools = new FakeAgentTools();
    await tools.sendFailure({ provider: 'openai', message: 'overloaded with Bearer abcdefgh', code: '529' });
    expect(tools.events).toEqual([
      {
        roomId: 'room-1',
        content: 'overloaded with Bearer [redacted]',
        messageType: 'error',
        metadata: {
          failure: { provider: 'openai', code: '529', message: 'overloaded with Bearer [redacted]', detail: null },
        },
      },
    ]);
    expect(tools.turn).toMatchObject({ complete: true, reported: true, replied: false });
  });

  it('R-268 configured secrets are hidden as well', async () => {
    const rest = createFakeRest();
    const tools = new AgentTools({ rest, roomId: 'r', redact: (text) => text.replaceAll('sesame', '***') });
    await tools.sendFailure({ provider: 'p', message: 'sesame', detail: { open: 'sesame' } });
    expect(JSON.stringify(rest.events)).not.toContain('sesame');
  });

  it('R-193 a failure that did not reach the room does not count as reported', async () => {
    const tools = new FakeAgentTools();
    tools.failNext('postEvent', refusal(500, 'BAND_UNAVAILABLE'));
    await expect(tools.sendFailure({ provider: 'p', message: 'm' })).rejects.toThrow(ApiError);
    expect(tools.turn.reported).toBe(false);
  });
});

describe('noReply', () => {
  it('R-269 makes no request and declines the turn', async () => {
    const tools = new FakeAgentTools();
    expect(await tools.noReply('small talk')).toEqual({ status: 'no_reply' });
    expect(await tools.executeToolCall('band_no_reply', { reason: 'again' })).toEqual({ status: 'no_reply' });
    expect([tools.calls, tools.turn.replied]).toEqual([[], true]);
  });
});

describe('participants', () => {
  it('R-270 adding someone who is present makes no add request', async () => {
    const tools = new FakeAgentTools({ peers: PEERS });
    for (const identifier of ['@user', 'USER', 'user-1', 'User']) {
      expect(await tools.addParticipant(identifier)).toEqual({ id: 'user-1', name: 'User', status: 'already_in_room' });
    }
    expect(new Set(methodsOf(tools))).toEqual(new Set(['listParticipants']));
  });

  it.each(['@acme/planner', 'ACME/PLANNER', 'planner', 'peer-1'])(
    'R-253 %s is found among the peers and added',
    async (identifier) => {
      const tools = new FakeAgentTools({ peers: PEERS });
      expect(await tools.addParticipant(identifier, 'admin')).toEqual({
        id: 'peer-1',
        name: 'Planner',
        role: 'admin',
        status: 'added',
      });
      expect(tools.calls.at(-1)).toMatchObject({
        method: 'addParticipant',
        args: ['room-1', { participantId: 'peer-1', role: 'admin' }, {}],
      });
      expect(tools.participants.at(-1)).toMatchObject({ handle: 'acme/planner', description: 'plans' });
      await tools.sendMessage('welcome', ['@acme/planner']);
      expect(tools.messages[0]?.mentions).toEqual([{ id: 'peer-1', handle: 'acme/planner' }]);
    },
  );

  it('R-253 what one turn changed is seen by the next turn of the session', async () => {
    const rest = createFakeRest({ peers: PEERS, participants: [{ id: 'user-1', type: 'User', handle: 'user' }] });
    const roster = new Roster();
    const turn = () => new AgentTools({ rest, roster, roomId: 'r', agentId: 'a' });
    await turn().addParticipant('@acme/planner');
    expect(turn().availableMentionHandles()).toEqual(['@user', '@acme/planner']);
    await turn().removeParticipant('@user');
    expect(turn().availableMentionHandles()).toEqual(['@acme/planner']);
  });

  it('the peers are read page by page until the one is found, and once per turn', async () => {
    const many = Array.from({ length: 250 }, (_, i) => ({
      id: `p${i}`,
      name: `P ${i}`,
      type: 'Agent',
      handle: `acme/p${i}`,
    }));
    const tools = new FakeAgentTools({ peers: many });
    await tools.addParticipant('@acme/p150');
    await tools.addParticipant('@acme/p20');
    const pages = () =>
      tools.calls.filter(({ method }) => method === 'listPeers').map(({ args }) => (args[0] as { page: number }).page);
    expect(pages()).toEqual([1, 2]);
    await tools.addParticipant('@acme/p249');
    expect(pages()).toEqual([1, 2, 3]);
  });

  it.each(['@nobody', '', '  ', '@'])(
    'a peer called %j is not found, and the tool to look is named',
    async (identifier) => {
      const tools = new FakeAgentTools({ peers: PEERS });
      await expect(tools.addParticipant(identifier)).rejects.toThrow(ValueError);
      await expect(tools.addParticipant(identifier)).rejects.toThrow(/band_lookup_peers/);
      expect(methodsOf(tools)).not.toContain('addParticipant');
      expect(tools.turn.complete).toBe(false);
    },
  );

  it('a name that two peers share is refused rather than guessed', async () => {
    const tools = new FakeAgentTools({ peers: PEERS });
    await expect(tools.addParticipant('Twin')).rejects.toThrow(/@acme\/twin-a or @acme\/twin-b/);
    expect(await tools.addParticipant('@acme/twin-b')).toMatchObject({ id: 'peer-3' });
  });

  it('someone whom another agent added meanwhile is already in the room', async () => {
    const tools = new FakeAgentTools({ peers: PEERS });
    tools.failNext('addParticipant', refusal(409, 'BAND_CONFLICT'));
    expect(await tools.addParticipant('@acme/planner')).toMatchObject({ id: 'peer-1', status: 'already_in_room' });
    expect(tools.participants.map(({ id }) => id)).toContain('peer-1');
  });

  it('removing updates the roster at once; a stranger is refused', async () => {
    const tools = new FakeAgentTools();
    expect(await tools.removeParticipant('@USER')).toEqual({ id: 'user-1', name: 'User', status: 'removed' });
    await expect(tools.sendMessage('still there?', ['@user'])).rejects.toThrow(ValueError);
    await expect(tools.removeParticipant('@user')).rejects.toThrow("'@user' is not in the room");
  });

  it('getParticipants makes the platform’s list the roster', async () => {
    const rest = createFakeRest({ participants: [{ id: 'new', type: 'User', handle: '@new' }] });
    const roster = new Roster();
    roster.merge({ id: 'old', handle: 'old' });
    const tools = new AgentTools({ rest, roomId: 'r', roster });
    expect(await tools.getParticipants()).toEqual([
      { id: 'new', name: null, type: 'User', handle: 'new', description: null },
    ]);
    expect(roster.list().map(({ id }) => id)).toEqual(['new']);
  });

  it('getParticipants without data keeps what is known and returns nothing', async () => {
    const roster = new Roster();
    roster.merge({ id: 'old', handle: 'old' });
    const rest = createFakeRest();
    const tools = new AgentTools({ rest, roomId: 'r', roster });
    expect(await tools.getParticipants()).toEqual([]);
    rest.failNext('listParticipants', new GatewayError('BAND_BAD_ANSWER'));
    expect(await tools.getParticipants()).toEqual([]);
    expect(tools.availableMentionHandles()).toEqual(['@old']);
  });

  it('lookupPeers leaves out who is in the room', async () => {
    const tools = new FakeAgentTools({
      peers: [...PEERS, { id: 'user-1', name: 'User', type: 'User', handle: 'user' }],
    });
    expect((await tools.lookupPeers(1, 2)).data.map(({ id }) => id)).toEqual(['peer-1', 'peer-2']);
    expect(tools.calls).toEqual([{ method: 'listPeers', args: [{ page: 1, pageSize: 2, notInChat: 'room-1' }] }]);
  });
});

describe('rooms, contacts and memories', () => {
  it('createChatroom gives the new room’s id', async () => {
    const tools = new FakeAgentTools();
    expect(await tools.createChatroom()).toMatch(/^[0-9a-f-]{36}$/);
    await tools.createChatroom('task-1');
    expect(tools.calls.map(({ args }) => args[0])).toEqual([{}, { taskId: 'task-1' }]);
  });

  it('fetchRoomContext asks for the room it is told', async () => {
    const tools = new FakeAgentTools();
    await tools.fetchRoomContext({ roomId: 'other', cursor: 'c', limit: 9 });
    expect(tools.calls).toEqual([{ method: 'getContext', args: ['other', { cursor: 'c', limit: 9 }] }]);
  });

  it('contacts are named by handle or id, and what is absent is not sent', async () => {
    const tools = new FakeAgentTools();
    await tools.listContacts();
    await tools.addContact('@jane');
    await tools.addContact('@jane', 'hello');
    await tools.removeContact({ handle: '@jane' });
    await tools.removeContact({ handle: null, contactId: 'c1' });
    await tools.listContactRequests({ sentStatus: 'all' });
    await tools.respondContactRequest('approve', { requestId: 'q1' });
    await tools.respondContactRequest('cancel', { handle: '@jane', requestId: null });
    expect(tools.calls).toEqual([
      { method: 'contacts.list', args: [{ page: 1, pageSize: 50 }] },
      { method: 'contacts.add', args: ['@jane', undefined, {}] },
      { method: 'contacts.add', args: ['@jane', 'hello', {}] },
      { method: 'contacts.remove', args: [{ handle: '@jane' }, {}] },
      { method: 'contacts.remove', args: [{ contactId: 'c1' }, {}] },
      { method: 'contacts.requests', args: [{ page: 1, pageSize: 50, sentStatus: 'all' }] },
      { method: 'contacts.respond', args: ['approve', { requestId: 'q1' }, {}] },
      { method: 'contacts.respond', args: ['cancel', { handle: '@jane' }, {}] },
    ]);
  });

  it('neither handle nor id is refused, naming both', async () => {
    const tools = new FakeAgentTools();
    await expect(tools.removeContact({})).rejects.toThrow(/handle.*contact_id/);
    await expect(tools.respondContactRequest('reject', { handle: '' })).rejects.toThrow(/handle.*request_id/);
    await expect(tools.removeContact({})).rejects.toThrow(ValueError);
    expect(tools.calls).toEqual([]);
  });

  const memory = { content: 'c', segment: 'user', thought: 't' } as const;
  it.each([
    ['sensory', 'iconic', true],
    ['sensory', 'haptic', true],
    ['sensory', 'semantic', false],
    ['working', 'episodic', true],
    ['working', 'echoic', false],
    ['long_term', 'procedural', true],
    ['long_term', 'haptic', false],
  ] as const)('a %s memory of type %s is accepted: %j', async (system, type, ok) => {
    const tools = new FakeAgentTools();
    const outcome = await tools.executeToolCallStructured('band_store_memory', {
      ...memory,
      system,
      type,
      scope: 'organization',
    });
    expect([outcome.ok, tools.calls.length]).toEqual([ok, ok ? 1 : 0]);
    if (!ok) expect(outcome.errorMessage).toContain(`type '${type}' does not fit system '${system}'`);
  });

  it('scope subject needs a subject', async () => {
    const tools = new FakeAgentTools();
    const working = { ...memory, system: 'working', type: 'semantic', scope: 'subject' } as const;
    await expect(tools.storeMemory(working)).rejects.toThrow(/subject_id/);
    await tools.storeMemory({ ...working, subjectId: 'u1', metadata: { tags: [] } });
    expect(tools.calls[0]?.args[0]).toEqual({ ...working, subject_id: 'u1', metadata: { tags: [] } });
  });

  it('memory filters go out in the wire’s spelling', async () => {
    const tools = new FakeAgentTools();
    await tools.listMemories({ subjectId: 'u', contentQuery: 'q', system: 'working', status: 'all', pageSize: 5 });
    expect(tools.calls[0]?.args[0]).toEqual({
      subject_id: 'u',
      content_query: 'q',
      system: 'working',
      status: 'all',
      page_size: 5,
    });
  });
});

describe('failures', () => {
  it('R-271 failures are outcomes, the value their text', async () => {
    const tools = new FakeAgentTools();
    tools.failNext('createChat', new Error('boom'));
    expect(await tools.executeToolCall('band_create_chatroom', {})).toBe('Error executing band_create_chatroom: boom');
    expect(await tools.executeToolCallStructured('band_create_chatroom', {})).toMatchObject({ ok: true });
  });

  it('R-271 a BandToolError propagates', async () => {
    const call = new FakeAgentTools().executeToolCallStructured('band_send_message', { content: 'hi', mentions: [] });
    await expect(call).rejects.toThrow(BandToolError);
  });

  it.each<[string, string, (tools: FakeAgentTools) => Promise<unknown>]>([
    ['posting', 'postMessage', (tools) => tools.sendMessage('hi', ['@user'])],
    ['an event', 'postEvent', (tools) => tools.sendEvent('hi', 'task')],
    ['reading the room', 'listParticipants', (tools) => tools.getParticipants()],
    ['adding', 'addParticipant', (tools) => tools.addParticipant('@acme/planner')],
    ['memories without the plan', 'memories.list', (tools) => tools.listMemories()],
    [
      'storing without the plan',
      'memories.store',
      (tools) =>
        tools.storeMemory({
          content: 'c',
          system: 'working',
          type: 'semantic',
          segment: 'user',
          thought: 't',
          scope: 'organization',
        }),
    ],
    ['contacts', 'contacts.list', (tools) => tools.listContacts()],
  ])('R-272 403 at %s surfaces as an ApiError with its status', async (_what, method, work) => {
    const tools = new FakeAgentTools({ peers: PEERS });
    tools.failNext(method, refusal(403, 'BAND_FORBIDDEN', 'not for you'));
    const failure = await work(tools).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ statusCode: 403, message: '403 Forbidden: not for you' });
  });

  it('R-041 401 surfaces with its status line, and a lost connection as a connection error', async () => {
    const tools = new FakeAgentTools();
    tools.failNext('createChat', refusal(401, 'BAND_UNAUTHORIZED'));
    await expect(tools.createChatroom()).rejects.toThrow('401 Unauthorized');
    tools.failNext('createChat', new GatewayError('BAND_UNREACHABLE', { cause: new Error('connect ECONNREFUSED') }));
    await expect(tools.createChatroom()).rejects.toThrow(BandConnectionError);
  });

  it('R-224 a post refused because the room is stopped aborts the cycle and does not fail it', async () => {
    const rest = createFakeRest();
    const onRoomStopped = vi.fn();
    const tools = new AgentTools({ rest, roomId: 'r9', onRoomStopped });
    const stopped = () => new GatewayError('BAND_ROOM_STOPPED', { cause: new ApiError({ statusCode: 403 }) });
    rest.failNext('postMessage', stopped());
    await expect(tools.sendMessage('hi', [{ id: 'u' }])).rejects.toThrow(RoomExecutionStoppedError);
    rest.failNext('postEvent', stopped());
    await expect(tools.sendEvent('hi', 'thought')).rejects.toThrow(/r9/);
    expect(onRoomStopped).toHaveBeenCalledTimes(2);
    expect(onRoomStopped).toHaveBeenCalledWith(expect.any(RoomExecutionStoppedError));
    expect(tools.turn.complete).toBe(false);
  });
});

describe('a turn that has ended', () => {
  const changing: [string, (tools: FakeAgentTools) => Promise<unknown>][] = [
    ['sendMessage', (tools) => tools.sendMessage('hi', ['@user'])],
    ['sendNotice', (tools) => tools.sendNotice('hi', ['@user'])],
    ['sendEvent', (tools) => tools.sendEvent('hi', 'thought')],
    ['sendFailure', (tools) => tools.sendFailure({ provider: 'p', message: 'm' })],
    ['addParticipant', (tools) => tools.addParticipant('@acme/planner')],
    ['removeParticipant', (tools) => tools.removeParticipant('@user')],
    ['createChatroom', (tools) => tools.createChatroom()],
    ['addContact', (tools) => tools.addContact('@jane')],
    ['removeContact', (tools) => tools.removeContact({ handle: '@jane' })],
    ['respondContactRequest', (tools) => tools.respondContactRequest('approve', { handle: '@jane' })],
    [
      'storeMemory',
      (tools) =>
        tools.storeMemory({
          content: 'c',
          system: 'working',
          type: 'semantic',
          segment: 'user',
          thought: 't',
          scope: 'organization',
        }),
    ],
    ['supersedeMemory', (tools) => tools.supersedeMemory('m')],
    ['archiveMemory', (tools) => tools.archiveMemory('m')],
    ['a tool call', (tools) => tools.executeToolCall('band_send_message', { content: 'hi', mentions: ['@user'] })],
  ];

  it.each(changing)('R-273 %s rejects and asks nothing of the platform, ended or aborted', async (_what, work) => {
    const controller = new AbortController();
    const ended = new FakeAgentTools({ peers: PEERS });
    const aborted = new FakeAgentTools({ peers: PEERS, turn: new Turn({ signal: controller.signal }) });
    ended.turn.end();
    controller.abort();
    for (const tools of [ended, aborted]) {
      await expect(work(tools)).rejects.toThrow(TurnEndedError);
      expect([tools.calls, tools.turn.complete, tools.turn.reported]).toEqual([[], false, false]);
    }
  });

  it('R-273 the refusal is a BandToolError, so no tool loop swallows it', () => {
    expect(new TurnEndedError()).toBeInstanceOf(BandToolError);
  });

  it('R-273 a call in flight gets the turn’s signal, and what it brings back late is not noted', async () => {
    const controller = new AbortController();
    const turn = new Turn({ signal: controller.signal });
    const rest = createFakeRest();
    const seen: unknown[] = [];
    const tools = new AgentTools({
      rest: {
        ...rest,
        postMessage: (_room, _message, call) => {
          seen.push(call?.signal);
          controller.abort();
          return Promise.resolve({ id: 'm', success: true });
        },
      },
      roomId: 'r',
      turn,
    });
    await tools.sendMessage('hi', [{ id: 'u' }]);
    expect([seen, turn.replied]).toEqual([[controller.signal], false]);
  });
});

describe('R-140 the tools of a turn', () => {
  it('R-140 are bound to one room', async () => {
    const tools = new FakeAgentTools({ roomId: 'room-9' });
    await tools.sendMessage('a', ['@user']);
    await tools.sendEvent('b', 'thought');
    await tools.getParticipants();
    expect(new Set(tools.calls.map(({ args }) => args[0]))).toEqual(new Set(['room-9']));
  });

  it('hand out snapshots of the participants', async () => {
    const tools = new FakeAgentTools();
    const before = tools.participants;
    await tools.removeParticipant('@user');
    expect([before.length, tools.participants.length]).toEqual([2, 1]);
  });
});
