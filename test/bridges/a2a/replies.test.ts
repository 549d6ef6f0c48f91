import { afterEach, describe, expect, it } from 'vitest';
import { closingBlock, readReply } from '../../../bridges/a2a/convert/directive.js';
import { fromBandText } from '../../../bridges/a2a/convert/from-band.js';
import { message } from '../../support/a2a/client.js';
import { GATEWAY, HELPER, JANE, WEATHER } from '../../support/a2a/fake-rooms.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

describe('a reply as the client sees it', () => {
  const self = { id: GATEWAY.id, handle: GATEWAY.handle };
  const own = `@[[${GATEWAY.id}]]`;
  const jane = `@[[${JANE.id}]]`;
  const mentions = [{ id: JANE.id, handle: 'jane' }];

  it.each([
    [`${own} It is 21 °C.`, 'It is 21 °C.'],
    ['@jane/gateway  It is 21 °C.', 'It is 21 °C.'],
    [`${own} ask ${jane} too`, 'ask @jane too'],
    [`Sure ${own}, done`, 'Sure @jane/gateway, done'],
    [`${own} @jane/gateway ${own} hello`, 'hello'],
    [`${jane} ${own} hello`, '@jane @jane/gateway hello'],
    [`${own}hello`, 'hello'],
    [`${own}\nhello`, 'hello'],
    ['@jane/gateway-two hello', '@jane/gateway-two hello'],
    [own, ''],
    ['hello \n', 'hello \n'],
  ])('A-172 %j becomes %j', (content, shown) => {
    expect(fromBandText(content, self, mentions)).toBe(shown);
  });
});

describe('the directive a reply may end with', () => {
  const block = (body: string, fence = '```', info = 'a2a') => `${fence}${info}\n${body}\n${fence}`;

  it.each([
    ['a state', `Which?\n${block('{"state":"input-required"}')}`, { text: 'Which?', state: 'input-required' }],
    ['the 1.0 spelling', block('{"state":"TASK_STATE_FAILED"}'), { text: '', state: 'failed' }],
    ['final', `x\n${block('{"final":false}')}\n`, { text: 'x', final: false }],
    ['a longer fence', `x\n${block('{"final":true}', '````')}`, { text: 'x', final: true }],
    ['line ends of Windows', 'x\r\n```a2a\r\n{"final":true}\r\n```', { text: 'x', final: true }],
    ['the last of two', `${block('{"final":true}')}\n${block('{"final":false}')}`, { final: false }],
    ['trailing space before it', `chunk-1 \n${block('{"final":false}')}`, { text: 'chunk-1 ' }],
  ])('A-183 reads %s', (_name, text, wanted) => {
    expect(readReply(text)).toMatchObject({ directed: true, ...wanted });
  });

  it.each([
    ['an unknown key', block('{"state":"failed","colour":"red"}')],
    ['a wrong type', block('{"final":"yes"}')],
    ['an unknown state', block('{"state":"sleeping"}')],
    ['broken JSON', block('{"final":tru')],
    ['no object', block('[]')],
    ['an info string in capitals', block('{"final":true}', '```', 'A2A')],
    ['another info string', block('{"final":true}', '```', 'json')],
    ['a block that is not last', `${block('{"final":true}')}\nand more`],
    ['a body over 64 KiB', block(`{"final":true,"x":"${'y'.repeat(65_536)}"}`)],
  ])('A-183 leaves %s as plain text', (_name, text) => {
    expect(readReply(text)).toEqual({ text, state: null, final: null, directed: false });
  });

  it('A-183 finds no block in a fence that nothing opens', () => {
    expect(closingBlock('text\n```')).toBeNull();
  });
});

describe('what completes a task', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());
  const state = async (taskId: string) => (await lab.get(taskId)).status.state;
  const texts = async (taskId: string) => (await lab.get(taskId)).artifacts?.map(({ parts }) => parts[0]?.text);

  it('A-170 A-171 others in the room update a task by default and never complete it', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply('I think so too', { from: WEATHER.id, name: 'Weather Bot' });
    expect((await lab.get(taskId)).status).toMatchObject({
      state: 'TASK_STATE_WORKING',
      message: { parts: [{ text: 'Weather Bot: I think so too' }] },
    });
    await lab.reply('done');
    expect(await state(taskId)).toBe('TASK_STATE_COMPLETED');
    expect((await lab.get(taskId)).history?.map(({ parts }) => parts[0]?.text)).toEqual([
      'hi',
      'Weather Bot: I think so too',
    ]);
  });

  it('A-171 others may be ignored, or answer for the peer', async () => {
    lab = await a2aLab({
      options: { peers: { overrides: { helper: { others: 'ignore' }, 'weather-bot': { others: 'answer' } } } },
    });
    const ignoring = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply('me!', { from: JANE.id, name: 'Jane' });
    expect((await lab.get(ignoring)).status.message).toBeUndefined();
    const answered = await lab.submit('hi', {}, 'weather-bot');
    await lab.posted(2);
    await lab.reply('for them', { from: JANE.id, name: 'Jane' });
    expect((await lab.get(answered, 'weather-bot')).artifacts?.[0]?.parts[0]?.text).toBe('for them');
  });

  it.each(['update', 'answer'] as const)(
    'A-171 with several peers at work, a remark of somebody else updates the tasks of all and answers none (%s)',
    async (others) => {
      lab = await a2aLab({ options: { others } });
      const one = await lab.submit('hi', { contextId: 'c' });
      const two = await lab.submit('hi', { contextId: 'c' }, 'weather-bot');
      await lab.posted(2);
      const at = (peer: string, id: string) => lab.get(id, peer);
      await lab.until(async () => (await at('helper', one)).status.state === 'TASK_STATE_WORKING');
      await lab.until(async () => (await at('weather-bot', two)).status.state === 'TASK_STATE_WORKING');
      const id = await lab.reply('take care', { from: JANE.id, name: 'Jane' });
      await lab.reply('take care', { from: JANE.id, name: 'Jane', id });
      for (const task of [await at('helper', one), await at('weather-bot', two)]) {
        expect(task.status).toMatchObject({
          state: 'TASK_STATE_WORKING',
          message: { parts: [{ text: 'Jane: take care' }] },
        });
        expect([task.artifacts, task.history?.length]).toEqual([undefined, 1]);
      }
    },
  );

  it('A-173 the same message delivered twice makes one artifact, named by its id', async () => {
    lab = await a2aLab({ options: { completion: 'settle' } });
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    const id = await lab.reply('once');
    await lab.reply('once', { id });
    expect((await lab.get(taskId)).artifacts?.map(({ artifactId }) => artifactId)).toEqual([`band-${id}`]);
  });

  it('A-173 one that is delivered again after others makes none either', async () => {
    lab = await a2aLab({ options: { completion: 'settle' } });
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    const ids: string[] = [];
    for (let n = 0; n < 20; n += 1) ids.push(await lab.reply(`part ${n}`));
    for (const id of ids) await lab.reply('again', { id });
    const { artifacts } = await lab.get(taskId);
    expect(artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(ids.map((_, n) => `part ${n}`));
  });

  it('A-158 an answer that cannot be read ends the task with a fixed sentence, and is not delivered for ever', async () => {
    const readReply = () => {
      throw new Error('canary-reader');
    };
    lab = await a2aLab({ ports: { readReply } });
    const sent = lab.client.rpc('helper', 'SendMessage', message('hi'));
    await lab.posted(1);
    await lab.reply('done');
    const answer = await sent;
    expect(answer.body.result.task.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'Something went wrong inside the gateway.' }], metadata: { band_reason: 'INTERNAL' } },
    });
    expect(answer.text).not.toContain('canary');
  });

  it('A-174 quiet ends an answer: replies in its time are one answer, a later one is late', async () => {
    lab = await a2aLab({ options: { completion: 'settle', settleMs: 1_000 } });
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply('a');
    await lab.clock.advance(500);
    await lab.reply('b');
    await lab.clock.advance(999);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.clock.advance(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_COMPLETED');
    await lab.reply('c');
    expect(await texts(taskId)).toEqual(['a', 'b']);
  });

  it('A-174 with first the first reply is the answer', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply('a');
    await lab.reply('b');
    expect(await texts(taskId)).toEqual(['a']);
  });

  it('A-175 while the peer is at work the answer is open; processed ends it within a poll', async () => {
    lab = await a2aLab({ options: { completion: 'auto' } });
    lab.rooms.showDelivery = true;
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    await lab.reply('on it');
    await lab.clock.advance(20_000);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.reply('the answer');
    lab.rooms.delivery.set(lab.rooms.posted[0]!.id, 'processed');
    await lab.clock.advance(50);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_COMPLETED');
    expect(await texts(taskId)).toEqual(['on it', 'the answer']);
  });

  it('A-176 where delivery states are not shown, auto is settle: they are asked for once, and each end looked for once', async () => {
    lab = await a2aLab({ options: { completion: 'auto' } });
    for (let round = 1; round <= 2; round += 1) {
      const taskId = await lab.submit('hi', { contextId: `c${round}` });
      await lab.posted(round);
      await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
      await lab.reply('done');
      await lab.clock.advance(300);
      await lab.until(async () => (await state(taskId)) === 'TASK_STATE_COMPLETED');
    }
    // One look finds no states; after that only each answer's quiet end looks whether something is still on its way.
    expect(lab.rooms.countOf(/context$/)).toBe(3);
  });

  it('A-177 a failed delivery that stays failed for 10 s fails the task; another attempt cancels that', async () => {
    lab = await a2aLab({ options: { completion: 'auto', responseTimeoutMs: null } });
    lab.rooms.showDelivery = true;
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    const { id } = lab.rooms.posted[0]!;
    lab.rooms.delivery.set(id, 'failed');
    await lab.clock.advance(15_000);
    lab.rooms.delivery.set(id, 'processing');
    await lab.clock.advance(15_000);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    lab.rooms.delivery.set(id, 'failed');
    await lab.clock.advance(15_000);
    await lab.clock.advance(10_000);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_FAILED');
    expect((await lab.get(taskId)).status.message?.metadata).toEqual({ band_reason: 'PEER_FAILED' });
  });

  it('A-178 a peer that never ends its turn is waited for no longer than hold_max_ms', async () => {
    lab = await a2aLab({ options: { completion: 'auto', holdMaxMs: 30_000 } });
    lab.rooms.showDelivery = true;
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_WORKING');
    await lab.reply('on it');
    await lab.clock.advance(29_999);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.clock.advance(1);
    await lab.until(async () => (await state(taskId)) === 'TASK_STATE_COMPLETED');
  });

  it('A-179 processed without a reply does not end a task', async () => {
    lab = await a2aLab({ options: { completion: 'auto' } });
    lab.rooms.showDelivery = true;
    lab.rooms.deliveredAs = 'processed';
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.clock.advance(60_000);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
  });

  it('A-180 a reply after the end changes nothing anywhere, is acknowledged, and counted', async () => {
    lab = await a2aLab();
    const stream = await lab.client.stream('helper', 'SendStreamingMessage', message('hi'));
    const { id } = (await stream.next())!.result.task;
    await lab.posted(1);
    await lab.reply('done');
    const events = await stream.rest();
    const seen = async () => [
      await lab.get(id),
      (await lab.client.rpc('helper', 'ListTasks', { includeArtifacts: true })).body.result,
      (await lab.client.rpc('helper', 'SubscribeToTask', { id })).body,
      lab.rooms.writes.length,
    ];
    const before = await seen();
    await lab.reply('by the way');
    await lab.reply('sorry\n```a2a\n{"state":"failed"}\n```');
    expect(await seen()).toEqual(before);
    expect(events.at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    expect(lab.counters.get('band_a2a_late_replies_total')).toBe(2);
    expect(lab.lines.filter(({ msg }) => msg === 'a late reply was dropped')).toHaveLength(2);
  });

  it.each(['a cancelled', 'a timed-out'])('A-181 the late answer to %s task is not the next one’s', async (end) => {
    lab = await a2aLab({ options: { cancelNotice: 'none', responseTimeoutMs: 60_000 } });
    const first = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.until(async () => (await state(first)) === 'TASK_STATE_WORKING');
    if (end === 'a cancelled') await lab.client.rpc('helper', 'CancelTask', { id: first });
    else await lab.clock.advance(60_000);
    await lab.until(() => lab.engine.held.tasks === 0);
    const second = await lab.submit('two', { contextId: 'c' });
    await lab.clock.advance(2_000);
    await lab.reply('answer to one');
    expect(await state(second)).toBe('TASK_STATE_SUBMITTED');
    await lab.clock.advance(4_999);
    expect(lab.rooms.posted).toHaveLength(1);
    await lab.clock.advance(1);
    await lab.posted(2);
    await lab.reply('answer to two');
    expect(await texts(second)).toEqual(['answer to two']);
    expect((await lab.get(first)).artifacts).toBeUndefined();
  });

  it('A-181 a processed old message frees the lane at once where states are shown', async () => {
    lab = await a2aLab({ options: { responseTimeoutMs: 10_000, cancelNotice: 'none' } });
    lab.rooms.showDelivery = true;
    const first = await lab.submit('one', { contextId: 'c' });
    await lab.posted(1);
    await lab.until(async () => (await state(first)) === 'TASK_STATE_WORKING');
    await lab.clock.advance(10_000);
    await lab.until(async () => (await state(first)) === 'TASK_STATE_FAILED');
    await lab.submit('two', { contextId: 'c' });
    await lab.clock.advance(6_000);
    expect(lab.rooms.posted).toHaveLength(1);
    lab.rooms.delivery.set(lab.rooms.posted[0]!.id, 'processed');
    await lab.clock.advance(5_000);
    await lab.posted(2);
  });

  it('A-182 the result stands in the artifact, in the status message, or in both', async () => {
    for (const resultIn of ['artifact', 'status', 'both'] as const) {
      lab = await a2aLab({ options: { resultIn } });
      const sent = lab.client.rpc('helper', 'SendMessage', message('hi'));
      await lab.posted(1);
      await lab.reply('21 °C');
      const { artifacts, status } = (await sent).body.result.task;
      expect([artifacts?.[0]?.parts[0]?.text, status.message?.parts[0]?.text]).toEqual([
        resultIn === 'status' ? undefined : '21 °C',
        resultIn === 'artifact' ? undefined : '21 °C',
      ]);
      await lab.close();
    }
  });

  it.each([
    ['auth-required', 'TASK_STATE_AUTH_REQUIRED'],
    ['input-required', 'TASK_STATE_INPUT_REQUIRED'],
    ['failed', 'TASK_STATE_FAILED'],
    ['rejected', 'TASK_STATE_REJECTED'],
    ['working', 'TASK_STATE_WORKING'],
  ])('A-184 the directive state %s moves the task, with the prose as its message', async (said, wanted) => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply(`because\n\`\`\`a2a\n{"state":"${said}"}\n\`\`\``);
    const task = await lab.get(taskId);
    expect(task.status.state).toBe(wanted);
    expect(task.status.message?.parts).toEqual([{ text: 'because' }]);
    expect(task.artifacts).toBeUndefined();
  });

  it('A-184 final false keeps the answer open, final true ends it, completed is an answer', async () => {
    lab = await a2aLab({ options: { completion: 'auto' } });
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply('part 1\n```a2a\n{"final":false}\n```');
    await lab.clock.advance(10_000);
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.reply('part 2\n```a2a\n{"final":true}\n```');
    expect(await state(taskId)).toBe('TASK_STATE_COMPLETED');
    expect(await texts(taskId)).toEqual(['part 1', 'part 2']);
    const other = await lab.submit('hi');
    await lab.posted(2);
    await lab.reply('all done\n```a2a\n{"state":"completed"}\n```');
    expect(await state(other)).toBe('TASK_STATE_COMPLETED');
    expect(await texts(other)).toEqual(['all done']);
  });

  it('A-186 a remark right after a question does not resume the task, one after the turn does', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('pay');
    await lab.posted(1);
    await lab.reply('Which account?\n```a2a\n{"state":"input-required"}\n```');
    await lab.clock.advance(100);
    await lab.reply('(the main one is usual)');
    expect((await lab.get(taskId)).status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: '(the main one is usual)' }] },
    });
    await lab.clock.advance(5_000);
    await lab.reply('I took the main one.');
    expect(await state(taskId)).toBe('TASK_STATE_COMPLETED');
    expect(await texts(taskId)).toEqual(['I took the main one.']);
  });

  it('A-187 formatting, emoji, right-to-left and long text arrive unchanged', async () => {
    lab = await a2aLab();
    const text = `# Title\n\n\`\`\`ts\nconst a = 1;\n\`\`\`\n👩‍👩‍👧 שלום ${'x'.repeat(100_000)}`;
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply(text);
    expect(await texts(taskId)).toEqual([text]);
  });

  it('an empty reply without a directive counts for nothing', async () => {
    lab = await a2aLab();
    const taskId = await lab.submit('hi');
    await lab.posted(1);
    await lab.reply(' \u200b');
    expect(await state(taskId)).toBe('TASK_STATE_WORKING');
    await lab.reply(HELPER.name);
    expect(await texts(taskId)).toEqual(['Helper']);
  });
});
