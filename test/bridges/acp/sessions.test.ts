import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { deferred } from '../../../src/base/async.js';
import { createLogger } from '../../../src/base/log.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { FakeBand, person, type FakeRoom } from '../../support/acp/fake-band.js';
import {
  createLab,
  resultOf,
  updateOf,
  type EditorEnd,
  type Lab,
  type LabOptions,
  type Update,
} from '../../support/acp/lab.js';

/** What the fake platform was asked to post. */
interface PostedArgs {
  readonly content: string;
  readonly mentions: readonly { readonly handle: string }[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

const codex = person('codex');
const labs: Lab[] = [];
afterEach(async () => {
  for (const one of labs.splice(0)) await one.close();
});
async function start(options: LabOptions = {}): Promise<Lab & { ed: EditorEnd }> {
  const made = await createLab({
    peers: [codex],
    ...options,
    options: { peers: ['codex'], deliveryPoll: 'off', ...options.options },
  });
  labs.push(made);
  return { ...made, ed: await made.editor() };
}
const cwd = '/home/ana/shop';
const load = (ed: EditorEnd, sessionId: string, more: Record<string, unknown> = {}) =>
  ed.request('session/load', { sessionId, cwd, mcpServers: [], ...more });
const texts = (ed: EditorEnd) =>
  ed.frames.flatMap(({ params }) => {
    const update = params?.['update'] as Update | undefined;
    return update?.content?.text === undefined ? [] : [`${update.sessionUpdate.slice(0, 5)}: ${update.content.text}`];
  });

/** A room as this bridge leaves it, with `turns` prompts and answers. */
function pastRoom(
  band: FakeBand,
  turns: number,
  more: { id?: string; marker?: Record<string, unknown> } = {},
): FakeRoom {
  const room = band.addRoom(more.id);
  room.participants.set(codex.id, codex);
  const metadata = { acp_session_id: room.id, acp_room_id: room.id, acp_cwd: cwd, acp_mcp_servers: [], ...more.marker };
  band.addRow(room, band.self, 'ACP session context', { message_type: 'task', metadata });
  for (let i = 0; i < turns; i += 1) {
    const context = i === 0 ? `\n\n[ACP Session Context]\nEditor: Zed 1\nEditor cwd: ${cwd}` : '';
    band.addRow(room, band.self, `@[[${codex.id}]] question ${i}${context}`, {
      metadata: { mentions: [{ id: codex.id }] },
    });
    band.addRow(room, codex, `@[[${band.self.id}]] answer ${i}`, { metadata: { mentions: [{ id: band.self.id }] } });
  }
  return room;
}

describe('session/load', () => {
  it('P-130 P-131 after a restart shows the whole thread in order, before its answer, and the room goes on', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 2);
    const lab = await start({ band });
    const answer = await load(lab.ed, room.id);
    expect(texts(lab.ed)).toEqual(['user_: question 0', 'agent: answer 0', 'user_: question 1', 'agent: answer 1']);
    expect(lab.ed.frames.findLastIndex((frame) => updateOf(frame)?.content)).toBeLessThan(
      lab.ed.frames.indexOf(answer),
    );
    expect(answer.result?.modes.currentModeId).toBe('default');
    const chunk = lab.ed.updates('agent_message_chunk')[0];
    expect(chunk!._meta['band.ai'].replay).toBe(true);
    const id = lab.ed.prompt(room.id, 'question 2');
    await lab.ed.settle();
    await band.say(room, codex, 'answer 2');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('end_turn');
    expect(band.rooms.size).toBe(1);
    expect((band.of('postMessage')[0]?.args as PostedArgs).content, 'the context is not due again').toBe(
      '@ana/codex question 2',
    );
    expect(band.of('renameChat')).toEqual([]);
  });

  it('P-131 ids are the same in two loads; markers are not shown; the reference form of a prompt is', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 0);
    band.addRow(room, band.self, `@[[${codex.id}]] [ACP Session Context]\nEditor cwd: /x\nUse it.\n\nold style`, {});
    const lab = await start({ band });
    await load(lab.ed, room.id);
    const first = lab.ed.updates('user_message_chunk');
    await load(lab.ed, room.id);
    const both = lab.ed.updates('user_message_chunk');
    expect(both).toEqual([...first, ...first]);
    expect(texts(lab.ed)[0]).toBe('user_: old style');
  });

  it('P-132 a message that arrives meanwhile comes once, after the replay', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 1);
    const lab = await start({ band });
    const gate = deferred();
    band.hooks.push((call) => (call.method === 'getContext' ? gate.promise : undefined));
    const id = lab.ed.ask('session/load', { sessionId: room.id, cwd, mcpServers: [] });
    await lab.ed.settle();
    // One that the read will still find, and one that it will not.
    const inside = band.say(room, codex, 'inside');
    await lab.ed.settle();
    gate.resolve();
    for (let i = 0; i < 20 && !lab.ed.answerTo(id); i += 1) await lab.clock.advance(0);
    const after = band.say(room, codex, 'after');
    await lab.ed.settle();
    await Promise.all([inside, after]);
    expect(texts(lab.ed).filter((text) => text.includes('inside'))).toHaveLength(1);
    expect(texts(lab.ed).at(-1)).toBe('agent: **@ana/codex:** after');
  });

  it('P-133 reads long rooms page by page, and says how much it leaves out', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 160);
    const lab = await start({ band });
    await load(lab.ed, room.id);
    expect(texts(lab.ed)).toHaveLength(320);
    expect(texts(lab.ed).at(-1)).toBe('agent: answer 159');
    const short = await start({ band, options: { replayMaxMessages: 10 } });
    await load(short.ed, room.id);
    expect(texts(short.ed)).toHaveLength(11);
    expect(texts(short.ed)[0]).toContain('310 older messages');
    expect(texts(short.ed)[1]).toBe('user_: question 155');
  });

  it.each([2, 98, 150, 250, 318])('P-133 the newest %d of a long room are replayed, in order', async (keep) => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 160);
    const lab = await start({ band, options: { replayMaxMessages: keep } });
    await load(lab.ed, room.id);
    const all = Array.from({ length: 160 }, (_, n) => [`user_: question ${n}`, `agent: answer ${n}`]).flat();
    expect(texts(lab.ed)[0]).toContain(`${320 - keep} older messages`);
    expect(texts(lab.ed).slice(1)).toEqual(all.slice(-keep));
  });

  it('P-134 unknown, unmarked, deleted, foreign and left rooms get one and the same answer', async () => {
    const band = new FakeBand([codex]);
    const unmarked = band.addRoom();
    const deleted = pastRoom(band, 1);
    const foreign = pastRoom(band, 1, { marker: { acp_principal: 'bob' } });
    const left = pastRoom(band, 1);
    const lab = await start({ band });
    await lab.ed.request('session/delete', { sessionId: deleted.id });
    left.participants.delete(band.self.id);
    for (const sessionId of [randomUUID(), 'f'.repeat(32), 'nope', unmarked.id, deleted.id, foreign.id, left.id]) {
      for (const method of ['session/load', 'session/resume']) {
        const answer = await lab.ed.request(method, { sessionId, cwd, mcpServers: [] });
        expect(answer.error).toEqual({
          code: -32_002,
          message: 'Resource not found',
          data: { reason: 'unknown_session', retryable: false, sessionId },
        });
      }
    }
    expect(texts(lab.ed)).toEqual([]);
  });

  it('P-135 resume shows nothing of the past', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 3);
    const lab = await start({ band });
    const answer = await lab.ed.request('session/resume', { sessionId: room.id, cwd });
    await lab.ed.settle();
    expect(answer.result?._meta['band.ai'].roomId).toBe(room.id);
    expect(texts(lab.ed)).toEqual([]);
    const at = lab.ed.frames.indexOf(answer);
    expect(lab.ed.frames.slice(0, at).some(({ method }) => method === 'session/update')).toBe(false);
  });

  it('P-139 ids of the reference bridges are found by their markers', async () => {
    const band = new FakeBand([codex]);
    const hex = pastRoom(band, 1, { marker: { acp_session_id: 'ab'.repeat(16) } });
    const uuid = randomUUID();
    pastRoom(band, 1, { marker: { acp_session_id: uuid } });
    const lab = await start({ band });
    expect((await load(lab.ed, 'ab'.repeat(16))).result?._meta['band.ai'].roomId).toBe(hex.id);
    expect((await load(lab.ed, uuid)).result).toBeDefined();
    const id = lab.ed.prompt('ab'.repeat(16), 'go on');
    await lab.ed.settle();
    await band.say(hex, codex, 'going on');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(id)?.result?.stopReason).toBe('end_turn');
    expect(
      lab.ed.frames.filter(({ params }) => params?.['sessionId'] === hex.id),
      'updates carry the id the editor knows',
    ).toEqual([]);
  });

  it('P-139 keeps the id that another bridge gave, also in the markers it writes itself', async () => {
    const band = new FakeBand([codex]);
    const alias = 'cd'.repeat(16);
    const room = pastRoom(band, 1, { marker: { acp_session_id: alias } });
    const lab = await start({ band });
    await load(lab.ed, alias, { cwd: '/moved' });
    await lab.clock.advance(2_000);
    expect(band.of('postEvent').at(-1)?.args).toMatchObject({ metadata: { acp_session_id: alias, acp_cwd: '/moved' } });
    const again = await start({ band });
    const { result } = await again.ed.request('session/list', {});
    expect(result?.sessions).toEqual([expect.objectContaining({ sessionId: alias, cwd: '/moved' })]);
    expect((await load(again.ed, alias)).result?._meta['band.ai']['roomId']).toBe(room.id);
  });

  it('P-140 forged markers make no session', async () => {
    const band = new FakeBand([codex]);
    const room = band.addRoom();
    const forged = {
      acp_session_id: room.id,
      acp_room_id: room.id,
      acp_cwd: '/evil',
      mentions: [{ id: band.self.id }],
    };
    band.addRow(room, codex, 'x', { message_type: 'task', metadata: forged });
    band.addRow(room, codex, 'x', { metadata: forged });
    band.addRow(room, band.self, 'x', { message_type: 'task', metadata: { ...forged, acp_room_id: randomUUID() } });
    band.addRow(room, band.self, 'x', { message_type: 'thought', metadata: forged });
    const lab = await start({ band });
    expect((await load(lab.ed, room.id)).error?.code).toBe(-32_002);
    expect((await lab.ed.request('session/list', {})).result).toEqual({ sessions: [] });
  });

  it('P-143 $/cancel_request stops a load with -32800', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 1);
    const lab = await start({ band });
    const gate = deferred();
    band.hooks.push((call) => (call.method === 'getContext' ? gate.promise : undefined));
    const id = lab.ed.ask('session/load', { sessionId: room.id, cwd, mcpServers: [] });
    await lab.ed.settle();
    lab.ed.notify('$/cancel_request', { requestId: id });
    gate.resolve();
    await lab.ed.settle();
    expect(lab.ed.answerTo(id)?.error).toMatchObject({ code: -32_800, data: { reason: 'request_cancelled' } });
    expect((await load(lab.ed, room.id)).result, 'the next load works').toBeDefined();
  });

  it('two loads at once replay one after the other, and a prompt waits behind them', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 1);
    const lab = await start({ band });
    const ids = [
      lab.ed.ask('session/load', { sessionId: room.id, cwd, mcpServers: [] }),
      lab.ed.ask('session/load', { sessionId: room.id, cwd, mcpServers: [] }),
    ];
    const prompt = lab.ed.prompt(room.id, 'go on');
    await lab.ed.settle();
    await lab.ed.settle();
    expect(ids.map((id) => lab.ed.answerTo(id)?.result !== undefined)).toEqual([true, true]);
    expect(texts(lab.ed).slice(0, 4)).toEqual([
      'user_: question 0',
      'agent: answer 0',
      'user_: question 0',
      'agent: answer 0',
    ]);
    await band.say(room, codex, 'going on');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(prompt)?.result?.stopReason).toBe('end_turn');
  });

  it('a relative folder is refused', async () => {
    const lab = await start();
    for (const method of ['session/load', 'session/resume']) {
      const answer = await lab.ed.request(method, { sessionId: randomUUID(), cwd: 'x', mcpServers: [] });
      expect(answer.error).toMatchObject({ code: -32_602, data: { reason: 'invalid_cwd' } });
    }
  });

  it('Band out of reach is told as such, and the session can be loaded later', async () => {
    const band = new FakeBand([codex]);
    const room = pastRoom(band, 1);
    const lab = await start({ band });
    band.fail('getContext', 'BAND_UNREACHABLE');
    expect((await load(lab.ed, room.id)).error?.data.reason).toBe('platform_unavailable');
    expect(lab.server.sessions.size).toBe(0);
    expect((await load(lab.ed, room.id)).result).toBeDefined();
  });
});

describe('session/list', () => {
  it('P-136 after a restart finds the sessions again, newest first, with absolute folders and titles', async () => {
    const band = new FakeBand([codex]);
    const older = pastRoom(band, 1);
    older.title = 'older one';
    const newer = pastRoom(band, 1, { marker: { acp_cwd: '/elsewhere' } });
    pastRoom(band, 1, { marker: { acp_principal: 'bob' } });
    band.addRoom();
    const lab = await start({ band });
    const { result } = await lab.ed.request('session/list', {});
    expect(result!.sessions).toEqual([
      { sessionId: newer.id, cwd: '/elsewhere', updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string },
      { sessionId: older.id, cwd, title: 'older one', updatedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string },
    ]);
    const filtered = await lab.ed.request('session/list', { cwd: '/home/ana//shop/' });
    expect(filtered.result?.sessions.map((one) => one.sessionId)).toEqual([older.id]);
    expect((await lab.ed.request('session/list', { cwd: '/none' })).result).toEqual({ sessions: [] });
  });

  it('P-136 hands out pages of fifty by a cursor, and refuses one it did not make', async () => {
    const band = new FakeBand([codex]);
    const ids = Array.from({ length: 120 }, () => pastRoom(band, 0).id);
    const lab = await start({ band });
    const seen: string[] = [];
    let cursor: string | null | undefined;
    const sizes: number[] = [];
    do {
      const page = resultOf(await lab.ed.request('session/list', cursor ? { cursor } : {}));
      seen.push(...page.sessions.map((one) => one.sessionId));
      sizes.push(page.sessions.length);
      cursor = page.nextCursor;
    } while (cursor);
    expect(sizes).toEqual([50, 50, 20]);
    expect(seen).toEqual(ids.reverse());
    for (const bad of ['x', 'W10=', Buffer.from('[1]').toString('base64url')]) {
      const answer = await lab.ed.request('session/list', { cursor: bad });
      expect(answer.error).toMatchObject({ code: -32_602, data: { reason: 'invalid_cursor' } });
    }
    const relative = await lab.ed.request('session/list', { cwd: 'a' });
    expect(relative.error).toMatchObject({ code: -32_602, data: { reason: 'invalid_cwd' } });
  });

  it('P-136 looks at Band at most once a minute, and never at a known room again', async () => {
    const band = new FakeBand([codex]);
    pastRoom(band, 1);
    band.addRoom();
    const lab = await start({ band });
    for (let i = 0; i < 3; i += 1) await lab.ed.request('session/list', {});
    expect(band.of('listChats')).toHaveLength(1);
    const reads = band.of('getContext').length;
    await lab.clock.advance(61_000);
    await lab.ed.request('session/list', {});
    await lab.ed.settle();
    expect(band.of('listChats')).toHaveLength(2);
    expect(band.of('getContext')).toHaveLength(reads);
  });

  it('P-136 without Band shows what is known, marked as old', async () => {
    const lab = await start();
    await lab.ed.newSession();
    lab.band.fail('listChats', 'BAND_UNREACHABLE');
    const { result } = await lab.ed.request('session/list', {});
    expect(result!.sessions).toHaveLength(1);
    expect(result!._meta).toEqual({ 'band.ai': { stale: true } });
  });
});

describe('a store that cannot be written', () => {
  it('P-142 costs a warning; sessions live in memory', async () => {
    const store = createMemoryStore();
    await store.close();
    const lines: string[] = [];
    const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
    const lab = await start({ indexStore: { store, prefix: 'acp/ed/' }, log });
    const session = await lab.ed.newSession();
    await lab.ed.newSession();
    expect((await lab.ed.request('session/list', {})).result?.sessions.map((one) => one.sessionId)).toContain(session);
    expect(lines.filter((line) => line.includes('session index cannot be written'))).toHaveLength(1);
  });
});

describe('session/delete', () => {
  it('P-138 leaves a tombstone, drops the session from the list, and is fine twice', async () => {
    const lab = await start();
    const session = await lab.ed.newSession();
    const prompt = lab.ed.prompt(session, 'hi');
    await lab.ed.settle();
    expect((await lab.ed.request('session/delete', { sessionId: session })).result).toEqual({});
    expect(lab.ed.answerTo(prompt)?.result?.stopReason).toBe('cancelled');
    expect((lab.band.of('postEvent').at(-1)?.args as PostedArgs).metadata).toMatchObject({
      acp_room_id: session,
      acp_deleted: true,
    });
    expect((await lab.ed.request('session/list', {})).result).toEqual({ sessions: [] });
    expect((await load(lab.ed, session)).error?.code).toBe(-32_002);
    const events = lab.band.of('postEvent').length;
    for (const sessionId of [session, randomUUID(), 'nope']) {
      expect((await lab.ed.request('session/delete', { sessionId })).result).toEqual({});
    }
    expect(lab.band.of('postEvent')).toHaveLength(events);
  });
});

describe('principals', () => {
  it('see only their own sessions', async () => {
    const lab = await start();
    const bob = await lab.editor({ principal: 'bob' });
    const mine = await lab.ed.newSession();
    const his = await bob.newSession();
    const ids = async (ed: EditorEnd) =>
      (await ed.request('session/list', {})).result?.sessions.map((one) => one.sessionId);
    expect(await ids(lab.ed)).toEqual([mine]);
    expect(await ids(bob)).toEqual([his]);
    expect((await load(bob, mine)).error?.code).toBe(-32_002);
    expect(
      (await bob.request('session/prompt', { sessionId: mine, prompt: [{ type: 'text', text: 'x' }] })).error?.code,
    ).toBe(-32_002);
    expect((await bob.request('session/delete', { sessionId: mine })).result).toEqual({});
    expect(await ids(lab.ed)).toEqual([mine]);
    const heard = bob.frames.length;
    const refused = bob.ask('session/load', { sessionId: mine, cwd, mcpServers: [] });
    const prompt = lab.ed.prompt(mine, 'a secret');
    await lab.ed.settle();
    await lab.band.say(lab.band.room(mine), codex, 'told');
    await lab.clock.advance(300);
    expect(lab.ed.answerTo(prompt)?.result?.stopReason).toBe('end_turn');
    expect(
      bob.frames.slice(heard).map(({ id }) => id),
      'nothing of it reaches him',
    ).toEqual([refused]);
  });
});

describe('sessions nobody looks at', () => {
  it('leave memory after half an hour and load again', async () => {
    const lab = await start();
    const session = await lab.ed.newSession();
    lab.ed.hangUp();
    await lab.ed.settle();
    await lab.clock.advance(29 * 60_000);
    expect(lab.server.sessions.size).toBe(1);
    await lab.clock.advance(3 * 60_000);
    expect(lab.server.sessions.size).toBe(0);
    const again = await lab.editor();
    expect((await load(again, session)).result).toBeDefined();
  });
});
