import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { messageCreated } from '../support/link-lab.js';
import { advance, createOracleClient, meaning, type OracleClient, type OracleName } from '../support/phoenix-oracle.js';

/**
 * The same conversations with a scripted platform, held by our client and by the official `phoenix` package. Where the
 * two differ, the test says so and why.
 */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const BOTH: OracleName[] = ['ours', 'phoenix'];
const A = 'chat_room:a';
const B = 'chat_room:b';

/** Holds one conversation with each client and returns what each saw and said. */
async function hold(conversation: (client: OracleClient) => Promise<void>) {
  const results = [];
  for (const name of BOTH) {
    const client = createOracleClient(name);
    await client.connect();
    await conversation(client);
    const said = client.platform.peers.map(({ received }) => meaning(received));
    const seen = [...client.seen];
    const peers = [...client.platform.peers];
    await client.close();
    results.push({ seen, said, peers });
  }
  const [ours, phoenix] = results;
  return { ours: ours!, phoenix: phoenix! };
}

async function sameFor(conversation: (client: OracleClient) => Promise<void>) {
  const { ours, phoenix } = await hold(conversation);
  expect(ours.seen).toEqual(phoenix.seen);
  expect(ours.said).toEqual(phoenix.said);
  return ours;
}

const push = (client: OracleClient, topic: string, id: string) => {
  client.platform.peer.push(topic, 'message_created', messageCreated(id, 'r'));
};

describe('both clients', () => {
  it('join, hear pushes in order, and leave', async () => {
    const { seen, said } = await sameFor(async (client) => {
      client.join(A);
      await advance(1);
      push(client, A, '1');
      push(client, A, '2');
      await advance(1);
      client.leave(A);
      await advance(1);
      push(client, A, '3');
      await advance(1);
    });
    expect(seen).toEqual([`joined ${A}`, 'push a 1', 'push a 2', `left ${A}`]);
    expect(said).toEqual([[`join#1 join#1 ${A} phx_join {}`, `join#1 ref ${A} phx_leave {}`]]);
  });

  it('name the protocol version and the key in the query', async () => {
    const { ours, phoenix } = await hold(async () => undefined);
    for (const { peers } of [ours, phoenix]) {
      expect(peers[0]?.url.searchParams.get('vsn')).toBe('2.0.0');
      expect(peers[0]?.url.searchParams.get('api_key')).toBe('key');
      expect(peers[0]?.url.pathname).toBe('/socket/websocket');
    }
  });

  it('take pushes with no join_ref and with their own, not those of an older join', async () => {
    const { seen } = await sameFor(async (client) => {
      client.join(A);
      await advance(1);
      const old = client.platform.peer.joined.get(A)!;
      client.platform.peer.drop();
      await advance(70_000);
      const frame = (joinRef: string | null, id: string) => {
        client.platform.peer.sendFrame([joinRef, null, A, 'message_created', messageCreated(id, 'r')]);
      };
      frame(old, 'stale');
      frame(null, 'bare');
      frame(client.platform.peer.joined.get(A)!, 'current');
      client.platform.peer.sendFrame([old, old, A, 'phx_close', {}]);
      client.platform.peer.sendFrame([old, old, A, 'phx_error', {}]);
      await advance(1);
      frame(null, 'still here');
      await advance(1);
    });
    expect(seen).toEqual([`joined ${A}`, 'push a bare', 'push a current', 'push a still here']);
  });

  it('join everything again on a new socket, each topic with a new ref', async () => {
    const { said } = await sameFor(async (client) => {
      client.join(A);
      client.join(B);
      await advance(1);
      client.platform.peer.drop();
      await advance(20_000);
    });
    expect(said[1]).toEqual([`join#1 join#1 ${A} phx_join {}`, `join#1 join#1 ${B} phx_join {}`]);
  });

  it('join a crashed channel again on the same socket', async () => {
    const { said } = await sameFor(async (client) => {
      client.join(A);
      await advance(1);
      const ref = client.platform.peer.joined.get(A)!;
      client.platform.peer.sendFrame([ref, ref, A, 'phx_error', {}]);
      await advance(5_000);
      push(client, A, 'after');
      await advance(1);
    });
    expect(said).toHaveLength(1);
    expect(said[0]).toHaveLength(2);
  });

  it('forget a channel that the platform closes', async () => {
    const { seen, said } = await sameFor(async (client) => {
      client.join(A);
      await advance(1);
      const ref = client.platform.peer.joined.get(A)!;
      client.platform.peer.sendFrame([ref, ref, A, 'phx_close', {}]);
      await advance(1);
      client.platform.peer.drop();
      await advance(20_000);
    });
    expect(seen).toEqual([`joined ${A}`, `lost ${A}`]);
    expect(said[1]).toEqual([]);
  });

  it('give up a join after 10 s and take it back with a leave', async () => {
    const { ours, phoenix } = await hold(async (client) => {
      client.platform.script.onJoin = () => 'silent';
      client.join(A);
      await advance(10_100);
    });
    for (const { seen, said } of [ours, phoenix]) {
      expect(seen).toEqual([`not joined ${A}`]);
      expect(said[0]?.map((frame) => frame.split(' ')[3])).toEqual(['phx_join', 'phx_leave']);
    }
  });

  it('ignore replies nobody waits for and topics nobody joined', async () => {
    const { seen } = await sameFor(async (client) => {
      client.join(A);
      await advance(1);
      client.platform.peer.reply('77', '78', A);
      client.platform.peer.reply(null, '99', B, { status: 'error', response: { reason: 'unmatched topic' } });
      push(client, B, 'no');
      await advance(1);
      push(client, A, 'yes');
      await advance(1);
    });
    expect(seen).toEqual([`joined ${A}`, 'push a yes']);
  });

  it('beat every 30 s', async () => {
    const { ours, phoenix } = await hold(async () => {
      await advance(95_000);
    });
    for (const { said } of [ours, phoenix]) {
      expect(said).toEqual([Array(3).fill('none ref phoenix heartbeat {}')]);
    }
  });

  it('replace a connection whose heartbeat stays unanswered', async () => {
    const { ours, phoenix } = await hold(async (client) => {
      client.join(A);
      await advance(1);
      client.platform.script.heartbeats = 'unanswered';
      await advance(59_000);
      expect(client.platform.peers).toHaveLength(1);
      client.platform.script.heartbeats = 'answered';
      await advance(20_000);
      expect(client.platform.peers).toHaveLength(2);
      expect(client.platform.peer.joined.has(A)).toBe(true);
    });
    // On purpose: 1000 looks like a wanted close to a platform that keeps count (PHX-02).
    expect(phoenix.peers[0]?.closedByClient?.code).toBe(1000);
    expect(ours.peers[0]?.closedByClient?.code).toBe(4000);
  });

  it('end up with the same topics and have heard the same, whatever happens', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constantFrom('join', 'leave'), topic: fc.constantFrom('a', 'b', 'c') }),
      fc.record({
        do: fc.constantFrom('push', 'push bare', 'push stale', 'crash', 'close channel'),
        topic: fc.constantFrom('a', 'b', 'c'),
      }),
      fc.record({ do: fc.constant('drop'), topic: fc.constant('') }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        await sameFor(async (client) => {
          const joined = new Set<string>();
          let n = 0;
          for (const { do: what, topic: name } of steps) {
            const topic = `chat_room:${name}`;
            const { peer } = client.platform;
            const ref = peer.joined.get(topic);
            const message = messageCreated(`m${n++}`, 'r');
            if (what === 'join' && !joined.has(topic)) client.join(topic);
            if (what === 'join') joined.add(topic);
            if (what === 'leave' && joined.delete(topic)) client.leave(topic);
            if (what === 'push') peer.push(topic, 'message_created', message);
            if (what === 'push bare') peer.sendFrame([null, null, topic, 'message_created', message]);
            if (what === 'push stale') peer.sendFrame(['0', null, topic, 'message_created', message]);
            if (what === 'crash' && ref) peer.sendFrame([ref, ref, topic, 'phx_error', {}]);
            if (what === 'close channel' && ref) {
              peer.joined.delete(topic);
              joined.delete(topic);
              peer.sendFrame([ref, ref, topic, 'phx_close', {}]);
            }
            if (what === 'drop') peer.drop();
            // Two seconds let a crashed channel come back; a stable minute lets both forget that a socket dropped.
            await advance(what === 'drop' ? 75_000 : 2_000);
          }
          // Heartbeats depend on when a client came back, which differs on purpose.
          for (const peer of client.platform.peers) {
            peer.received.splice(0, Infinity, ...peer.received.filter(([, , topic]) => topic !== 'phoenix'));
          }
        });
      }),
      { numRuns: 200 },
    );
  });
});

describe('ours differs on purpose', () => {
  it('sends the key as a header, which the official client can not', async () => {
    const { ours, phoenix } = await hold(async () => undefined);
    expect(ours.peers[0]?.headers).toMatchObject({ 'x-api-key': 'key' });
    expect(phoenix.peers[0]?.headers).toEqual({});
  });

  it('comes back after a delay that differs from link to link, where all official clients come back together', async () => {
    const backAfterMs = async (client: OracleClient) => {
      await client.connect();
      await advance(70_000);
      client.platform.peer.drop();
      let ms = 0;
      for (; client.platform.attempts.length < 2 && ms < 2_000; ms += 10) await advance(10);
      await client.close();
      return ms;
    };
    const official = [];
    const ours = [];
    for (const random of [0, 0.5, 0.999]) {
      official.push(await backAfterMs(createOracleClient('phoenix', () => random)));
      ours.push(await backAfterMs(createOracleClient('ours', () => random)));
    }
    expect(new Set(official).size).toBe(1);
    expect(ours).toEqual([250, 380, 500]);
  });

  it('stays away after a supersede notice, where the official client would fight', async () => {
    const { ours, phoenix } = await hold(async (client) => {
      client.join('agent_control:agent');
      await advance(1);
      client.platform.peer.push('agent_control:agent', 'supersede', {
        reason: 'r',
        message: 'm',
        correlation_id: null,
      });
      client.platform.peer.close(1000);
      await advance(120_000);
    });
    expect(ours.peers).toHaveLength(1);
    expect(phoenix.peers.length).toBeGreaterThan(1);
  });

  it('ends for good on 1008', async () => {
    const { ours, phoenix } = await hold(async (client) => {
      client.platform.peer.close(1008);
      await advance(120_000);
    });
    expect(ours.peers).toHaveLength(1);
    expect(phoenix.peers.length).toBeGreaterThan(1);
  });

  it('leaves a refused first join to its caller, where the official client asks again and again', async () => {
    const { ours, phoenix } = await hold(async (client) => {
      client.platform.script.onJoin = () => ({ reason: 'unauthorized' });
      client.join(A);
      await advance(20_000);
    });
    expect(ours.said[0]).toHaveLength(1);
    expect(phoenix.said[0]!.length).toBeGreaterThan(2);
  });

  it('drops what is no frame, where the official client throws', async () => {
    const client = createOracleClient('ours');
    await client.connect();
    client.join(A);
    await advance(1);
    client.platform.peer.sendText('{"no":"frame"}');
    client.platform.peer.sendText('oops');
    push(client, A, 'after');
    await advance(1);
    expect(client.seen).toEqual([`joined ${A}`, 'push a after']);
    await client.close();
  });

  it('keeps a bound on unanswered joins, where the official client sends them all at once', async () => {
    const count = async (name: OracleName) => {
      const client = createOracleClient(name);
      await client.connect();
      client.platform.script.onJoin = () => 'silent';
      for (let i = 0; i < 600; i += 1) client.join(`chat_room:${i}`);
      await advance(1);
      const { length } = client.platform.peer.received;
      await client.close();
      return length;
    };
    expect(await count('phoenix')).toBe(600);
    expect(await count('ours')).toBe(512);
  });
});
