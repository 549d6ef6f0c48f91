import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Change } from '../../../src/sandbox/world/change.js';
import { controlRoom } from '../../../src/sandbox/world/control.js';
import { mark, markDelivered, nextWork, WORK_STATUSES, workList } from '../../../src/sandbox/world/deliveries.js';
import { apply, factsOf, type Fact } from '../../../src/sandbox/world/facts.js';
import { contextListing, workListing } from '../../../src/sandbox/world/listings.js';
import { postEvent, postMessage } from '../../../src/sandbox/world/messages.js';
import { answerAsk, readAsk } from '../../../src/sandbox/world/paging.js';
import { addParticipant, removeParticipant } from '../../../src/sandbox/world/participants.js';
import { addAgent, addUser } from '../../../src/sandbox/world/people.js';
import { Problem } from '../../../src/sandbox/world/problem.js';
import { createRoom } from '../../../src/sandbox/world/rooms.js';
import { Timeline } from '../../../src/sandbox/world/timeline.js';
import { createWorld, isStopped, type Message, type World } from '../../../src/sandbox/world/world.js';

const newWorld = (): World => {
  let ids = 0;
  return createWorld({
    timeline: new Timeline({ now: () => 1_700_000_000_000 }),
    newId: () => `00000000-0000-4000-8000-${String((ids += 1)).padStart(12, '0')}`,
    isOnline: () => false,
  });
};

/** A world with a person, two agents of theirs and a room of all three; every fact is recorded. */
function stage() {
  const world = newWorld();
  const facts: Fact[] = [];
  const run = <T>(command: (change: Change) => T): T | null => {
    const change = new Change(world);
    try {
      return command(change);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      // A refused command must have changed nothing.
      expect(change.facts).toEqual([]);
      return null;
    } finally {
      facts.push(...change.facts);
    }
  };
  const must = <T>(value: T | null): T => {
    if (value === null) throw new Error('was refused');
    return value;
  };
  const user = must(
    run((change) => addUser(change, { handle: 'ada', name: 'Ada', email: 'a@b.c', id: world.newId(), apiKey: 'u' })),
  );
  const agents = ['One', 'Two'].map((name) =>
    must(
      run((change) =>
        addAgent(change, {
          ownerId: user.id,
          name,
          description: name,
          id: world.newId(),
          apiKey: name,
          global: false,
          tags: [],
        }),
      ),
    ),
  );
  const first = must(run((change) => createRoom(change, user, null, null)));
  const room = must(run((change) => createRoom(change, user, null, null)));
  for (const { id } of agents) run((change) => addParticipant(change, room, user, id, 'member'));
  // Joined later than the second room, though made before it.
  for (const { id } of agents) run((change) => addParticipant(change, first, user, id, 'member'));
  return { world, facts, run, user, agents, room };
}

const command = fc.record({
  what: fc.constantFrom(
    'post',
    'post',
    'post',
    'event',
    'delivered',
    'processing',
    'processed',
    'processed',
    'failed',
    'stop',
    'play',
    'leave',
    'enter',
  ),
  agent: fc.integer({ min: 0, max: 1 }),
  both: fc.boolean(),
  message: fc.nat(30),
});

describe('any sequence of commands', () => {
  it('leaves the work list as a look at every message would find it, and the world as its facts say', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const { world, facts, run, user, agents, room } = stage();
        for (const { what, agent: index, both, message: pick } of commands) {
          const agent = agents[index];
          const message = room.messages[pick % Math.max(1, room.messages.length)];
          if (!agent) continue;
          const mentions = (both ? agents : [agent]).map(({ id }) => ({ id }));
          switch (what) {
            case 'post':
              run((change) => postMessage(change, room, user, 'hi', mentions));
              break;
            case 'event':
              if (room.members.has(agent.id))
                run((change) => postEvent(change, room, agent, 'thought', 'hm', { a: 1 }));
              break;
            case 'delivered':
              if (message?.mentions?.some(({ id }) => id === agent.id)) {
                run((change) => {
                  markDelivered(change, room, message, agent.id);
                });
              }
              break;
            case 'processing':
            case 'processed':
            case 'failed':
              if (message) run((change) => mark(change, room, agent.id, message.id, { mark: what, error: 'x' }));
              break;
            case 'stop':
            case 'play':
              run((change) => controlRoom(change, room, [agent.id], what));
              break;
            case 'leave':
              run((change) => removeParticipant(change, room, user, agent.id));
              break;
            case 'enter':
              run((change) => addParticipant(change, room, user, agent.id, 'member'));
              break;
          }
        }

        for (const { id } of agents) {
          const work = room.messages.filter((one) => one.mentions?.some((mention) => mention.id === id));
          const stateOf = (one: Message) => one.deliveries.get(id)?.status ?? 'none';
          const open = work.filter((one) => stateOf(one) !== 'processed');
          expect(nextWork(room, id)).toBe(isStopped(room, id) ? null : (open[0] ?? null));
          for (const status of [null, ...WORK_STATUSES]) {
            const expected = work.filter((one) => {
              const state = stateOf(one);
              if (status === null) return state !== 'processed';
              if (status === 'pending') return ['none', 'delivered', 'failed'].includes(state);
              return status === 'all' || status === state;
            });
            expect(workList(room, id, status).total).toBe(expected.length);
            expect([...workListing(room, id, status, 'asc').after(null)]).toEqual(expected);
            expect([...workListing(room, id, status, 'desc').after(null)]).toEqual([...expected].reverse());
            const page = answerAsk(
              readAsk(new URLSearchParams('page=2&page_size=3'), 'both', 'x'),
              workListing(room, id, status, 'asc'),
              'x',
            );
            expect(page.rows).toEqual(expected.slice(3, 6));
          }
          const context = room.messages.filter((one) => one.senderId === id || work.includes(one));
          expect([...contextListing(room, id).after(null)]).toEqual(context);
        }

        for (const history of [facts, [...factsOf(world)]]) {
          const replayed = newWorld();
          for (const fact of JSON.parse(JSON.stringify(history)) as Fact[]) apply(replayed, fact);
          expect(comparable(replayed)).toEqual(comparable(world));
        }
      }),
      { numRuns: 150 },
    );
  });
});

function comparable({ users, agents, rooms, roomsOf, byHandle, byKey, messageCount }: World) {
  return {
    users,
    agents,
    byHandle,
    byKey,
    messageCount,
    roomsOf: [...roomsOf]
      .filter(([, set]) => set.size > 0)
      .map(([id, set]) => [id, [...set].map(({ record }) => record.id)])
      .sort(),
    rooms: [...rooms.values()].map(({ record, lastMessageAt, members, executions, messages, countByType, views }) => ({
      record,
      lastMessageAt,
      members: [...members.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      executions: [...executions.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
      messages: messages.map((message) => ({ ...message, deliveries: [...message.deliveries].sort() })),
      countByType: [...countByType].sort(),
      views: [...views]
        .map(([id, { firstOpen, counts, work, context }]) => [id, firstOpen, counts, work.length, context.length])
        .sort(),
    })),
  };
}
