import { afterEach, describe, expect, it } from 'vitest';
import { a2aBridge } from '../../../bridges/a2a/bridge.js';
import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import { message } from '../../support/a2a/client.js';
import { HELPER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, KEY, LAB_OPTIONS, OTHER_KEY, type A2ALab } from '../../support/a2a/lab.js';

describe('settings that are read again while the gateway runs', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const reload = (options: A2AOptionsInput) => lab.adapter.reload({ ...LAB_OPTIONS, ...options });
  const statusWith = async (key: string) =>
    (await lab.client.as({ headers: { 'x-api-key': key } }).rpc('helper', 'ListTasks', {})).status;

  it('A-012 other keys count at once; a stream of a key that is gone goes on to its end', async () => {
    lab = await a2aLab();
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('slow'));
    await stream.until(({ result }) => result.statusUpdate?.status.state === 'TASK_STATE_WORKING');
    expect(reload({ auth: { apiKeys: [{ name: 'gamma', key: 'test-token-gamma' }] } })).toEqual([]);
    expect(await statusWith(KEY)).toBe(401);
    expect(await statusWith('test-token-gamma')).toBe(200);
    await lab.reply('done');
    expect((await stream.rest()).at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('A-012 other limits count for the next request', async () => {
    lab = await a2aLab();
    reload({ limits: { bodyBytes: 300, ratePerMin: 60, burst: 2, ipRatePerMin: 0, parts: 1, openTasks: 1 } });
    const beta = lab.client.as({ headers: { 'x-api-key': OTHER_KEY } });
    const parts = [{ text: 'a' }, { text: 'b' }];
    const tooMany = await beta.rpc('helper', 'SendMessage', message('x', { parts }));
    expect(tooMany.body.error.code).toBe(-32602);
    expect((await beta.rpc('helper', 'SendMessage', message('x'.repeat(300)))).status).toBe(413);
    expect((await beta.rpc('helper', 'ListTasks', {})).status).toBe(429);
    await lab.submit('one');
    const full = await lab.client.rpc('helper', 'SendMessage', message('two'));
    expect(full.body.error.data[0]?.reason).toBe('CAPACITY');
  });

  it('A-012 other overrides show in the card and steer the next task', async () => {
    lab = await a2aLab();
    const card = async () => (await lab.client.request('GET', '/agents/helper')) as { body: unknown; headers: Headers };
    const before = await card();
    reload({ peers: { overrides: { helper: { name: 'Aide', maxMessageChars: 3 } } } });
    const after = await card();
    expect(after.body).toMatchObject({ name: 'Aide' });
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'));
    const long = await lab.client.rpc(HELPER.id, 'SendMessage', message('four'));
    expect(long.body.error.code).toBe(-32602);
    await lab.clock.advance(60_000);
    expect((await card()).body).toMatchObject({ name: 'Aide' });
  });

  it('A-012 names what wants a restart and leaves it as it was', async () => {
    lab = await a2aLab();
    const restarts = reload({ settleMs: 5, versions: ['1.0'], auth: { ...LAB_OPTIONS.auth, anonymous: 'loopback' } });
    expect(restarts).toEqual(['a2a.settle_ms', 'a2a.versions', 'a2a.auth.anonymous']);
    const older = await lab.client.rpc('helper', 'tasks/get', { id: 'x' }, { version: null });
    expect(older.body.error.code).toBe(-32001);
    expect(await statusWith('')).toBe(401);
  });

  it('A-012 settings that no gateway starts with change nothing', async () => {
    lab = await a2aLab();
    expect(() => reload({ auth: { apiKeys: [] } })).toThrow(/credentials/);
    expect(() => reload({ limits: { burst: 0 } })).toThrow();
    expect(await statusWith(KEY)).toBe(200);
  });

  it('A-012 the service reaches it by the bridge it opened', async () => {
    lab = await a2aLab();
    const bridge = { adapter: lab.adapter, deadLetters: null } as unknown as Parameters<
      NonNullable<typeof a2aBridge.reload>
    >[0];
    const options = { ...lab.adapter.options, auth: { ...lab.adapter.options.auth, apiKeys: [] } };
    expect(() => a2aBridge.reload?.(bridge, { name: 'x', options })).toThrow(/credentials/);
    expect(a2aBridge.reload?.(bridge, { name: 'x', options: lab.adapter.options })).toEqual([]);
  });
});
