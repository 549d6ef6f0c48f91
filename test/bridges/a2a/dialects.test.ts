import { afterEach, describe, expect, it } from 'vitest';
import { mixedSpellings } from '../../support/a2a/dialect.js';
import { kindOf, legacyMessage, message } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const ASK = '\n```a2a\n{"state":"input-required"}\n```';

describe('two dialects at one address', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());

  it('A-102 each operation answers in the spelling it was asked in, also for a task made in the other', async () => {
    lab = await a2aLab();
    const older = { version: null };
    const asked = lab.client.rpc('helper', 'message/send', legacyMessage('pay'), older);
    await lab.posted(1);
    await lab.reply(`Which?${ASK}`);
    const { id } = (await asked).body.result;
    expect(mixedSpellings((await asked).body, '0.3')).toEqual([]);
    const newer = await lab.client.rpc('helper', 'GetTask', { id });
    expect(mixedSpellings(newer.body, '1.0')).toEqual([]);
    expect(newer.body.result.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const continued = lab.client.request('POST', '/agents/helper/message:send', message('this one', { taskId: id }));
    await lab.posted(2);
    await lab.until(() => lab.engine.book.find(id)?.row.posted === 2);
    const stream = await lab.client.stream('helper', 'tasks/resubscribe', { id }, older);
    await lab.until(() => lab.engine.book.find(id)?.watchers.size === 2);
    await lab.reply('paid');
    const [rest, events] = [await continued, await stream.rest()];
    expect(mixedSpellings(rest.body, '1.0')).toEqual([]);
    for (const event of events) expect(mixedSpellings(event, '0.3')).toEqual([]);
    const again = await lab.client.rpc('helper', 'tasks/get', { id }, older);
    expect(again.body.result).toMatchObject({ kind: 'task', status: { state: 'completed' } });
  });

  it('A-102 the check itself sees a foreign spelling', () => {
    expect(mixedSpellings({ result: { kind: 'task', status: { state: 'completed' } } }, '1.0')).toEqual([
      '$.result.kind',
      '$.result.status.state',
    ]);
    expect(mixedSpellings({ result: { status: { state: 'TASK_STATE_COMPLETED' } } }, '0.3')).toEqual([
      '$.result.status.state',
    ]);
  });

  it('A-362 clients of the reference gateway find what they know, and its answer in the status message', async () => {
    lab = await a2aLab({ options: { resultIn: 'both' } });
    const peers = await lab.client.request('GET', '/peers');
    expect(peers.body).toMatchObject({
      count: 2,
      peers: [{ slug: 'helper', name: 'Helper' }, { slug: 'weather-bot' }],
    });
    for (const path of ['agent-card.json', 'agent.json']) {
      expect(
        (await lab.client.request('GET', `/agents/helper/.well-known/${path}`, undefined, { version: null })).status,
      ).toBe(200);
    }
    lab.rooms.onPost = async (roomId) => {
      await lab.reply('21 °C', { roomId });
    };
    const older = await lab.client.rpc('helper', 'message/send', legacyMessage('a'), { version: null });
    const newer = await lab.client.rpc('helper', 'SendMessage', message('b'));
    expect(older.body.result.status.message?.parts[0]?.text).toBe('21 °C');
    expect(newer.body.result.task.status.message?.parts[0]?.text).toBe('21 °C');
    const streams = [
      await lab.client.stream('helper', 'message/stream', legacyMessage('c'), { version: null }),
      await lab.client.stream('helper', 'SendStreamingMessage', message('d')),
    ];
    for (const stream of streams) expect((await stream.rest()).map(kindOf).at(-1)).toMatch(/^status-?[uU]pdate$/);
    lab.rooms.onPost = null;
    const open = await lab.submit('slow');
    const cancelled = await lab.client.rpc('helper', 'tasks/cancel', { id: open }, { version: null });
    expect(cancelled.body.result.status).toMatchObject({ state: 'canceled' });
  });
});
