import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import {
  accepted,
  idOf,
  rowsOf,
  sandboxLab,
  verdictOf,
  type Caller,
  type SandboxLab,
} from '../../support/sandbox-lab.js';

const { echo: ECHO, dice: DICE, gateway: GATEWAY, user: DEMO_USER } = DEMO;
const UNKNOWN = '12345678-1234-4234-8234-123456789abc';

type Role = 'owner' | 'admin' | 'member';

const add = (caller: Caller, roomId: string, id: string, role?: string) =>
  caller.post(`/chats/${roomId}/participants`, { participant: { participant_id: id, role } });
const remove = (caller: Caller, roomId: string, id: string) => caller.delete(`/chats/${roomId}/participants/${id}`);

/** A room in which echo has a role, beside an owner (gateway, unless echo is it), a member and the demo person. */
async function roomWith(lab: SandboxLab, role: Role): Promise<string> {
  const owner = role === 'owner' ? lab.echo : lab.gateway;
  const roomId = idOf(await owner.post('/chats', {}));
  if (role !== 'owner') accepted(await add(owner, roomId, ECHO.id, role));
  accepted(await add(owner, roomId, DICE.id));
  accepted(await add(owner, roomId, DEMO_USER.id));
  return roomId;
}

describe('an agent that adds', () => {
  it.each([
    ['owner', 'member', '201'],
    ['owner', 'admin', '201'],
    ['owner', 'owner', '201'],
    ['admin', 'member', '201'],
    ['admin', 'admin', '201'],
    ['admin', 'owner', '403 forbidden'],
    ['member', 'member', '201'],
    ['member', 'admin', '403 forbidden'],
    ['member', 'owner', '403 forbidden'],
  ] as const)('%s, a %s, is answered %s', async (own, wanted, verdict) => {
    const lab = await sandboxLab();
    const roomId = await roomWith(lab, own);
    expect(verdictOf(await add(lab.echo, roomId, DEMO.editor.id, wanted))).toBe(verdict);
  });

  it('somebody is refused when there is nobody, no access, or nothing to do', async () => {
    const lab = await sandboxLab();
    const bob = lab.sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const planner = lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Planner', description: 'Plans' });
    const shared = lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Shared', description: 'x', global: true });
    const roomId = await roomWith(lab, 'owner');
    expect(verdictOf(await add(lab.echo, roomId, UNKNOWN))).toBe('404 not_found');
    expect(verdictOf(await add(lab.echo, roomId, planner.id))).toBe('403 forbidden');
    expect(verdictOf(await add(lab.echo, roomId, bob.id))).toBe('403 forbidden');
    expect(verdictOf(await add(lab.echo, roomId, DICE.id))).toBe('409 conflict');
    expect(verdictOf(await add(lab.echo, roomId, shared.id))).toBe('201');
    expect(verdictOf(await add(lab.agent(DEMO.helpdesk.apiKey), roomId, DEMO.editor.id))).toBe('404 not_found');
    expect(verdictOf(await add(lab.echo, roomId, DEMO.editor.id, 'boss'))).toBe('422 validation_error');
  });
});

describe('an agent that removes', () => {
  it.each([
    ['owner', DICE.id, '200'],
    ['admin', DICE.id, '200'],
    ['member', DICE.id, '403 forbidden'],
    ['admin', GATEWAY.id, '403 forbidden'],
    ['member', GATEWAY.id, '403 forbidden'],
    ['owner', DEMO_USER.id, '403 forbidden'],
    ['admin', DEMO_USER.id, '403 forbidden'],
    ['member', DEMO_USER.id, '403 forbidden'],
    ['member', ECHO.id, '200'],
    ['admin', ECHO.id, '200'],
    ['owner', ECHO.id, '403 cannot_remove_sole_owner'],
    ['owner', DEMO.editor.id, '404 not_found'],
    ['owner', UNKNOWN, '404 not_found'],
  ] as const)('%s, %s, is answered %s', async (own, target, verdict) => {
    const lab = await sandboxLab();
    const roomId = await roomWith(lab, own);
    expect(verdictOf(await remove(lab.echo, roomId, target))).toBe(verdict);
  });

  it('itself may do so as one of two owners', async () => {
    const lab = await sandboxLab();
    const roomId = await roomWith(lab, 'owner');
    accepted(await add(lab.echo, roomId, DEMO.editor.id, 'owner'));
    expect(verdictOf(await remove(lab.echo, roomId, ECHO.id))).toBe('200');
  });
});

describe('a person', () => {
  it('adds own agents, global ones, other people and contacts, but no agent of somebody else', async () => {
    const lab = await sandboxLab();
    const bob = lab.sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const planner = lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Planner', description: 'Plans' });
    const roomId = await lab.room();
    expect(verdictOf(await add(lab.user, roomId, ECHO.id))).toBe('201');
    expect(verdictOf(await add(lab.user, roomId, bob.id))).toBe('201');
    expect(verdictOf(await add(lab.user, roomId, planner.id))).toBe('403 forbidden');
    const request = { recipient_handle: planner.handle };
    await lab.user.post('/contacts/requests', { contact_request: request });
    accepted(
      await lab
        .agent(planner.apiKey)
        .post('/contacts/requests/respond', { action: 'approve', handle: DEMO_USER.handle }),
    );
    expect(verdictOf(await add(lab.user, roomId, planner.id))).toBe('201');
  });

  it('removes others as owner or admin, and itself unless it is the only owner', async () => {
    const lab = await sandboxLab();
    const bob = lab.sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    const eve = lab.sandbox.dev.addUser({ handle: 'eve', name: 'Eve' });
    const roomId = await lab.room(ECHO.id, bob.id);
    accepted(await add(lab.user, roomId, eve.id, 'admin'));
    expect(verdictOf(await remove(lab.person(bob.apiKey), roomId, ECHO.id))).toBe('403 forbidden');
    expect(verdictOf(await remove(lab.person(eve.apiKey), roomId, DEMO_USER.id))).toBe('403 forbidden');
    expect(verdictOf(await remove(lab.person(eve.apiKey), roomId, bob.id))).toBe('200');
    expect(verdictOf(await remove(lab.user, roomId, DEMO_USER.id))).toBe('403 cannot_remove_sole_owner');
    expect(verdictOf(await remove(lab.person(eve.apiKey), roomId, eve.id))).toBe('200');
    expect(verdictOf(await remove(lab.user, roomId, ECHO.id))).toBe('200');
  });
});

describe('peers', () => {
  it('of an agent are siblings, global agents, its owner, and then contacts', async () => {
    const lab = await sandboxLab();
    lab.sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
    lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Hidden', description: 'x' });
    lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Shared', description: 'x', global: true });
    const friend = lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Friend', description: 'x' });
    await lab.echo.post('/contacts/add', { handle: friend.handle });
    await lab.agent(friend.apiKey).post('/contacts/add', { handle: ECHO.handle });
    await lab.echo.post('/contacts/add', { handle: DICE.handle });
    await lab.dice.post('/contacts/add', { handle: ECHO.handle });

    const peers = rowsOf(await lab.echo.get('/peers'));
    expect(peers.map(({ handle, source, is_contact }) => [handle, source, is_contact])).toEqual([
      ['demo/gateway', 'registry', false],
      ['demo/dice', 'registry', true],
      ['demo/editor', 'registry', false],
      ['demo/helpdesk', 'registry', false],
      ['bob/shared', 'registry', false],
      ['demo', 'registry', false],
      ['bob/friend', 'contact', true],
    ]);
  });

  it('leave out who is in a room, when a room is named', async () => {
    const { echo, user, room } = await sandboxLab();
    const roomId = await room(ECHO.id, DICE.id);
    const handles = rowsOf(await echo.get(`/peers?not_in_chat=${roomId}`)).map(({ handle }) => handle);
    expect(handles).toEqual(['demo/gateway', 'demo/editor', 'demo/helpdesk']);
    expect(verdictOf(await echo.get(`/peers?not_in_chat=${UNKNOWN}`))).toBe('404 not_found');
    expect(verdictOf(await echo.get('/peers?not_in_chat=here'))).toBe('422 validation_error');
    expect(rowsOf(await user.get('/peers?type=User'))).toEqual([]);
  });

  it('tell who has a socket open', async () => {
    const { echo, dice } = await sandboxLab();
    const online = async () =>
      rowsOf(await echo.get('/peers'))
        .filter(({ online: isOnline }) => isOnline)
        .map(({ handle }) => handle);
    expect(await online()).toEqual([]);
    const socket = await dice.socket();
    expect(await online()).toEqual(['demo/dice']);
    await socket.close();
    await expect.poll(online).toEqual([]);
  });
});
