import { afterEach, describe, expect, it } from 'vitest';
import { AcpFault } from '../../../bridges/acp/errors.js';
import { person } from '../../support/acp/fake-band.js';
import { createLab, resultOf, updateOf, makeReady, type Lab, type LabOptions } from '../../support/acp/lab.js';

const codex = person('codex', 'Agent', 'writes and fixes code');
const labs: Lab[] = [];
const lab = async (options: LabOptions = {}) => {
  const made = await createLab({ peers: [codex], ...options });
  labs.push(made);
  return made;
};
afterEach(async () => {
  for (const one of labs.splice(0)) await one.close();
});

describe('the start of a connection', () => {
  it('P-001 answers initialize while Band is out of reach, without any call to it', async () => {
    const { band, clock, ...rest } = await lab({ ready: false });
    const before = clock.now();
    const editor = await rest.editor({ initialize: false });
    expect((await editor.initialize()).result?.protocolVersion).toBe(1);
    expect(clock.now() - before).toBe(0);
    expect(band.calls).toEqual([]);
  });

  it('P-002 speaks version 1 whatever was asked, and refuses what is no integer', async () => {
    const editor = await (await lab()).editor({ initialize: false });
    for (const protocolVersion of [0, 1, 2, 99, 65_535]) {
      const answer = await editor.request('initialize', { protocolVersion, clientCapabilities: {} });
      expect(answer.result?.protocolVersion).toBe(1);
    }
    for (const protocolVersion of ['1', 1.5, null]) {
      const answer = await editor.request('initialize', { protocolVersion, clientCapabilities: {} });
      expect(answer.error).toMatchObject({ code: -32_602, data: { reason: 'invalid_params' } });
    }
  });

  it('P-003 offers exactly what it serves', async () => {
    const editor = await (await lab()).editor({ initialize: false });
    const { result } = await editor.initialize();
    expect(result).toEqual({
      protocolVersion: 1,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: false, audio: false, embeddedContext: true },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        _meta: { 'band.ai': { promptQueueing: true, outOfTurnUpdates: true, observer: false } },
      },
      agentInfo: { name: 'band-gateway', title: 'Band: Gateway', version: '0.1.0' },
      authMethods: [],
    });
    const session = await editor.newSession();
    for (const [method, params] of [
      ['session/list', {}],
      ['session/resume', { sessionId: session, cwd: '/x', mcpServers: [] }],
      ['session/load', { sessionId: session, cwd: '/x', mcpServers: [] }],
      ['session/close', { sessionId: session }],
      ['session/delete', { sessionId: session }],
    ] as const) {
      expect((await editor.request(method, params)).result, method).toBeDefined();
    }
    for (const method of [
      'session/fork',
      'logout',
      'session/set_title',
      'providers/list',
      '_vendor/x',
      'session/telepathy',
    ]) {
      expect((await editor.request(method, { sessionId: session })).error).toMatchObject({
        code: -32_601,
        data: { reason: 'unknown_method', method },
      });
    }
  });

  it('P-003 says that nothing comes out of turn when pushes are off', async () => {
    const editor = await (await lab({ options: { push: 'never' } })).editor({ initialize: false });
    const { result } = await editor.initialize();
    expect(result!.agentCapabilities._meta['band.ai'].outOfTurnUpdates).toBe(false);
  });

  it('P-004 refuses every other request before initialize', async () => {
    const editor = await (await lab()).editor({ initialize: false });
    const answer = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({ code: -32_600, data: { reason: 'not_initialized' } });
  });

  it('P-004 keeps what is written right behind an initialize until that is answered', async () => {
    const made = await lab();
    const { clock } = made;
    const editor = await made.editor({ initialize: false });
    editor.ask('initialize', { protocolVersion: 1, clientCapabilities: {} }, 'a');
    editor.ask('session/new', { cwd: '/x', mcpServers: [] }, 'b');
    for (let i = 0; i < 10; i += 1) await clock.advance(0);
    expect(editor.frames.slice(0, 2).map(({ id }) => id)).toEqual(['a', 'b']);
    expect(editor.answerTo('b')?.result?.sessionId).toBeDefined();
  });

  it('a repeated initialize is answered again and replaces what the client can do', async () => {
    const made = await lab({ options: { peers: ['codex', 'ghost'] } });
    const editor = await made.editor({ notices: true });
    await editor.initialize(false);
    await editor.newSession();
    expect(editor.updates('notice')).toEqual([]);
    expect(editor.updates('agent_thought_chunk')).toHaveLength(1);
  });

  it('P-172 takes frames with members it does not know', async () => {
    const editor = await (await lab()).editor();
    editor.asked.set('x', 'session/list');
    editor.send({ jsonrpc: '2.0', type: 'request', id: 'x', method: 'session/list', params: {}, extra: 1 });
    await editor.settle();
    expect(editor.answerTo('x')?.result).toEqual({ sessions: [] });
  });

  it('ids come back with their type', async () => {
    const editor = await (await lab()).editor();
    for (const id of [0, 'str-id', 7]) {
      editor.ask('session/list', {}, id);
      await editor.settle();
      expect(editor.answerTo(id)?.result).toEqual({ sessions: [] });
    }
  });
});

describe('authentication', () => {
  const bad = (fault: AcpFault) => ({ isGood: false, check: () => Promise.reject(fault) });

  it('P-012 without credentials session calls are refused with the ways to sign in', async () => {
    const made = await lab({ ready: false, authentication: bad(new AcpFault('credentials_missing')) });
    made.server.gate.set({ kind: 'refused', fault: new AcpFault('credentials_missing') });
    const editor = await made.editor({ initialize: false });
    const { result } = await editor.initialize();
    expect(result!.authMethods).toEqual([expect.objectContaining({ id: 'band_api_key', name: 'Band agent key' })]);
    const answer = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({ code: -32_000, data: { reason: 'credentials_missing' } });
  });

  it('P-022 a refused key is an error of authenticate, an unknown method a wrong parameter', async () => {
    const fault = new AcpFault('credentials_rejected', { status: 401 });
    const editor = await (await lab({ authentication: bad(fault) })).editor();
    expect((await editor.request('authenticate', { methodId: 'band_api_key' })).error).toMatchObject({
      code: -32_000,
      data: { reason: 'credentials_rejected', status: 401, retryable: false },
    });
    expect((await editor.request('authenticate', { methodId: 'password' })).error).toMatchObject({
      code: -32_602,
      data: { reason: 'unknown_auth_method' },
    });
  });

  it('P-023 Band out of reach is not a refused key', async () => {
    const editor = await (await lab({ authentication: bad(new AcpFault('platform_unavailable')) })).editor();
    expect((await editor.request('authenticate', { methodId: 'band_api_key' })).error).toMatchObject({
      code: -32_603,
      data: { reason: 'platform_unavailable', retryable: true },
    });
  });

  it('P-024 takes the names that other bridges gave the method', async () => {
    const editor = await (await lab()).editor();
    for (const methodId of ['band_api_key', 'api_key', 'cursor_login']) {
      expect((await editor.request('authenticate', { methodId })).result).toEqual({});
    }
  });
});

describe('session/new', () => {
  it('P-030 makes one room, invites each configured peer once, then marks the room', async () => {
    const reviewer = person('reviewer');
    const { band, ...rest } = await lab({
      peers: [codex, reviewer],
      options: { peers: ['codex', 'ana/reviewer', 'Codex'] },
    });
    const session = await (await rest.editor()).newSession();
    const made = band.calls.filter(({ method }) => method !== 'listPeers');
    expect(made.map(({ method, args }) => [method, method === 'addParticipant' ? args : null])).toEqual([
      ['createChat', null],
      ['addParticipant', codex.id],
      ['addParticipant', reviewer.id],
      ['postEvent', null],
    ]);
    expect(session, 'P-031 the id of a session is the id of its room').toBe(band.onlyRoom.id);
  });

  it('P-032 puts no secret of an MCP server into the room', async () => {
    const { band, ...rest } = await lab();
    const editor = await rest.editor();
    const session = await editor.newSession({
      mcpServers: [
        { name: 'files', command: '/bin/f', args: ['CANARY'], env: [{ name: 'T', value: 'CANARY' }] },
        {
          type: 'http',
          name: 'web',
          url: 'https://u:CANARY@h.example/p?k=CANARY',
          headers: [{ name: 'A', value: 'CANARY' }],
        },
      ],
    });
    editor.prompt(session, 'hi');
    await editor.settle();
    expect(JSON.stringify(band.calls)).toContain('files (stdio), web (http)');
    expect(JSON.stringify(band.calls)).not.toContain('CANARY');
  });

  it('P-033 refuses a folder that is not absolute', async () => {
    const { band, ...rest } = await lab();
    const editor = await rest.editor();
    for (const params of [{ cwd: 'a/b', mcpServers: [] }, { cwd: null, mcpServers: [] }, { mcpServers: [] }]) {
      const answer = await editor.request('session/new', params);
      expect(answer.error).toMatchObject({ code: -32_602, data: { reason: 'invalid_cwd', retryable: false } });
    }
    expect(band.calls).toEqual([]);
    for (const cwd of ['/', 'C:\\x', '\\\\srv\\x']) {
      expect((await editor.request('session/new', { cwd, mcpServers: [] })).result).toBeDefined();
    }
  });

  it('P-034 hands out modes and options that agree', async () => {
    const made = await lab({ options: { modes: [{ id: 'code', peer: 'codex', name: 'Code' }, { id: 'chat' }] } });
    const editor = await made.editor();
    const { result } = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(result!.modes).toEqual({
      currentModeId: 'code',
      availableModes: [
        { id: 'code', name: 'Code' },
        { id: 'chat', name: 'Chat' },
      ],
    });
    expect(result!.configOptions.map((option) => [option.id, option.type, option.currentValue])).toEqual([
      ['mode', 'select', 'code'],
      ['target', 'select', 'auto'],
    ]);
    expect(result!.configOptions[1]!.options.map((option) => option.value)).toEqual(['auto', 'all', 'ana/codex']);
  });

  it('P-035 ACP-02 no update of a session stands before the answer that introduces it, in a hundred runs', async () => {
    const { band, clock, ...rest } = await lab({ options: { maxSessions: 300 } });
    const editor = await rest.editor();
    // Band pushes a welcome into the room before it answers that the room was made.
    band.hooks.push((call) => {
      if (call.method !== 'addParticipant' && call.method !== 'postEvent') return;
      const room = band.room(call.roomId ?? '');
      void band.say(room, codex, `welcome to ${room.id}`);
    });
    const ids: (string | number)[] = [];
    for (let i = 0; i < 50; i += 1) {
      ids.push(editor.ask('session/new', { cwd: `/a${i}`, mcpServers: [] }));
      ids.push(editor.ask('session/new', { cwd: `/b${i}`, mcpServers: [] }));
      for (let turn = 0; turn < 8; turn += 1) await clock.advance(0);
    }
    for (const id of ids) {
      const { sessionId } = resultOf(editor.answerTo(id)!);
      const introduced = editor.indexOf((frame) => frame.id === id);
      const first = editor.indexOf((frame) => frame.params?.['sessionId'] === sessionId);
      expect(first).toBeGreaterThan(introduced);
      expect(editor.said(sessionId).at(-1)).toContain(`welcome to ${sessionId}`);
      expect(editor.updates('available_commands_update', sessionId)).toHaveLength(1);
    }
  });

  it('P-036 the commands follow new, load and resume', async () => {
    const editor = await (await lab()).editor();
    const session = await editor.newSession();
    expect(editor.updates('available_commands_update', session)).toHaveLength(1);
    for (const method of ['session/load', 'session/resume']) {
      const before = editor.frames.length;
      await editor.request(method, { sessionId: session, cwd: '/home/ana/shop', mcpServers: [] });
      await editor.settle();
      const after = editor.frames.slice(before).map((frame) => updateOf(frame)?.sessionUpdate ?? 'answer');
      expect(after).toContain('available_commands_update');
    }
    expect(editor.updates('available_commands_update', session)[0]!.availableCommands.at(-1)).toEqual({
      name: 'codex',
      description: 'Ask Codex: writes and fixes code',
      input: { hint: 'message' },
    });
  });

  it('P-037 a room that could not be marked is used by the next session', async () => {
    const { band, ...rest } = await lab();
    const editor = await rest.editor();
    band.fail('postEvent', 'BAND_UNAVAILABLE');
    const failed = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(failed.error).toMatchObject({ code: -32_603, data: { reason: 'platform_unavailable', retryable: true } });
    const session = await editor.newSession();
    expect(session).toBe(band.onlyRoom.id);
    expect(band.of('createChat')).toHaveLength(1);
  });

  it('P-038 waits for Band as long as allowed, and works once Band is there', async () => {
    const { band, clock, server, ...rest } = await lab({ ready: false });
    const editor = await rest.editor();
    const first = editor.ask('session/new', { cwd: '/x', mcpServers: [] });
    await clock.advance(14_999);
    expect(editor.answerTo(first)).toBeUndefined();
    await clock.advance(2);
    expect(editor.answerTo(first)?.error).toMatchObject({
      code: -32_603,
      data: { reason: 'platform_unavailable', retryable: true },
    });
    const second = editor.ask('session/new', { cwd: '/x', mcpServers: [] });
    await clock.advance(1_000);
    makeReady(server, band);
    await editor.settle();
    expect(editor.answerTo(second)?.result?.sessionId).toBeDefined();
  });

  it('P-039 forgets the session that was left longest ago; with all in use there is a limit', async () => {
    const made = await lab({ options: { maxSessions: 2 } });
    const leaving = await made.editor();
    const first = await leaving.newSession();
    await made.clock.advance(1_000);
    leaving.hangUp();
    await leaving.settle();
    const editor = await made.editor();
    await editor.newSession();
    await editor.newSession();
    expect(made.server.sessions.size).toBe(2);
    const answer = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({ code: -32_603, data: { reason: 'session_limit', retryable: true } });
    await editor.request('session/close', {
      sessionId: (await editor.request('session/list', {})).result?.sessions[0]?.sessionId,
    });
    expect(
      (await editor.request('session/load', { sessionId: first, cwd: '/x', mcpServers: [] })).result,
    ).toBeDefined();
  });

  it('P-041 one refused peer of two is a warning, all refused fail the session', async () => {
    const reviewer = person('reviewer');
    const { band, ...rest } = await lab({ peers: [codex, reviewer], options: { peers: ['codex', 'reviewer'] } });
    band.refusedInvites.add(codex.id);
    const editor = await rest.editor({ notices: true });
    await editor.newSession();
    expect(editor.updates('notice')).toEqual([
      { sessionUpdate: 'notice', severity: 'warning', title: '@ana/codex could not be added to the room.' },
    ]);
    band.refusedInvites.add(reviewer.id);
    const answer = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({ code: -32_603, data: { reason: 'platform_refused', status: 403 } });
  });

  it('a plan without more rooms is told as such', async () => {
    const { band, ...rest } = await lab();
    band.fail('createChat', 'BAND_FORBIDDEN', 1, { status: 403, code: 'limit_reached' });
    const answer = await (await rest.editor()).request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({
      code: -32_603,
      data: { reason: 'plan_limit', status: 403, code: 'limit_reached', requestId: 'req-1' },
    });
  });
});

describe('unexpected errors', () => {
  it('P-160 tell the editor a reference and nothing of themselves', async () => {
    const { band, ...rest } = await lab();
    band.hooks.push(() => {
      throw new Error('CANARY {"secret":1}');
    });
    const editor = await rest.editor();
    const answer = await editor.request('session/new', { cwd: '/x', mcpServers: [] });
    expect(answer.error).toMatchObject({ code: -32_603, message: 'Internal error', data: { reason: 'internal' } });
    expect(answer.error?.data.ref).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.stringify(editor.frames)).not.toContain('CANARY');
  });
});
