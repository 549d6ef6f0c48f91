import { describe, expect, it } from 'vitest';
import { topics } from '../../src/platform/topics.js';
import { failure, linkLab, messageCreated } from '../support/link-lab.js';

const ROOM = 'b7d4e810-52aa-4f0e-8c21-000000000101';
const CHAT = topics.chatRoom(ROOM);
const PEOPLE = topics.participants(ROOM);

describe('joining', () => {
  it('resolves with the answer, and a second join of the same topic sends nothing', async () => {
    const { platform, link, up } = linkLab();
    await up();
    await Promise.all([link.join(CHAT), link.join(CHAT)]);
    await link.join(CHAT);
    const [join] = platform.peer.joinsOf(CHAT);
    expect(platform.peer.joinsOf(CHAT)).toHaveLength(1);
    expect(join?.[0]).toBe(join?.[1]);
    expect(join?.[4]).toEqual({});
    expect(link.state).toMatchObject({ topicsJoined: 1, topicsKnown: 1 });
    await link.close();
  });

  it("is refused with the platform's reason, and the topic is forgotten", async () => {
    const { platform, link, up, clock } = linkLab();
    await up();
    platform.script.onJoin = () => ({ reason: 'unauthorized' });
    const error = await failure(link.join(CHAT));
    expect(error.code).toBe('BAND_JOIN_REFUSED');
    expect(error.details).toEqual({ topic: CHAT, reason: 'unauthorized' });
    platform.peer.drop();
    await clock.advance(5_000);
    expect(platform.peer.received).toEqual([]);
    expect(link.state.topicsKnown).toBe(0);
    await link.close();
  });

  it('fails after 10 s without an answer, and takes the late one back', async () => {
    const { platform, link, up, clock } = linkLab();
    await up();
    platform.script.onJoin = () => 'silent';
    const failed = failure(link.join(CHAT));
    await clock.advance(9_900);
    expect(platform.peer.received).toHaveLength(1);
    await clock.advance(200);
    expect((await failed).code).toBe('BAND_TIMEOUT');
    const [join, leave] = platform.peer.received;
    expect(leave?.slice(2, 4)).toEqual([CHAT, 'phx_leave']);
    expect(leave?.[0]).toBe(join?.[1]);
    await link.close();
  });

  it('waits for a socket while the link is down, and survives a drop before the answer', async () => {
    const { platform, link, up, clock } = linkLab();
    await up();
    platform.script.onJoin = () => 'silent';
    const joining = link.join(CHAT);
    await clock.advance(1_000);
    platform.peer.drop();
    platform.script.onJoin = () => 'ok';
    await clock.advance(5_000);
    await joining;
    expect(platform.peers).toHaveLength(2);
    await link.close();
  });

  it('can be given up by its caller; one of two callers gives up for himself only', async () => {
    const { platform, link, up, clock } = linkLab();
    await up();
    platform.script.onJoin = () => 'silent';
    const [one, two] = [new AbortController(), new AbortController()];
    const first = link.join(CHAT, one.signal);
    const second = link.join(CHAT, two.signal);
    one.abort(new Error('not me'));
    await expect(first).rejects.toThrow('not me');
    expect(link.state.topicsKnown).toBe(1);
    two.abort(new Error('nor me'));
    await expect(second).rejects.toThrow('nor me');
    expect(link.state.topicsKnown).toBe(0);
    await clock.advance(0);
    expect(platform.peer.received.at(-1)?.[3]).toBe('phx_leave');
    await link.close();
  });

  it('ends with the link', async () => {
    const { platform, link, up } = linkLab();
    await up();
    platform.script.onJoin = () => 'silent';
    const failed = failure(link.join(CHAT));
    await link.close();
    expect((await failed).code).toBe('BAND_LINK_CLOSED');
  });

  it('keeps at most the configured number of joins unanswered', async () => {
    const { platform, link, up, clock } = linkLab({ maxJoinsInFlight: 3 });
    await up();
    platform.script.onJoin = () => 'silent';
    const all = Array.from({ length: 10 }, (_, i) => link.join(`chat_room:${i}`));
    await clock.advance(0);
    const { peer } = platform;
    expect(peer.received).toHaveLength(3);
    for (let answered = 0; answered < 10; answered += 1) {
      const [joinRef, ref, topic] = peer.received[answered]!;
      peer.reply(joinRef, ref, topic);
      await clock.advance(0);
      expect(peer.received).toHaveLength(Math.min(10, answered + 4));
    }
    await Promise.all(all);
    await link.close();
  });
});

describe('leaving', () => {
  it('resolves with the answer; the phx_close that follows is no loss', async () => {
    const { platform, link, up, kinds, settle, counts } = linkLab();
    await up(CHAT);
    await link.leave(CHAT);
    await settle();
    expect(kinds()).toEqual([]);
    expect(counts.count('band_link_frames_dropped_total', 'unknown_topic')).toBe(0);
    platform.peer.sendFrame(['1', null, CHAT, 'message_created', messageCreated('m', ROOM)]);
    await settle();
    expect(counts.count('band_link_frames_dropped_total', 'unknown_topic')).toBe(1);
    await link.close();
  });

  it('resolves after 5 s without an answer', async () => {
    const { platform, link, up, clock } = linkLab();
    await up(CHAT);
    platform.script.onLeave = 'silent';
    let left = false;
    const leaving = link.leave(CHAT).then(() => (left = true));
    await clock.advance(4_900);
    expect(left).toBe(false);
    await clock.advance(200);
    await leaving;
    platform.script.onLeave = 'ok';
    await link.close();
  });

  it('resolves at once for a topic nobody joined, and while the socket is down', async () => {
    const { platform, link, up, clock } = linkLab();
    await up(CHAT);
    await link.leave(PEOPLE);
    platform.peer.close(1013);
    await clock.advance(100);
    await link.leave(CHAT);
    await clock.advance(60_000);
    expect(platform.peer.received).toEqual([]);
    await link.close();
  });

  it('may be followed by a new join at once', async () => {
    const { platform, link, up, events, settle } = linkLab();
    await up(CHAT);
    const leaving = link.leave(CHAT);
    await link.join(CHAT);
    await leaving;
    platform.peer.push(CHAT, 'message_created', messageCreated('m', ROOM));
    await settle();
    expect(events).toHaveLength(1);
    await link.close();
  });
});

describe('frames of a topic', () => {
  it('pass with the current join_ref and with none, and are dropped with an older one', async () => {
    const { platform, link, up, clock, events, counts } = linkLab();
    await up(CHAT);
    const old = platform.peer.joined.get(CHAT)!;
    platform.peer.drop();
    await clock.advance(5_000);
    const { peer } = platform;
    peer.sendFrame([old, null, CHAT, 'message_created', messageCreated('stale', ROOM)]);
    peer.sendFrame([null, null, CHAT, 'message_created', messageCreated('bare', ROOM)]);
    peer.push(CHAT, 'message_created', messageCreated('fresh', ROOM));
    peer.sendFrame([old, old, CHAT, 'phx_close', {}]);
    peer.sendFrame([old, old, CHAT, 'phx_error', {}]);
    await clock.advance(0);
    expect(events.flatMap((event) => (event.kind === 'message_created' ? [event.message.id] : []))).toEqual([
      'bare',
      'fresh',
    ]);
    expect(counts.count('band_link_frames_dropped_total', 'stale')).toBe(3);
    expect(link.state.topicsJoined).toBe(1);
    await link.close();
  });

  it('a crashed channel is joined again on the same socket with backoff, and its room is to be caught up', async () => {
    const { platform, link, up, clock, events } = linkLab();
    await up(CHAT, PEOPLE);
    const { peer } = platform;
    const ref = peer.joined.get(CHAT)!;
    peer.sendFrame([ref, ref, CHAT, 'phx_error', {}]);
    await clock.advance(0);
    expect(link.state.topicsJoined).toBe(1);
    let refusals = 2;
    platform.script.onJoin = () => (refusals-- > 0 ? { reason: 'join crashed' } : 'ok');
    await clock.advance(700);
    expect(peer.joinsOf(CHAT)).toHaveLength(1);
    await clock.advance(100);
    expect(peer.joinsOf(CHAT)).toHaveLength(2);
    await clock.advance(10_000);
    expect(peer.joinsOf(CHAT)).toHaveLength(4);
    expect(platform.peers).toHaveLength(1);
    expect(events).toEqual([{ kind: 'resync', roomId: ROOM, why: 'rejoined' }]);
    await link.close();
  });

  it('a channel that the platform closes is lost for good, and its owner is told', async () => {
    const { platform, link, up, clock, events } = linkLab();
    await up(CHAT);
    const ref = platform.peer.joined.get(CHAT)!;
    platform.peer.sendFrame([ref, ref, CHAT, 'phx_close', {}]);
    await clock.advance(60_000);
    expect(events).toMatchObject([{ kind: 'topic_lost', topic: CHAT, roomId: ROOM }]);
    expect(platform.peer.joinsOf(CHAT)).toHaveLength(1);
    await link.join(CHAT);
    expect(platform.peer.joinsOf(CHAT)).toHaveLength(2);
    await link.close();
  });
});

describe('a new socket', () => {
  it('joins everything with new refs, and a refused topic is told before the reconnect', async () => {
    const { platform, link, up, clock, kinds, events } = linkLab();
    await up(CHAT, PEOPLE);
    const before = new Map(platform.peer.joined);
    platform.script.onJoin = (topic) => (topic === CHAT ? { reason: 'unauthorized' } : 'ok');
    platform.peer.drop();
    await clock.advance(5_000);
    expect(kinds()).toEqual(['disconnected', 'topic_lost', 'reconnected']);
    expect(events[1]).toMatchObject({ topic: CHAT, roomId: ROOM });
    expect(platform.peer.joined.get(PEOPLE)).not.toBe(before.get(PEOPLE));
    expect(link.state.topicsKnown).toBe(1);
    await link.close();
  });

  it('counts as recovered although one join stays open, which is caught up when it comes', async () => {
    const { platform, link, up, clock, kinds, events } = linkLab();
    await up(CHAT, PEOPLE);
    let open = true;
    platform.script.onJoin = (topic) => (topic === CHAT && open ? 'silent' : 'ok');
    platform.peer.drop();
    await clock.advance(5_000);
    expect(kinds()).toEqual(['disconnected']);
    open = false;
    await clock.advance(7_300);
    expect(kinds()).toEqual(['disconnected', 'reconnected']);
    await clock.advance(10_000);
    expect(events.at(-1)).toEqual({ kind: 'resync', roomId: ROOM, why: 'rejoined' });
    await link.close();
  });

  it('is told even with no topic at all, and leaving the last open one is an answer too', async () => {
    const { platform, link, up, clock, kinds } = linkLab();
    await up();
    platform.peer.drop();
    await clock.advance(5_000);
    expect(kinds()).toEqual(['disconnected', 'reconnected']);
    await link.join(CHAT);
    platform.script.onJoin = () => 'silent';
    platform.peer.drop();
    await clock.advance(15_000);
    const leaving = link.leave(CHAT);
    await clock.advance(5_000);
    await leaving;
    expect(kinds().slice(2)).toEqual(['disconnected', 'reconnected']);
    await link.close();
  });

  it('that drops before the joins are answered is followed by one more, with one word at the end', async () => {
    const { platform, link, up, clock, kinds } = linkLab();
    await up(CHAT);
    platform.script.onJoin = () => 'silent';
    platform.peer.drop();
    await clock.advance(3_000);
    platform.script.onJoin = () => 'ok';
    platform.peer.drop();
    await clock.advance(60_000);
    expect(kinds()).toEqual(['disconnected', 'disconnected', 'reconnected']);
    expect(link.state).toMatchObject({ kind: 'connected', topicsJoined: 1 });
    await link.close();
  });
});
