import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { startSdkProgram, type SdkProcess } from '../support/band-sdk.js';
import { pythonVenv } from '../support/python-venv.js';
import { openRawSocket } from '../support/raw-socket.js';
import { callRest } from '../support/rest-call.js';
import { tempFolder } from '../support/temp-folder.js';
import { sandboxPerson, type SandboxPerson } from '../support/sandbox-person.js';

const sdk = await pythonVenv('bandSdk');
const python = sdk.kind === 'present' ? sdk.python : '';
const title = sdk.kind === 'present' ? 'the Python SDK 6.0.1' : `the Python SDK 6.0.1 (skipped: ${sdk.reason})`;

describe.skipIf(sdk.kind === 'absent')(title, { timeout: 60_000 }, () => {
  let sandbox: Sandbox;
  let person: SandboxPerson;
  let running: SdkProcess[];

  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    person = await sandboxPerson(sandbox);
    running = [];
  });
  afterEach(async () => {
    for (const process of running) process.kill('SIGKILL');
    await Promise.all(running.map(({ exited }) => exited));
    await sandbox.close();
  });

  const start = (env: Record<string, string> = {}): SdkProcess => {
    const process = startSdkProgram(python, 'band-sdk-agent.py', {
      BAND_REST_URL: sandbox.restUrl,
      BAND_WS_URL: sandbox.wsUrl,
      AGENT_ID: DEMO.echo.id,
      API_KEY: DEMO.echo.apiKey,
      ...env,
    });
    running.push(process);
    return process;
  };
  const online = async (env: Record<string, string> = {}): Promise<SdkProcess> => {
    const process = start(env);
    await process.event('online');
    return process;
  };
  const runs = (process: SdkProcess) => process.events.filter(({ event }) => event === 'run').length;

  it('finds every field of every answer that its generated client asks for', async () => {
    sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const planner = sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Planner', description: 'Plans' });
    const process = startSdkProgram(python, 'band-sdk-surface.py', {
      BAND_REST_URL: sandbox.restUrl,
      AGENT_ID: DEMO.echo.id,
      API_KEY: DEMO.echo.apiKey,
      OTHER_AGENT_ID: DEMO.dice.id,
      OTHER_API_KEY: DEMO.dice.apiKey,
      USER_API_KEY: DEMO.user.apiKey,
      FOREIGN_HANDLE: planner.handle,
      FOREIGN_API_KEY: planner.apiKey,
    });
    running.push(process);
    const summary = await process.event('summary');
    expect(summary['failed']).toEqual({});
    expect(summary['worked']).toHaveLength(73);
  });

  it('accepts the payload of every push that an agent can get', async () => {
    const bob = sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const stranger = await sandboxPerson(sandbox, bob.apiKey);
    const url = `${sandbox.wsUrl}?api_key=${DEMO.echo.apiKey}&vsn=2.0.0`;
    const agent = await openRawSocket(url);
    for (const topic of ['agent_control', 'agent_rooms', 'agent_contacts'])
      await agent.join(`${topic}:${DEMO.echo.id}`);
    const roomId = await person.createRoom([DEMO.echo.id]);
    for (const topic of ['chat_room', 'room_participants']) await agent.join(`${topic}:${roomId}`);

    await person.post(roomId, 'hello', [DEMO.echo.id]);
    await person.add(roomId, DEMO.dice.id);
    await person.add(roomId, bob.id);
    await person.remove(roomId, DEMO.dice.id);
    await person.remove(roomId, bob.id);
    await person.interrupt(roomId, DEMO.echo.id);
    await person.call('POST', `/agents/${DEMO.echo.id}/stop`);
    await person.play(roomId);
    const asked = await stranger.call('POST', '/contacts/requests', {
      contact_request: { recipient_handle: 'demo/echo' },
    });
    expect(asked.status).toBe(201);
    const answer = (action: string) =>
      callRest(sandbox.restUrl, 'POST', '/api/v1/agent/contacts/requests/respond', DEMO.echo.apiKey, {
        action,
        handle: 'bob',
      });
    expect((await answer('approve')).status).toBe(200);
    await stranger.call('POST', '/contacts/remove', { handle: 'demo/echo' });
    await person.call('DELETE', `/chats/${roomId}`);
    const newer = await openRawSocket(url);
    await agent.closed;
    await newer.close();

    const process = startSdkProgram(python, 'band-sdk-payloads.py', {});
    running.push(process);
    const pushed = agent.received.filter(([, ref, , event]) => ref === null && !event.startsWith('phx_'));
    for (const [, , , event, payload] of pushed) process.say(JSON.stringify([event, payload]));
    // What people get has the same shape, with delivery states.
    const [updated] = person.socket.received.filter(([, , , event]) => event === 'message_updated');
    process.say(JSON.stringify(['message_updated', updated?.[4]]));
    process.end();
    const checked = await process.event('checked');
    expect(checked['rejected']).toEqual([]);
    expect(checked['seen']).toEqual([
      'agent.control',
      'contact_added',
      'contact_removed',
      'contact_request_received',
      'contact_request_updated',
      'message_created',
      'message_updated',
      'participant_added',
      'participant_removed',
      'room_added',
      'room_deleted',
      'room_removed',
      'supersede',
    ]);
  });

  it('starts, joins its topics, answers once, and stops in order', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const messageId = await person.post(roomId, '@Echo how are you?', [DEMO.echo.id]);

    const reply = await person.reply(roomId, DEMO.echo.id);
    expect(reply.content).toContain('echo: @demo/echo how are you?');
    await person.event(roomId, 'thought');
    const delivery = await person.delivery(messageId, DEMO.echo.id, 'processed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['success']);
    expect(runs(process)).toBe(1);
    expect(sandbox.dev.state().sockets.find(({ kind }) => kind === 'Agent')?.topics).toEqual(
      expect.arrayContaining([
        `agent_control:${DEMO.echo.id}`,
        `agent_rooms:${DEMO.echo.id}`,
        `agent_contacts:${DEMO.echo.id}`,
        `chat_room:${roomId}`,
        `room_participants:${roomId}`,
      ]),
    );

    process.say('stop');
    expect((await process.event('stopped'))['graceful']).toBe(true);
    expect(await process.exited).toBe(0);
    expect(sandbox.dev.state().sockets.filter(({ kind }) => kind === 'Agent')).toEqual([]);
  });

  it('reads a room from before its start, with its history', async () => {
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'one', [DEMO.echo.id]);
    const first = await online();
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('one'));
    first.say('stop');
    await first.exited;

    await person.post(roomId, 'two', [DEMO.echo.id]);
    const second = await online();
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
    const run = await second.event('run');
    expect(run['bootstrap']).toBe(true);
    expect(run['history']).toBeGreaterThan(0);
    expect(runs(second)).toBe(1);
  });

  it('comes back after a dropped socket and finds what was said meanwhile', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'one', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('one'));
    await process.event('done');

    expect(sandbox.dev.closeSockets(DEMO.echo.id, 1006)).toBe(1);
    await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
    expect(runs(process)).toBe(2);
  });

  it('comes back to a sandbox that was restarted on its data folder, and goes on where it was', async () => {
    const dataDir = await tempFolder();
    await sandbox.close();
    sandbox = await startSandbox({ port: 0, dataDir });
    person = await sandboxPerson(sandbox);
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'one', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('one'));
    await process.event('done');

    const { port } = sandbox;
    await sandbox.close();
    sandbox = await startSandbox({ port, dataDir });
    person = await sandboxPerson(sandbox);
    await person.listen(roomId);
    await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
    expect(runs(process)).toBe(2);
  });

  it('joins again after a crashed channel', async () => {
    await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'one', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('one'));
    sandbox.dev.crashChannel(DEMO.echo.id, `chat_room:${roomId}`);
    await expect
      .poll(() => sandbox.dev.state().sockets.flatMap(({ kind, topics }) => (kind === 'Agent' ? topics : [])), {
        timeout: 15_000,
      })
      .toContain(`chat_room:${roomId}`);
    await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
  });

  it('ends for good when a newer connection takes its place', async () => {
    const first = await online();
    const second = await online();
    await first.event('ended');
    await first.event('stopped');
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'hello', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    expect(runs(first)).toBe(0);
    expect(runs(second)).toBe(1);
  });

  it('is refused under REJECT while another connection lives, which goes on undisturbed', async () => {
    const first = await online();
    const second = start({ CONFLICT_POLICY: 'REJECT' });
    await second.event('refused');
    expect(await second.exited).toBe(0);
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'hello', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    expect(runs(first)).toBe(1);
  });

  it('stops in the middle of a run, and runs the message again after play, before a newer one', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const first = await person.post(roomId, 'slow one', [DEMO.echo.id]);
    await process.event('run');
    await person.stop(roomId);
    await process.event('cancelled');
    const second = await person.post(roomId, 'two', [DEMO.echo.id]);
    await person.play(roomId);
    await person.reply(roomId, DEMO.echo.id, ({ content }) => content.includes('two'));
    const order = process.events.filter(({ event }) => event === 'run').map(({ message }) => message);
    expect(order).toEqual([first, first, second]);
    const delivery = await person.delivery(first, DEMO.echo.id, 'processed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['processing', 'success']);
  });

  it('runs a failed message again while attempts are left', async () => {
    await online({ MAX_RETRIES: '2' });
    const roomId = await person.createRoom([DEMO.echo.id]);
    const messageId = await person.post(roomId, 'fail once', [DEMO.echo.id]);
    const delivery = await person.delivery(messageId, DEMO.echo.id, 'processed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['failed', 'success']);
  });

  it('marks an interrupted message processed and says nothing', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const messageId = await person.post(roomId, 'slow one', [DEMO.echo.id]);
    await process.event('run');
    await person.interrupt(roomId, DEMO.echo.id);
    await process.event('cancelled');
    await person.delivery(messageId, DEMO.echo.id, 'processed');
    expect((await person.messages(roomId)).filter(({ sender_id }) => sender_id === DEMO.echo.id)).toEqual([]);
  });

  it('reports a failed run once to the room, and leaves the message failed', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    const messageId = await person.post(roomId, 'fail always', [DEMO.echo.id]);
    const delivery = await person.delivery(messageId, DEMO.echo.id, 'failed');
    expect(delivery.attempts.map(({ status }) => status)).toEqual(['failed']);
    await person.event(roomId, 'error');
    expect(runs(process)).toBe(1);
  });

  it('learns of people who come and go, and cleans up after a deleted room', async () => {
    const process = await online();
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'hello', [DEMO.echo.id]);
    await person.reply(roomId, DEMO.echo.id);
    await person.add(roomId, DEMO.dice.id);
    expect((await process.event('participant_added'))['id']).toBe(DEMO.dice.id);
    await person.remove(roomId, DEMO.dice.id);
    await process.event('participant_removed');
    await person.call('DELETE', `/chats/${roomId}`);
    expect((await process.event('cleanup'))['room']).toBe(roomId);
  });

  it('hears of contact requests', async () => {
    const process = await online();
    const bob = sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const other = await sandboxPerson(sandbox, bob.apiKey);
    await other.call('POST', '/contacts/requests', {
      contact_request: { recipient_handle: 'demo/echo', message: 'hi' },
    });
    expect((await process.event('contact'))['type']).toBe('contact_request_received');
  });

  it('stays paused when it was stopped while away', async () => {
    const roomId = await person.createRoom([DEMO.echo.id]);
    await person.post(roomId, 'hello', [DEMO.echo.id]);
    await person.stop(roomId);
    const process = await online({ IDLE_RESYNC_SECONDS: '0.5' });
    await person.play(roomId);
    await person.reply(roomId, DEMO.echo.id);
    expect(runs(process)).toBe(1);
  });
});
