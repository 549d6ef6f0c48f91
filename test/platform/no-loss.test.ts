import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { topics } from '../../src/platform/topics.js';
import { linkLab, messageCreated } from '../support/link-lab.js';

const ROOMS = ['a', 'b'];

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('post'), room: fc.constantFrom(...ROOMS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('burst'), room: fc.constantFrom(...ROOMS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash'), room: fc.constantFrom(...ROOMS) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close channel'), room: fc.constantFrom(...ROOMS) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('drop', 'restart', 'silence', 'joins stall', 'joins fail', 'sleep', 'refuse', 'calm', 'wait'),
      room: fc.constant(''),
    }),
  },
);

describe('PHX-04', () => {
  it('whatever happens, each message was pushed, or stored before a catch-up that the link asked for', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { platform, clock, link } = linkLab({ consume: false, maxMessagesPerRoom: 3, random: () => 0.3 });
        /** What the platform holds, and what a reader of its pushes and of its lists knows. */
        const stored = new Map<string, string[]>(ROOMS.map((room) => [room, []]));
        const known = new Set<string>();
        const catchUp = (room: string) => {
          for (const id of stored.get(room)!) known.add(id);
        };
        const enter = async (room: string): Promise<void> => {
          for (let tries = 0; tries < 100; tries += 1) {
            try {
              await link.join(topics.chatRoom(room));
              catchUp(room);
              return;
            } catch {
              await clock.sleep(1_000);
            }
          }
        };
        const consuming = (async () => {
          for await (const event of link.events) {
            if (event.kind === 'message_created') known.add(event.message.id);
            if (event.kind === 'reconnected') ROOMS.forEach(catchUp);
            if (event.kind === 'resync') (event.roomId === null ? ROOMS : [event.roomId]).forEach(catchUp);
            if (event.kind === 'topic_lost') void enter(event.roomId!);
            // A reader that takes its time, so that buffers fill.
            await clock.sleep(10);
          }
        })();
        const post = (room: string) => {
          const ids = stored.get(room)!;
          const id = `${room}${ids.length}`;
          ids.push(id);
          const topic = topics.chatRoom(room);
          if (platform.peers.at(-1)?.joined.has(topic)) {
            platform.peer.push(topic, 'message_created', messageCreated(id, room));
          }
        };
        const calm = () => {
          platform.script.heartbeats = 'answered';
          platform.script.onJoin = () => 'ok';
        };

        await link.connect();
        await Promise.all(ROOMS.map(enter));
        for (const { do: what, room } of steps) {
          const topic = topics.chatRoom(room);
          const { peer, script } = platform;
          const ref = peer.joined.get(topic);
          if (what === 'post') post(room);
          if (what === 'burst') for (let i = 0; i < 8; i += 1) post(room);
          if ((what === 'crash' || what === 'close channel') && ref) {
            peer.joined.delete(topic);
            peer.sendFrame([ref, ref, topic, what === 'crash' ? 'phx_error' : 'phx_close', {}]);
          }
          if (what === 'drop' || what === 'restart') {
            peer.joined.clear();
            if (what === 'drop') peer.drop();
            else peer.close(1012);
          }
          if (what === 'silence') script.heartbeats = 'unanswered';
          if (what === 'joins stall') script.onJoin = () => 'silent';
          if (what === 'joins fail') script.onJoin = () => ({ reason: 'join crashed' });
          if (what === 'refuse') platform.answers.push({ status: 503 }, { status: 429 });
          if (what === 'sleep') clock.jump(120_000);
          if (what === 'calm') calm();
          await clock.advance(what === 'wait' || what === 'sleep' ? 20_000 : 400);
        }
        calm();
        await clock.advance(900_000);
        expect(link.state).toMatchObject({ kind: 'connected', topicsJoined: ROOMS.length });
        for (const room of ROOMS) expect(stored.get(room)!.filter((id) => !known.has(id))).toEqual([]);
        const closing = link.close();
        await clock.advance(10_000);
        await closing;
        await consuming;
        expect(clock.pending).toBe(0);
        expect(platform.open).toBe(0);
      }),
      { numRuns: Number(process.env['LINK_SCENARIOS'] ?? 300) },
    );
  }, 60_000);
});
