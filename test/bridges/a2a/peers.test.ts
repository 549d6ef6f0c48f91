import { afterEach, describe, expect, it } from 'vitest';
import { blockersOf } from '../../../bridges/a2a/bridge.js';
import { matchRoute } from '../../../bridges/a2a/http/routes.js';
import { assignSlugs, baseSlug, slugOf } from '../../../bridges/a2a/peers/slugs.js';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { message } from '../../support/a2a/client.js';
import { FakeRooms, GATEWAY, HELPER, JANE, peer, refused } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const uuid = (n: number) => `aaaaaaaa-aaaa-4aaa-8aaa-${String(n).padStart(12, '0')}`;

describe('slugs', () => {
  it.each([
    ['Helper', 'helper'],
    ['Weather  Bot!', 'weather-bot'],
    ['Ünï', 'n'],
    ['--A--', 'a'],
  ])('A-022 %j becomes %j', (name, slug) => {
    expect(slugOf(name)).toBe(slug);
  });

  it('A-022 a name without letters of the alphabet falls back to the handle, then to the id; long ones are cut', () => {
    expect(baseSlug({ id: uuid(1), name: '日本', handle: 'jane/nihon' })).toBe('nihon');
    expect(baseSlug({ id: uuid(1), name: '日本', handle: null })).toBe('peer-aaaaaaaa');
    const long = slugOf(`${'x'.repeat(62)} ${'y'.repeat(137)}`);
    expect([long.length, long.endsWith('-')]).toEqual([62, false]);
    expect(slugOf('z'.repeat(200))).toHaveLength(63);
  });

  it('a slug that somebody had within 30 days goes to no newcomer', () => {
    const old = { peerId: uuid(1), slug: 'fresh', base: 'fresh', former: [{ slug: 'helper', until: 1_000 }] };
    const newcomer = { id: uuid(2), name: 'Helper', handle: 'bob/helper' };
    const stored = new Map([[old.peerId, old]]);
    const owner = { id: uuid(1), name: 'Fresh', handle: 'jane/fresh' };
    expect(assignSlugs([owner, newcomer], {}, stored, 999).get(uuid(2))?.record.slug).toBe('bob-helper');
    expect(assignSlugs([owner, newcomer], {}, stored, 1_000).get(uuid(2))?.record.slug).toBe('helper');
  });
});

describe('the peers that are published', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const open = async (peers: readonly ReturnType<typeof peer>[], options: A2AOptionsInput = {}) => {
    lab = await a2aLab({ rooms: new FakeRooms(peers), options });
  };
  const statusOf = async (alias: string) =>
    (await lab.client.request('GET', `/agents/${alias}/.well-known/agent-card.json`)).status;
  const listed = async () =>
    (await lab.client.request('GET', '/peers')).body as unknown as {
      peers: { slug: string; id: string }[];
      count: number;
    };
  const read = async () => {
    const before = lab.rooms.countOf(/^GET \/peers/);
    await lab.clock.advance(60_000);
    await lab.until(() => lab.rooms.countOf(/^GET \/peers/) > before);
    await lab.clock.advance(0);
  };

  it('A-020 A-021 are all of them, in pages of a hundred, and never the gateway itself', async () => {
    const many = Array.from({ length: 250 }, (_, n) => peer(uuid(n), `Bot ${n}`, `jane/bot-${n}`));
    await open([...many, peer(GATEWAY.id, 'Gateway', 'jane/gateway')]);
    expect(lab.rooms.countOf(/^GET \/peers/)).toBe(3);
    expect((await listed()).count).toBe(250);
    expect(await statusOf('bot-249')).toBe(200);
    expect(await statusOf('gateway')).toBe(404);
    const page = (await lab.client.request('GET', '/peers?page_size=100&page=3')).body as unknown as {
      peers: object[];
      count: number;
    };
    expect([page.peers.length, page.count]).toEqual([50, 250]);
  });

  it('A-021 a directory that changes while it is read gives each peer once, and a short page ends it', async () => {
    const many = Array.from({ length: 100 }, (_, n) => peer(uuid(n), `Bot ${n}`, `jane/bot-${n}`));
    const rooms = new FakeRooms([...many, many[99]!, peer(uuid(100), 'Last', 'jane/last')]);
    lab = await a2aLab({ rooms });
    expect((await listed()).count).toBe(101);
    expect(rooms.countOf(/^GET \/peers/)).toBe(2);
  });

  it('A-023 people are published on demand, and silence parks their tasks', async () => {
    await open([HELPER, JANE]);
    expect(await statusOf('jane-doe')).toBe(404);
    await lab.close();
    await open([HELPER, JANE], { peers: { types: ['Agent', 'User'] }, responseTimeoutMs: 1_000 });
    const sent = lab.client.rpc('jane-doe', 'SendMessage', message('please approve'));
    await lab.posted(1);
    await lab.until(() => [...lab.engine.book.openTasks()][0]?.row.posted === 1);
    await lab.clock.advance(1_000);
    expect((await sent).body.result.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  it('A-024 patterns choose by slug, handle and id, exclusion wins, and an excluded peer looks unknown', async () => {
    const [a, b, c] = [peer(uuid(1), 'A', 'jane/a'), peer(uuid(2), 'B', 'bob/b'), peer(uuid(3), 'C', 'jane/c')];
    await open([a, b, c], { peers: { include: ['jane/*', uuid(2)], exclude: ['c'] } });
    expect([await statusOf('a'), await statusOf('b'), await statusOf('c')]).toEqual([200, 200, 404]);
    const excluded = await lab.client.rpc('c', 'ListTasks', {});
    const unknown = await lab.client.rpc('x', 'ListTasks', {});
    expect(excluded.text.replace('"c"', '"x"')).toBe(unknown.text);
  });

  it('A-025 two newcomers of one name get neither the bare slug', async () => {
    const [a, b] = [peer(uuid(1), 'Helper', 'jane/helper'), peer(uuid(2), 'Helper', 'bob/helper')];
    await open([a, b]);
    expect(await statusOf('helper')).toBe(404);
    for (const alias of ['jane-helper', 'bob-helper', a.id, b.id])
      expect([alias, await statusOf(alias)]).toEqual([alias, 200]);
  });

  it('A-026 a slug stays with its peer over a restart, whatever newcomers call themselves', async () => {
    await open([HELPER]);
    lab.rooms.peers = [peer(uuid(9), 'Helper', 'bob/helper'), HELPER];
    const again = await lab.restarted();
    const ids = (
      (await again.client.request('GET', '/peers')).body as unknown as { peers: { slug: string; id: string }[] }
    ).peers;
    expect(Object.fromEntries(ids.map(({ slug, id }) => [slug, id]))).toEqual({
      helper: HELPER.id,
      'bob-helper': uuid(9),
    });
    await again.close();
  });

  it('A-027 a fixed slug beats names, and two alike are refused at start', async () => {
    await open([HELPER, peer(uuid(2), 'Support', 'jane/support')], { peers: { slugs: { 'jane/support': 'helper' } } });
    const ids = (await listed()).peers;
    expect(ids.find(({ slug }) => slug === 'helper')?.id).toBe(uuid(2));
    await expect(a2aLab({ options: { peers: { slugs: { a: 'x', b: 'x' } } } })).rejects.toThrow(
      'one slug to two peers',
    );
  });

  it('A-028 a renamed peer answers under both names for 30 days', async () => {
    await open([HELPER]);
    lab.rooms.peers = [{ ...HELPER, name: 'Assistant' }];
    await read();
    expect([await statusOf('assistant'), await statusOf('helper')]).toEqual([200, 200]);
    lab.clock.jump(30 * 86_400_000);
    await read();
    expect([await statusOf('assistant'), await statusOf('helper')]).toEqual([200, 404]);
  });

  it('A-028 the old name ends at once when it is fixed for another', async () => {
    await open([HELPER]);
    lab.rooms.peers = [{ ...HELPER, name: 'Assistant' }, peer(uuid(2), 'Other', 'jane/other')];
    const again = await lab.restarted({ options: { peers: { slugs: { [uuid(2)]: 'helper' } } } });
    const { peers } = (await again.client.request('GET', '/peers')).body as unknown as {
      peers: { slug: string; id: string }[];
    };
    expect(peers.find(({ slug }) => slug === 'helper')?.id).toBe(uuid(2));
    expect((await again.client.request('GET', `/agents/${HELPER.id}`)).status).toBe(200);
    await again.close();
  });

  it('A-029 a new peer is there at the next reading, or when asked for, with one reading in five seconds', async () => {
    await open([HELPER]);
    lab.rooms.peers = [HELPER, peer(uuid(2), 'New', 'jane/new')];
    expect(await statusOf('new')).toBe(404);
    await lab.clock.advance(5_000);
    const before = lab.rooms.countOf(/^GET \/peers/);
    const asked = await Promise.all(['new', 'nobody', 'nope', 'none'].map(statusOf));
    expect(asked).toEqual([200, 404, 404, 404]);
    for (let n = 0; n < 20; n += 1) await statusOf(`unknown-${n}`);
    expect(lab.rooms.countOf(/^GET \/peers/)).toBe(before + 1);
    lab.rooms.peers.push(peer(uuid(3), 'Newer', 'jane/newer'));
    await read();
    expect((await listed()).count).toBe(3);
  });

  it.each([
    ['an error', () => refused(500, 'BAND_UNAVAILABLE')],
    ['no answer in time', () => refused(504, 'BAND_TIMEOUT')],
    ['a page that is none', () => refused(200, 'BAND_BAD_ANSWER')],
    ['a bug', () => new TypeError('canary')],
  ])('A-030 a reading that fails, with %s, removes nobody', async (_name, error) => {
    const many = Array.from({ length: 150 }, (_, n) => peer(uuid(n), `Bot ${n}`, `jane/bot-${n}`));
    await open(many);
    // The first page comes, the second does not.
    const { listPeers } = lab.rooms.rest;
    lab.rooms.rest.listPeers = (options) =>
      options?.page === 2 ? Promise.reject(error()) : listPeers({ ...options, pageSize: 100 });
    for (let n = 0; n < 3; n += 1) await lab.clock.advance(60_000);
    expect([await statusOf('bot-0'), await statusOf('bot-149'), (await listed()).count]).toEqual([200, 200, 150]);
    expect(lab.lines.filter(({ msg }) => String(msg).includes('nothing changes')).length).toBeGreaterThan(1);
  });

  it('A-031 A-032 a peer missing once stays, missing twice is gone, and gets its slug back when it returns', async () => {
    await open([HELPER, peer(uuid(2), 'Other', 'jane/other')]);
    const ended = await lab.submit('one');
    await lab.posted(1);
    await lab.reply('done');
    const openTask = await lab.submit('two');
    await lab.posted(2);
    lab.rooms.peers = [peer(uuid(2), 'Other', 'jane/other')];
    await read();
    expect(await statusOf('helper')).toBe(200);
    await read();
    await lab.until(() => lab.engine.held.tasks === 0);
    const gone = await lab.client.rpc('helper', 'SendMessage', message('x'));
    expect([gone.status, gone.body.error.data[0]?.reason]).toEqual([404, 'PEER_UNKNOWN']);
    expect((await lab.client.rpc(HELPER.id, 'GetTask', { id: ended })).body.result.status.state).toBe(
      'TASK_STATE_COMPLETED',
    );
    expect((await lab.client.rpc(HELPER.id, 'GetTask', { id: openTask })).body.result.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'The agent is no longer available.' }], metadata: { band_reason: 'PEER_REMOVED' } },
    });
    expect((await lab.client.rpc(HELPER.id, 'SendMessage', message('x'))).status).toBe(404);
    lab.rooms.peers = [HELPER, ...lab.rooms.peers];
    await read();
    expect(await statusOf('helper')).toBe(200);
  });

  it('A-033 the list needs a principal unless it is public, and says where each card is', async () => {
    await open([HELPER]);
    expect(
      (await lab.client.as({ headers: {} }).request('GET', '/peers', undefined, { headers: { 'x-api-key': 'no' } }))
        .status,
    ).toBe(401);
    expect(await listed()).toEqual({
      peers: [
        {
          slug: 'helper',
          id: HELPER.id,
          name: 'Helper',
          handle: 'jane/helper',
          description: 'Helper answers questions',
          cardUrl: `${lab.adapter.url}/agents/helper/.well-known/agent-card.json`,
        },
      ],
      count: 1,
    });
    await lab.close();
    await open([HELPER], { peersPublic: true });
    const nobody = lab.client.as({ headers: {} });
    expect((await nobody.request('GET', '/peers', undefined, { headers: {} })).status).toBe(200);
  });

  it('A-034 odd aliases are unknown, never an error', async () => {
    await open([HELPER]);
    expect(await statusOf(HELPER.id.toUpperCase())).toBe(200);
    expect(await statusOf('%68elper')).toBe(200);
    for (const alias of ['%2568elper', '..%2Fhelper', '%2e%2e', 'a%00b', 'a%5Cb', '%zz', 'x'.repeat(300)]) {
      expect([alias, await statusOf(alias)]).toEqual([alias, 404]);
    }
    expect(matchRoute('/agents//x', 'GET').route.kind).toBe('unknown');
  });

  it('A-007 the port answers 503 until the peers were read, and then by itself', async () => {
    const rooms = new FakeRooms([HELPER]);
    rooms.fail('listPeers', refused(503, 'BAND_UNREACHABLE'), { times: 2 });
    lab = await a2aLab({ rooms, ready: false });
    const early = await lab.client.rpc('helper', 'SendMessage', message('x'));
    expect([early.status, early.body.error.data[0]?.reason]).toEqual([503, 'NOT_READY']);
    expect(await statusOf('helper')).toBe(503);
    expect(blockersOf(lab.adapter, lab.clock, 7)).toMatchObject([{ name: 'a2a.peers', since: 7 }]);
    await lab.clock.advance(10_000);
    await lab.until(() => lab.adapter.gateway.directory.ready);
    expect(await statusOf('helper')).toBe(200);
    expect(blockersOf(lab.adapter, lab.clock, 7)).toEqual([]);
  });
});
