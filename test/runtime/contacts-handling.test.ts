import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../src/base/errors.js';
import type { ContactEvent } from '../../src/core/events.js';
import type { ContactTools } from '../../src/core/tools.js';
import { topics } from '../../src/platform/topics.js';
import { contactEventKey } from '../../src/runtime/contact-text.js';
import { ContactEventConfig, ContactEventStrategy } from '../../src/runtime/contacts.js';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';
import { AGENT_ID } from '../support/fake-band.js';

const ROOM = 'room-1';
const HUB_TASK = '33333333-3333-4333-8333-333333333333';
const CONTACTS = topics.contacts(AGENT_ID);

const request = (id: string): ContactEvent => ({
  kind: 'contact_request_received',
  request: {
    id,
    status: 'pending',
    inserted_at: '2026-01-01T00:00:00Z',
    from_handle: 'bob',
    from_name: 'Bob',
    message: 'let me in',
  },
});
const updated = (id: string, status = 'approved'): ContactEvent => ({
  kind: 'contact_request_updated',
  request: { id, status },
});
const added = (id: string): ContactEvent => ({
  kind: 'contact_added',
  contact: { id, type: 'User', inserted_at: '2026-01-01T00:00:00Z', handle: 'bob', name: 'Bob' },
});
const removed = (id: string): ContactEvent => ({ kind: 'contact_removed', contact: { id } });

async function started(config: ContactEventConfig, options: AgentLabOptions = {}): Promise<AgentLab> {
  const lab = agentLab({ ...options, agent: { contactConfig: config, ...options.agent } });
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

describe('the contacts channel', () => {
  it('R-258 R-085 is joined unless nobody wants its events, and left on stop before the socket closes', async () => {
    const off = await started(new ContactEventConfig());
    expect(off.agent.isContactsSubscribed).toBe(false);
    expect(off.band.link.joined.has(CONTACTS)).toBe(false);

    for (const config of [
      new ContactEventConfig({ broadcastChanges: true }),
      new ContactEventConfig({ strategy: ContactEventStrategy.CALLBACK, onEvent: () => undefined }),
      new ContactEventConfig({ strategy: ContactEventStrategy.HUB_ROOM }),
    ]) {
      const on = await started(config);
      expect(on.agent.isContactsSubscribed).toBe(true);
      expect(on.band.link.joined.has(CONTACTS)).toBe(true);
      await on.agent.stop();
      expect(on.band.link.leavesWhileUp).toContain(CONTACTS);
      expect(on.agent.isContactsSubscribed).toBe(false);
    }
  });

  it('R-084 the configuration in force is the given one, or the default object', async () => {
    const config = new ContactEventConfig({ broadcastChanges: true });
    expect((await started(config)).agent.contactConfig).toBe(config);
    expect(agentLab().agent.contactConfig).toEqual(new ContactEventConfig());
  });

  it('R-254 DISABLED ignores contact events', async () => {
    const lab = await started(new ContactEventConfig());
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(lab.handled).toEqual([]);
    expect(lab.band.calls.filter(({ method }) => method.startsWith('contacts'))).toEqual([]);
  });
});

describe('CALLBACK', () => {
  const callback = (onEvent: (event: ContactEvent, tools: ContactTools) => Promise<void> | void) =>
    new ContactEventConfig({ strategy: ContactEventStrategy.CALLBACK, onEvent });

  it('R-255 hands each event over with contact tools', async () => {
    const seen: string[] = [];
    const lab = await started(
      callback(async (event, tools) => {
        seen.push(event.kind);
        if (event.kind === 'contact_request_received') {
          await tools.respondContactRequest('approve', { requestId: event.request.id });
        }
      }),
    );
    for (const event of [request('r-1'), updated('r-1'), added('c-1'), removed('c-1')]) lab.band.link.push(event);
    await lab.settle();
    expect(seen).toEqual(['contact_request_received', 'contact_request_updated', 'contact_added', 'contact_removed']);
    expect(lab.band.called('contacts.respond').map(({ body }) => body)).toEqual([
      { action: 'approve', selector: { requestId: 'r-1' } },
    ]);
  });

  it('R-259 a callback that throws is logged and its event stays eligible', async () => {
    let calls = 0;
    const lab = await started(
      callback(() => {
        calls += 1;
        if (calls === 1) throw new Error('not now');
      }),
    );
    lab.band.link.push(request('r-1'));
    await lab.settle();
    lab.band.link.push(request('r-1'));
    await lab.settle();
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(calls).toBe(2);
    expect(lab.lines.some(({ msg, level }) => level === 50 && msg.includes('contact event'))).toBe(true);
  });

  it('R-260 repeated events are handled once, different states of one request each', async () => {
    const seen: string[] = [];
    const lab = await started(
      callback((event) => {
        seen.push(event.kind === 'contact_request_updated' ? event.request.status : event.kind);
      }),
    );
    for (const event of [request('r'), request('r'), updated('r', 'expired'), updated('r'), updated('r')]) {
      lab.band.link.push(event);
    }
    await lab.settle();
    expect(seen).toEqual(['contact_request_received', 'expired', 'approved']);
  });

  it('R-262 a slow callback delays no room event', async () => {
    const lab = await started(callback(() => new Promise(() => undefined)));
    lab.band.link.push(request('r-1'));
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(await lab.agent.stop()).toBe(true);
  });

  it('gives an update the names of the cached request, else those of the listing', async () => {
    const seen: unknown[] = [];
    const lab = await started(
      callback((event) => {
        if (event.kind === 'contact_request_updated') seen.push(event.request['from_handle']);
      }),
    );
    lab.band.contactRequests.received.push({ id: 'r-2', from_handle: 'amy', from_name: 'Amy', status: 'pending' });
    lab.band.link.push(request('r-1'));
    lab.band.link.push(updated('r-1'));
    lab.band.link.push(updated('r-2'));
    lab.band.link.push(updated('r-3'));
    await lab.settle();
    expect(seen).toEqual(['bob', 'amy', null]);
  });
});

describe('what came while nobody listened', () => {
  const row = (id: string) => ({ id, from_handle: 'bob', from_name: 'Bob', status: 'pending', inserted_at: AT });
  const contact = (id: string) => ({ id, type: 'User', handle: 'bob', name: 'Bob', inserted_at: AT });
  const AT = '2026-01-01T00:00:00Z';
  const told = (seen: string[], more: { broadcastChanges?: boolean } = {}) =>
    new ContactEventConfig({
      strategy: ContactEventStrategy.CALLBACK,
      onEvent: (event) => {
        seen.push(contactEventKey(event));
      },
      ...more,
    });

  it('R-255 a request that waits at the start is handed over, once', async () => {
    const seen: string[] = [];
    const lab = agentLab({ agent: { contactConfig: told(seen) } });
    lab.band.contactRequests.received.push(row('r-1'));
    await lab.agent.start();
    await lab.settle();
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(seen).toEqual(['request_received:r-1']);
    await lab.agent.stop();
  });

  it.each(['reconnected', 'resync', 'channel'] as const)(
    'R-255 a request that came in a gap is handed over after it (%s), one that was told is not repeated',
    async (how) => {
      const seen: string[] = [];
      const lab = await started(told(seen));
      lab.band.link.push(request('r-1'));
      await lab.settle();
      lab.band.contactRequests.received.push(row('r-1'), row('r-2'));
      if (how === 'reconnected') lab.band.link.push({ kind: 'reconnected' });
      else if (how === 'resync') lab.band.link.push({ kind: 'resync', roomId: null, why: 'overflow' });
      else
        lab.band.link.push({
          kind: 'topic_lost',
          topic: CONTACTS,
          roomId: null,
          error: new GatewayError('BAND_JOIN_REFUSED'),
        });
      await lab.settle();
      await lab.clock.advance(2_000);
      await lab.settle();
      expect(seen).toEqual(['request_received:r-1', 'request_received:r-2']);
      await lab.agent.stop();
    },
  );

  it('R-257 what became of own requests, and which contacts came and went in a gap, is told by comparing lists', async () => {
    const seen: string[] = [];
    const lab = agentLab({ agent: { contactConfig: told(seen, { broadcastChanges: true }) } });
    lab.band.addRoom(ROOM);
    lab.band.contactRequests.sent.push({ id: 's-1', status: 'pending' }, { id: 's-2', status: 'pending' });
    lab.band.contacts = [contact('c-1'), contact('c-2')];
    await lab.agent.start();
    await lab.settle();
    expect(seen).toEqual([]);
    lab.band.contactRequests.sent[0] = { id: 's-1', status: 'rejected' };
    lab.band.contacts = [contact('c-2'), contact('c-3')];
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    expect(seen).toEqual(['request_updated:s-1:rejected', 'contact_added:c-3', 'contact_removed:c-1']);
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.turns[0]?.contactsMsg).toBe(
      '[Contacts]: @bob (Bob) is now a contact.\n[Contacts]: the contact c-1 was removed.',
    );
    await lab.agent.stop();
  });

  it('a list too long to be read says nothing about who left or came', async () => {
    const seen: string[] = [];
    const lab = agentLab({ agent: { contactConfig: told(seen) } });
    lab.band.contacts = Array.from({ length: 1_500 }, (_, n) => contact(`c-${n}`));
    await lab.agent.start();
    await lab.settle();
    lab.band.contacts.shift();
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    expect([seen, lab.band.called('contacts.list')]).toEqual([[], expect.objectContaining({ length: 20 })]);
    await lab.agent.stop();
  });

  it('a listing that fails is tried again until it succeeds, and ends with the agent', async () => {
    const seen: string[] = [];
    const lab = agentLab({ agent: { contactConfig: told(seen) } });
    lab.band.contactRequests.received.push(row('r-1'));
    lab.band.fail('contacts.list', { times: 2 });
    await lab.agent.start();
    await lab.clock.advance(5_000);
    await lab.settle();
    expect(seen).toEqual(['request_received:r-1']);
    lab.band.fail('contacts.requests', { times: 9 });
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    await lab.agent.stop();
    expect(lab.clock.pending).toBe(0);
  });

  it('a listing that the platform refuses is left until the next gap', async () => {
    const seen: string[] = [];
    const lab = agentLab({ agent: { contactConfig: told(seen) } });
    lab.band.contactRequests.received.push(row('r-1'));
    lab.band.fail('contacts.requests', { code: 'BAND_FORBIDDEN', statusCode: 403 });
    await lab.agent.start();
    await lab.clock.advance(300_000);
    expect([seen, lab.band.called('contacts.requests')]).toEqual([[], expect.objectContaining({ length: 1 })]);
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    expect(seen).toEqual(['request_received:r-1']);
    await lab.agent.stop();
  });

  it('R-254 nobody looks where nobody wants contact events', async () => {
    const lab = await started(new ContactEventConfig());
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    expect(lab.band.calls.filter(({ method }) => method.startsWith('contacts'))).toEqual([]);
  });
});

describe('broadcastChanges', () => {
  it('R-257 puts added and removed notices into the next turn of every room, once, with any strategy', async () => {
    const lab = agentLab({ agent: { contactConfig: new ContactEventConfig({ broadcastChanges: true }) } });
    lab.band.addRoom('a');
    lab.band.addRoom('b');
    await lab.agent.start();
    for (const event of [request('r-1'), added('c-1'), added('c-1'), removed('c-2')]) lab.band.link.push(event);
    await lab.settle();
    lab.band.post('a', 'one');
    lab.band.post('b', 'one');
    lab.band.post('a', 'two');
    await lab.settle();
    const notices = lab.turns.map(({ roomId, contactsMsg }) => [roomId, contactsMsg]);
    const expected = '[Contacts]: @bob (Bob) is now a contact.\n[Contacts]: the contact c-2 was removed.';
    expect(notices.sort()).toEqual(
      [
        ['a', expected],
        ['a', null],
        ['b', expected],
      ].sort(),
    );
  });

  it('R-257 a notice is not repeated when a failed callback meets its event again', async () => {
    let calls = 0;
    const lab = await started(
      new ContactEventConfig({
        strategy: ContactEventStrategy.CALLBACK,
        broadcastChanges: true,
        onEvent: () => {
          calls += 1;
          if (calls === 1) throw new Error('no');
        },
      }),
    );
    lab.band.link.push(added('c-1'));
    lab.band.link.push(added('c-1'));
    await lab.settle();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.turns[0]!.contactsMsg!.split('\n')).toHaveLength(1);
    expect(calls).toBe(2);
  });
});

describe('HUB_ROOM', () => {
  const hub = new ContactEventConfig({ strategy: ContactEventStrategy.HUB_ROOM, hubTaskId: HUB_TASK });

  it('R-256 makes one room at the start, with hubTaskId as its task', async () => {
    const lab = await started(hub);
    expect(lab.band.called('createChat').map(({ body }) => body)).toEqual([{ taskId: HUB_TASK }]);
    const other = await started(new ContactEventConfig({ strategy: ContactEventStrategy.HUB_ROOM }));
    expect(other.band.called('createChat').map(({ body }) => body)).toEqual([{}]);
  });

  it('R-209 R-261 shows each event as a message that is neither claimed, marked, counted nor judged, with contact tools', async () => {
    const lab = await started(hub, { onTurn: async () => undefined, session: { enableWorkingState: true } });
    const roomId = lab.agent.runtime.rooms!.hubRoomId!;
    lab.band.link.push(request('r-1'));
    lab.band.link.push(added('c-1'));
    await lab.settle();
    const [first, second] = lab.turns;
    expect(first!.roomId).toBe(roomId);
    expect(first!.message).toMatchObject({
      senderType: 'System',
      senderId: 'contact-events',
      senderName: 'Contact Events',
    });
    expect(first!.message.content).toContain('Bob (@bob)');
    expect(first!.message.content).toContain('let me in');
    expect(first!.message.content).toContain('r-1');
    expect(first!.message.content).toContain('Do not add participants');
    expect(second!.message.content).not.toContain('Do not add participants');
    expect(first!.tools.getToolSchemas('openai').map((tool) => tool.function.name)).toContain(
      'band_respond_contact_request',
    );
    expect(first!.tools.isHubRoom).toBe(true);
    for (const mark of ['markProcessing', 'markProcessed', 'markFailed']) expect(lab.band.called(mark)).toEqual([]);
    expect(lab.band.written(roomId, 'error')).toEqual([]);
    expect(lab.band.written(roomId, 'task')).toHaveLength(2);
  });

  it('R-240 reports no working state in the hub room', async () => {
    const lab = await started(hub, { session: { enableWorkingState: true } });
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(lab.handled).toHaveLength(1);
    expect(lab.band.activity).toEqual([]);
  });

  it('R-209 a turn that fails there is only logged', async () => {
    const lab = await started(hub, { onTurn: () => Promise.reject(new Error('no')) });
    lab.band.link.push(request('r-1'));
    await lab.settle();
    await lab.clock.advance(200_000);
    expect(lab.handled).toHaveLength(1);
    expect(lab.band.called('markFailed')).toEqual([]);
  });

  it('events wait until the room is live', async () => {
    const lab = agentLab({ agent: { contactConfig: hub } });
    const createLink = lab.band.createLink.bind(lab.band);
    lab.band.createLink = () => {
      const link = createLink();
      link.refuse(topics.chatRoom('made-1'), 1);
      return link;
    };
    await lab.agent.start();
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(lab.handled).toEqual([]);
    await lab.clock.advance(2_000);
    await lab.settle();
    expect(lab.handled).toHaveLength(1);
  });

  it('keeps an event that comes while the hub room is paused', async () => {
    const lab = await started(hub);
    const roomId = lab.agent.runtime.rooms!.hubRoomId!;
    lab.band.signal('stop', roomId);
    lab.band.link.push(request('r-1'));
    await lab.settle();
    expect(lab.handled).toEqual([]);
    lab.band.signal('play', roomId);
    await lab.settle();
    expect(lab.handled).toHaveLength(1);
  });

  it('keeps what was in hand and what waited when a stop comes, and consumes what an interrupt ends', async () => {
    let calm = false;
    const lab = await started(hub, {
      onTurn: async ({ signal }) => {
        if (calm) return;
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        });
      },
    });
    const roomId = lab.agent.runtime.rooms!.hubRoomId!;
    for (const id of ['r-0', 'r-1', 'r-2']) lab.band.link.push(request(id));
    await lab.settle();
    lab.band.signal('interrupt', roomId);
    await lab.settle();
    lab.band.signal('stop', roomId);
    await lab.settle();
    calm = true;
    lab.band.signal('play', roomId);
    await lab.settle();
    expect(lab.handled.map((text) => /r-\d/.exec(text)?.[0])).toEqual(['r-0', 'r-1', 'r-1', 'r-2']);
  });

  it('a hub room that cannot be made fails the start and leaves nothing behind', async () => {
    const lab = agentLab({ agent: { contactConfig: hub } });
    lab.band.fail('createChat', { code: 'ROOM_LIMIT', statusCode: 403 });
    await expect(lab.agent.start()).rejects.toMatchObject({ statusCode: 403 });
    expect(lab.band.link.isClosed).toBe(true);
    expect(lab.clock.pending).toBe(0);
  });
});
