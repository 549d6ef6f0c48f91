import { Agent } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { createBandLink, type BandLinkOptions } from '../../src/platform/link.js';
import type { BandLink, LinkEvent } from '../../src/platform/link-port.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { walkCursor, walkPages } from '../../src/platform/rest/paging.js';
import { createRestClient } from '../../src/platform/rest/rest-client.js';
import { topics } from '../../src/platform/topics.js';
import type { AgentControl } from '../../src/platform/wire/socket-events.js';
import { DEMO, type Sandbox, startSandbox } from '../../src/sandbox/index.js';
import { failure } from '../support/link-lab.js';
import { type SandboxPerson, sandboxPerson } from '../support/sandbox-person.js';

/** The client against the embedded platform, so that neither is right by itself only. */

const ECHO = DEMO.echo;
/** Real time, but what the client waits for between two tries passes fifty times faster. */
const impatient: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };

let sandbox: Sandbox;
let dispatcher: Agent;
let person: SandboxPerson;
let rest: BandRest;
const links: BandLink[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  dispatcher = new Agent();
});
afterAll(async () => {
  await dispatcher.close();
  await sandbox.close();
});
beforeEach(async () => {
  sandbox.dev.reset();
  person = await sandboxPerson(sandbox);
  rest = restOf(ECHO.apiKey);
});
afterEach(async () => {
  sandbox.dev.clearFaults();
  await Promise.all(links.splice(0).map((link) => link.close()));
  await person.close();
});

const restOf = (apiKey: string) =>
  createRestClient({ restUrl: sandbox.restUrl, apiKey, dispatcher, clock: impatient, random: () => 0.5 });

function open(options: Partial<BandLinkOptions> = {}) {
  const link = createBandLink({
    wsUrl: sandbox.wsUrl,
    agentId: ECHO.id,
    apiKey: ECHO.apiKey,
    onConflict: 'supersede',
    clock: impatient,
    random: () => 0,
    ...options,
  });
  links.push(link);
  const iterator = link.events[Symbol.asyncIterator]();
  const next = async (): Promise<LinkEvent> => (await iterator.next()).value as LinkEvent;
  /** The next event of a kind; others before it are let go. */
  const nextOf = async (kind: LinkEvent['kind']): Promise<LinkEvent> => {
    for (;;) {
      const event = await next();
      if (event.kind === kind) return event;
    }
  };
  return { link, next, nextOf };
}

describe('the REST client', () => {
  it('walks a message through its delivery states', async () => {
    const room = await person.createRoom([ECHO.id]);
    const id = await person.post(room, 'hello @Echo', [ECHO.id]);
    const next = await rest.nextMessage(room);
    expect(next).toMatchObject({ id, message_type: 'text', sender_id: DEMO.user.id, chat_room_id: room });
    expect(await rest.markProcessing(room, id)).toEqual({ kind: 'accepted', attempt: 1 });
    expect((await rest.listMessages(room, { status: 'processing' })).data.map((message) => message.id)).toEqual([id]);
    expect(await rest.markFailed(room, id, 'not today')).toEqual({ kind: 'accepted', attempt: 1 });
    expect(await rest.markProcessing(room, id)).toEqual({ kind: 'accepted', attempt: 2 });
    expect(await rest.markProcessed(room, id)).toEqual({ kind: 'accepted', attempt: 2 });
    expect(await rest.nextMessage(room)).toBeNull();
    expect((await failure(rest.markProcessed(room, id))).code).toBe('BAND_INVALID');
    await rest.reportActivity(room, true);
    const reply = await rest.postMessage(room, { content: 'done', mentions: [{ id: DEMO.user.id }] });
    expect(reply.recipients?.[0]?.handle).toBe('demo');
    await rest.postEvent(room, { content: 'bound', messageType: 'task', metadata: { slack_room_id: room } });
    const context = await walkCursor((options) => rest.getContext(room, options), { pageSize: 1 });
    expect(context.items.map(({ message_type }) => message_type)).toEqual(['text', 'text', 'task']);
    expect(context.complete).toBe(true);
  });

  it('knows a stopped room by its marks and by its posts', async () => {
    const room = await person.createRoom([ECHO.id]);
    const id = await person.post(room, 'hello', [ECHO.id]);
    await person.stop(room);
    expect(await rest.nextMessage(room)).toBeNull();
    expect(await rest.markProcessing(room, id)).toEqual({ kind: 'stopped' });
    const posts = [
      rest.postMessage(room, { content: 'x', mentions: [{ id: DEMO.user.id }] }),
      rest.postEvent(room, { content: 'x', messageType: 'thought' }),
    ];
    for (const post of posts) expect((await failure(post)).code).toBe('BAND_ROOM_STOPPED');
  });

  it('makes rooms, manages participants and lists all pages', async () => {
    const rooms = await Promise.all(Array.from({ length: 7 }, (_, i) => rest.createChat({ title: `room ${i}` })));
    const walked = await walkPages((options) => rest.listChats(options), { pageSize: 3 });
    expect(new Set(walked.items.map(({ id }) => id))).toEqual(new Set(rooms.map(({ id }) => id)));
    const room = rooms[0]!.id;
    expect((await rest.addParticipant(room, { participantId: DEMO.dice.id })).id).toBe(DEMO.dice.id);
    expect((await failure(rest.addParticipant(room, { participantId: DEMO.dice.id }))).code).toBe('BAND_CONFLICT');
    expect(await rest.listParticipants(room)).toHaveLength(2);
    await rest.removeParticipant(room, DEMO.dice.id);
    expect((await failure(rest.removeParticipant(room, ECHO.id))).details['bandCode']).toBe('cannot_remove_sole_owner');
    expect((await rest.renameChat(room, 'another')).title).toBe('another');
    const peers = await walkPages((options) => rest.listPeers(options));
    expect(peers.items.map(({ handle }) => handle)).toContain('demo/dice');
  });

  it('names what went wrong', async () => {
    const room = (await rest.createChat()).id;
    expect((await failure(restOf('band_a_nobody').getMe())).code).toBe('BAND_UNAUTHORIZED');
    expect((await failure(restOf(DEMO.user.apiKey).getMe())).code).toBe('BAND_FORBIDDEN');
    expect((await failure(rest.getChat('00000000-0000-4000-8000-00000000dead'))).code).toBe('BAND_NOT_FOUND');
    expect((await failure(rest.getChat('no-uuid'))).code).toBe('BAND_INVALID');
    const blank = await failure(rest.postMessage(room, { content: ' ', mentions: [] }));
    expect(blank.code).toBe('BAND_INVALID');
    expect(blank.details['requestId']).toBeTypeOf('string');
    const unmentioned = await failure(rest.postMessage(room, { content: 'x', mentions: [] }));
    expect(unmentioned.details['bandCode']).toBe('mentions_required');
    expect((await failure(rest.memories.list())).code).toBe('BAND_FORBIDDEN');
  });

  it('repeats what may be repeated, and never posts twice when the answer is lost', async () => {
    const room = (await rest.createChat()).id;
    sandbox.dev.faultRest({ status: 503, body: null, times: 2 });
    expect((await rest.getMe()).id).toBe(ECHO.id);
    sandbox.dev.faultRest({ status: 429, body: 'slow down', headers: { 'Retry-After': '1' } });
    await rest.postEvent(room, { content: 'one', messageType: 'thought' });
    sandbox.dev.faultRest({ method: 'POST', drop: 'after' });
    const lost = await failure(rest.postEvent(room, { content: 'two', messageType: 'thought' }));
    expect(lost.code).toBe('BAND_CONNECTION_LOST');
    sandbox.dev.faultRest({ method: 'POST', status: 500 });
    expect((await failure(rest.postEvent(room, { content: 'three', messageType: 'thought' }))).code).toBe(
      'BAND_UNAVAILABLE',
    );
    const { data } = await rest.getContext(room);
    expect(data.map(({ content }) => content)).toEqual(['one', 'two']);
  });
});

describe('the link', () => {
  const joinRoom = (link: BandLink, room: string) =>
    Promise.all([link.join(topics.chatRoom(room)), link.join(topics.participants(room))]);

  it('hears of rooms, messages, people and control', async () => {
    const { link, next } = open();
    const controls: AgentControl[] = [];
    link.onControl((control) => controls.push(control));
    await link.connect();
    await link.join(topics.control(ECHO.id));
    await link.join(topics.rooms(ECHO.id));
    await link.join(topics.contacts(ECHO.id));
    const room = await person.createRoom([ECHO.id], 'a room');
    expect(await next()).toMatchObject({ kind: 'room_added', roomId: room });
    await joinRoom(link, room);
    const id = await person.post(room, 'hello @Echo', [ECHO.id]);
    expect(await next()).toMatchObject({ kind: 'message_created', roomId: room, message: { id } });
    await person.add(room, DEMO.dice.id);
    expect(await next()).toMatchObject({ kind: 'participant_added', roomId: room, participant: { id: DEMO.dice.id } });
    await person.remove(room, DEMO.dice.id);
    expect(await next()).toMatchObject({ kind: 'participant_removed', participant: { id: DEMO.dice.id } });
    await person.stop(room);
    await person.play(room);
    await person.remove(room, ECHO.id);
    expect(await next()).toMatchObject({ kind: 'room_removed', roomId: room });
    expect(controls.map(({ mode, room_id }) => [mode, room_id])).toEqual([
      ['stop', room],
      ['play', room],
    ]);
  });

  it('PHX-04 what was missed is found after the reconnect, and what comes then is pushed', async () => {
    const { link, next, nextOf } = open();
    await link.connect();
    const room = await person.createRoom([ECHO.id]);
    await joinRoom(link, room);
    await person.post(room, 'before', [ECHO.id]);
    expect(await next()).toMatchObject({ kind: 'message_created' });
    sandbox.dev.closeSockets(ECHO.id, 1006);
    await person.post(room, 'gap', [ECHO.id]);
    await nextOf('reconnected');
    await person.post(room, 'live', [ECHO.id]);
    expect(await next()).toMatchObject({
      kind: 'message_created',
      message: { content: expect.stringMatching(/live$/) as string },
    });
    const open_ = await rest.listMessages(room);
    expect(open_.data.map(({ content }) => content.replace(/^@\S+ /, ''))).toEqual(['before', 'gap', 'live']);
  });

  it('a newer connection replaces it for good, or is refused under reject', async () => {
    const first = open();
    await first.link.connect();
    await first.link.join(topics.control(ECHO.id));
    const refused = open({ onConflict: 'reject' });
    expect((await failure(refused.link.connect())).code).toBe('BAND_ALREADY_CONNECTED');
    expect(first.link.state.kind).toBe('connected');
    const second = open();
    await second.link.connect();
    expect((await first.link.closed)?.code).toBe('BAND_SUPERSEDED');
    expect(second.link.state.kind).toBe('connected');
  });

  it('a crashed channel comes back and asks for a catch-up', async () => {
    const { link, next } = open();
    await link.connect();
    const room = await person.createRoom([ECHO.id]);
    await joinRoom(link, room);
    expect(sandbox.dev.crashChannel(ECHO.id, topics.chatRoom(room))).toBe(1);
    expect(await next()).toEqual({ kind: 'resync', roomId: room, why: 'rejoined' });
    await person.post(room, 'again', [ECHO.id]);
    expect(await next()).toMatchObject({ kind: 'message_created' });
  });

  it('a room it was removed from while away is lost at the rejoin; a room it never was in is refused', async () => {
    const { link, next } = open();
    await link.connect();
    const room = await person.createRoom([ECHO.id]);
    await joinRoom(link, room);
    sandbox.dev.closeSockets(ECHO.id, 1012);
    await person.remove(room, ECHO.id);
    expect((await next()).kind).toBe('disconnected');
    expect(await next()).toMatchObject({ kind: 'topic_lost', topic: topics.chatRoom(room), roomId: room });
    expect(await next()).toMatchObject({ kind: 'topic_lost', topic: topics.participants(room) });
    expect((await next()).kind).toBe('reconnected');
    const error = await failure(link.join(topics.chatRoom(room)));
    expect(error.details['reason']).toBe('unauthorized');
  });

  it.each([
    [403, undefined],
    [429, 1],
    [503, undefined],
  ])('an upgrade refused with %i is tried again', async (status, retryAfter) => {
    sandbox.dev.faultUpgrades({ mode: 'refuse', status, retryAfter, principalId: ECHO.id, times: 2 });
    const { link } = open();
    await link.connect();
    expect(link.state).toMatchObject({ kind: 'connected', failures: 2 });
  });

  it('a wrong key is refused and says so once the first tries are over', async () => {
    const { link } = open({ apiKey: 'band_a_nobody', initialTries: 2 });
    expect((await failure(link.connect())).code).toBe('BAND_FORBIDDEN');
  });

  it('a planned restart of the platform is waited for', async () => {
    const other = await startSandbox({ port: 0 });
    const { link, next } = open({ wsUrl: other.wsUrl });
    await link.connect();
    await link.join(topics.rooms(ECHO.id));
    await other.close();
    expect(await next()).toMatchObject({ kind: 'disconnected', why: expect.stringContaining('1012') as string });
    const again = await startSandbox({ port: other.port });
    try {
      expect((await next()).kind).toBe('reconnected');
      await link.close();
    } finally {
      await again.close();
    }
  });
});
