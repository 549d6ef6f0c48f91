import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { dataOf, idOf, metadataOf, rowsOf, sandboxLab, verdictOf, type Json } from '../../support/sandbox-lab.js';

const { echo: ECHO } = DEMO;

/** Echo of the demo person, and the planner of another one. */
async function twoOwners() {
  const lab = await sandboxLab();
  const bob = lab.sandbox.dev.addUser({ handle: 'bob', name: 'Bob' });
  const planner = lab.sandbox.dev.addAgent({ ownerHandle: 'bob', name: 'Planner', description: 'Plans' });
  return {
    ...lab,
    bob: lab.person(bob.apiKey),
    bobId: bob.id,
    planner: lab.agent(planner.apiKey),
    plannerId: planner.id,
  };
}

describe('contacts of agents', () => {
  it('begin with a request, which the other side sees and approves', async () => {
    const { echo, planner, plannerId } = await twoOwners();
    const sockets = { echo: await echo.socket(), planner: await planner.socket() };
    await sockets.echo.join(`agent_contacts:${ECHO.id}`);
    await sockets.planner.join(`agent_contacts:${plannerId}`);

    const added = await echo.post('/contacts/add', { handle: '@bob/planner', message: 'hi' });
    expect([added.status, dataOf(added)['status']]).toEqual([201, 'pending']);
    const request = { id: idOf(added), from_handle: 'demo/echo', from_name: 'Echo', message: 'hi', status: 'pending' };
    expect(await sockets.planner.push('contact_request_received')).toMatchObject(request);
    const listed = (await planner.get('/contacts/requests')).body as { data: { received: Json[] }; metadata: Json };
    expect(listed.data.received).toMatchObject([request]);
    expect(listed.metadata).toEqual({
      page: 1,
      page_size: 20,
      received: { total: 1, total_pages: 1 },
      sent: { total: 0, total_pages: 1 },
    });

    const response = await planner.post('/contacts/requests/respond', { action: 'approve', handle: 'demo/echo' });
    expect(dataOf(response)).toEqual({ id: request.id, status: 'approved' });
    for (const socket of [sockets.echo, sockets.planner]) {
      expect(await socket.push('contact_request_updated')).toEqual({ id: request.id, status: 'approved' });
    }
    const [row] = rowsOf(await echo.get('/contacts'));
    expect(row).toMatchObject({ handle: 'bob/planner', type: 'Agent', description: 'Plans', online: true });
    expect(await sockets.echo.push('contact_added')).toMatchObject({ id: row?.['id'], handle: 'bob/planner' });
    expect(await sockets.planner.push('contact_added')).toMatchObject({ handle: 'demo/echo' });
    expect(rowsOf(await planner.get('/contacts'))[0]?.['id']).not.toBe(row?.['id']);

    expect(dataOf(await echo.post('/contacts/remove', { contact_id: row?.['id'] }))).toEqual({ status: 'removed' });
    expect(await sockets.echo.push('contact_removed')).toEqual({ id: row?.['id'] });
    expect(Object.keys(await sockets.planner.push('contact_removed'))).toEqual(['id']);
    expect(rowsOf(await planner.get('/contacts'))).toEqual([]);
  });

  it('are made at once when the other side has asked before', async () => {
    const { echo, planner } = await twoOwners();
    await echo.post('/contacts/add', { handle: 'bob/planner' });
    expect(dataOf(await planner.post('/contacts/add', { handle: 'demo/echo' }))).toMatchObject({ status: 'approved' });
    expect(verdictOf(await echo.post('/contacts/add', { handle: 'bob/planner' }))).toBe('409 conflict');
  });

  it.each([
    [{ handle: 'bob/planner' }, '201'],
    [{ handle: 'demo/echo' }, '409 conflict'],
    [{ handle: 'nobody' }, '404 not_found'],
    [{ handle: 'not a handle!' }, '400 bad_request'],
    [{ handle: '' }, '400 bad_request'],
    [{}, '422 validation_error'],
    [{ handle: 'bob/planner', message: 'x'.repeat(500) }, '201'],
    [{ handle: 'bob/planner', message: 'x'.repeat(501) }, '422 validation_error'],
  ])('are asked for by %j: %s', async (body, verdict) => {
    const { echo } = await twoOwners();
    expect(verdictOf(await echo.post('/contacts/add', body))).toBe(verdict);
  });

  it('follow the rules of who may answer a request, and when', async () => {
    const { echo, planner, dice } = await twoOwners();
    const id = idOf(await echo.post('/contacts/add', { handle: 'bob/planner' }));
    expect(verdictOf(await echo.post('/contacts/add', { handle: 'bob/planner' }))).toBe('409 conflict');
    const respond = (caller: typeof echo, body: Json) => caller.post('/contacts/requests/respond', body);
    expect(verdictOf(await respond(echo, { action: 'approve', request_id: id }))).toBe('403 forbidden');
    expect(verdictOf(await respond(planner, { action: 'cancel', request_id: id }))).toBe('403 forbidden');
    expect(verdictOf(await respond(dice, { action: 'approve', request_id: id }))).toBe('404 not_found');
    expect(verdictOf(await respond(planner, { action: 'reject' }))).toBe('400 bad_request');
    expect(verdictOf(await respond(planner, { action: 'dance', request_id: id }))).toBe('422 validation_error');
    expect(verdictOf(await respond(planner, { action: 'approve', handle: 'demo/dice' }))).toBe('404 not_found');
    expect(verdictOf(await respond(planner, { action: 'reject', handle: null, request_id: id }))).toBe('200');
    expect(verdictOf(await respond(echo, { action: 'cancel', request_id: id }))).toBe('409 conflict');

    const again = await echo.post('/contacts/add', { handle: 'bob/planner' });
    expect(verdictOf(await respond(echo, { action: 'cancel', handle: 'bob/planner' }))).toBe('200');
    const sent = async (query: string) => {
      const { data } = (await echo.get(`/contacts/requests${query}`)).body as { data: { sent: Json[] } };
      return data.sent.map((request) => [request['id'], request['status']]);
    };
    expect(await sent('')).toEqual([]);
    expect(await sent('?sent_status=all')).toEqual([
      [idOf(again), 'cancelled'],
      [id, 'rejected'],
    ]);
    expect(await sent('?sent_status=rejected')).toEqual([[id, 'rejected']]);
  });

  it('are removed by handle or id only when they exist', async () => {
    const { echo } = await twoOwners();
    expect(verdictOf(await echo.post('/contacts/remove', {}))).toBe('400 bad_request');
    expect(verdictOf(await echo.post('/contacts/remove', { handle: 'bob/planner' }))).toBe('404 not_found');
    expect(verdictOf(await echo.post('/contacts/remove', { contact_id: ECHO.id }))).toBe('404 not_found');
  });
});

describe('an agent that is deleted', () => {
  it('is gone from the contacts and requests of others', async () => {
    const { user, planner, plannerId, bob } = await twoOwners();
    await planner.post('/contacts/add', { handle: 'demo/echo' });
    await user.post('/contacts/requests', { contact_request: { recipient_handle: 'bob/planner' } });
    await planner.post('/contacts/requests/respond', { action: 'approve', handle: 'demo' });
    expect(rowsOf(await user.get('/contacts'))).toHaveLength(1);
    const socket = await user.socket();
    await socket.join(`user_contacts:${DEMO.user.id}`);
    expect((await bob.delete(`/agents/${plannerId}`)).status).toBe(200);
    await socket.push('contact_removed');
    expect(rowsOf(await user.get('/contacts'))).toEqual([]);
  });
});

describe('contacts of people', () => {
  it('are asked for, approved, listed, resolved and removed', async () => {
    const { user, bob, bobId } = await twoOwners();
    const socket = await bob.socket();
    await socket.join(`user_contacts:${bobId}`);
    const asked = await user.post('/contacts/requests', {
      contact_request: { recipient_handle: '@Bob', message: 'hello' },
    });
    expect(asked.status).toBe(201);
    const request = dataOf(asked);
    expect(request).toMatchObject({
      status: 'pending',
      requester: { handle: 'demo' },
      recipient: { handle: 'bob' },
      recipient_type: 'User',
      responded_at: null,
    });
    expect(await socket.push('contact_request_received')).toEqual(request);
    expect(rowsOf(await bob.get('/contacts/requests'))).toEqual([request]);
    expect(rowsOf(await user.get('/contacts/requests/sent'))).toEqual([request]);
    const id = String(request['id']);
    expect(verdictOf(await user.post(`/contacts/requests/${id}/approve`))).toBe('403 forbidden');
    expect(dataOf(await bob.post(`/contacts/requests/${id}/approve`))).toEqual({ id, status: 'approved' });
    expect(verdictOf(await bob.post(`/contacts/requests/${id}/reject`))).toBe('409 conflict');

    const contacts = await user.get('/contacts');
    expect(rowsOf(contacts)[0]).toMatchObject({
      contact_id: bobId,
      contact_type: 'User',
      status: 'active',
      user: { handle: 'bob', email: 'bob@sandbox.invalid' },
    });
    expect(metadataOf(contacts)).toMatchObject({ total_count: 1 });
    expect(dataOf(await user.post('/contacts/resolve', { handle: '@BOB' }))).toEqual({
      handle: 'bob',
      name: 'Bob',
      type: 'User',
    });
    expect(dataOf(await user.post('/contacts/remove', { handle: 'bob' }))).toEqual({ status: 'removed' });
    expect(rowsOf(await bob.get('/contacts'))).toEqual([]);
    const cancelled = idOf(await user.post('/contacts/requests', { contact_request: { recipient_handle: 'bob' } }));
    expect(dataOf(await user.delete(`/contacts/requests/${cancelled}`))).toMatchObject({ status: 'cancelled' });
  });
});
