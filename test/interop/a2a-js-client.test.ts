import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type Client,
} from '@a2a-js/sdk/client';
import { LegacyJsonRpcTransport, parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { SendMessageRequest, TaskState, type StreamResponse, type Task } from '@a2a-js/sdk';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { a2aLab, KEY, type A2ALab } from '../support/a2a/lab.js';

const withKey: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('x-api-key', KEY);
  return fetch(input, { ...init, headers });
};

const request = (text: string, fields: object = {}, configuration: object = {}) =>
  SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...fields },
    configuration,
  });
const textsOf = (task: Task) =>
  task.artifacts.flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === 'text' ? content.value : null)));
const stateOf = (task: Task) => TaskState[task.status?.state ?? 0];
const caseOf = (event: StreamResponse) => event.payload?.$case;

describe.each(['JSONRPC', 'HTTP+JSON'])('A-360 the client of @a2a-js/sdk over %s', (binding) => {
  let lab: A2ALab;
  let client: Client;
  beforeEach(async () => {
    lab = await a2aLab();
    const factory = new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        cardResolver: new DefaultAgentCardResolver({ fetchImpl: withKey }),
        transports: [
          // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- the SDK's class is only a shape
          new JsonRpcTransportFactory({ fetchImpl: withKey }),
          // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- as above
          new RestTransportFactory({ fetchImpl: withKey }),
        ],
        preferredTransports: [binding],
      }),
    );
    client = await factory.createFromUrl(`${lab.client.base}/agents/helper/.well-known/agent-card.json`, '');
  });
  afterEach(() => lab.close());

  it('discovers the agent, sends and gets the answer', async () => {
    const sent = client.sendMessage(request('Weather in Riga?'));
    await lab.posted(1);
    await lab.reply('21 °C');
    const task = (await sent) as Task;
    expect([stateOf(task), textsOf(task)]).toEqual(['TASK_STATE_COMPLETED', ['21 °C']]);
    const again = await client.getTask({ tenant: '', id: task.id, historyLength: undefined });
    expect(again).toEqual(task);
  });

  it('streams, loses its connection, subscribes again and gets the rest', async () => {
    const cut = new AbortController();
    const stream = client.sendMessageStream(request('plan'), { signal: cut.signal });
    const first = await stream.next();
    if (first.done === true || first.value.payload?.$case !== 'task') throw new Error('no task came first');
    const { id } = first.value.payload.value;
    expect(caseOf((await stream.next()).value as StreamResponse)).toBe('statusUpdate');
    cut.abort();
    await stream.next().catch(() => undefined);
    const again = client.resubscribeTask({ tenant: '', id });
    const snapshot = await again.next();
    expect(caseOf(snapshot.value as StreamResponse)).toBe('task');
    // A quiet time, with its comment line.
    await lab.clock.advance(15_000);
    await lab.reply('done');
    const rest: (string | undefined)[] = [];
    for await (const event of again) rest.push(caseOf(event));
    expect(rest).toEqual(['artifactUpdate', 'statusUpdate']);
  });

  it('lists and cancels', async () => {
    const now = { returnImmediately: true };
    const task = (await client.sendMessage(request('slow', {}, now))) as Task;
    const page = await client.listTasks({
      tenant: '',
      contextId: task.contextId,
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize: undefined,
      pageToken: '',
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: undefined,
    });
    expect([page.totalSize, page.tasks.map(({ id }) => id)]).toEqual([1, [task.id]]);
    const cancelled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
    expect(stateOf(cancelled)).toBe('TASK_STATE_CANCELED');
    await expect(client.cancelTask({ tenant: '', id: task.id, metadata: undefined })).rejects.toMatchObject({
      name: 'TaskNotCancelableError',
    });
  });

  it('continues a task that asks back, and reads the extended card', async () => {
    const asked = client.sendMessage(request('pay'));
    await lab.posted(1);
    await lab.reply('Which?\n```a2a\n{"state":"input-required"}\n```');
    const task = (await asked) as Task;
    expect(stateOf(task)).toBe('TASK_STATE_INPUT_REQUIRED');
    const answered = client.sendMessage(request('the main one', { taskId: task.id }));
    await lab.posted(2);
    await lab.until(() => lab.engine.book.find(task.id)?.row.posted === 2);
    await lab.reply('paid');
    expect(textsOf((await answered) as Task)).toEqual(['paid']);
    expect((await client.getAgentCard()).description).toContain('Helper');
  });
});

describe('A-360 the 0.3 client of @a2a-js/sdk', () => {
  it('sends, streams, gets, subscribes and cancels', async () => {
    const lab = await a2aLab();
    try {
      const card = await lab.client.request('GET', '/agents/helper/.well-known/agent.json');
      const { supportedInterfaces } = parseLegacyAgentCard(card.body);
      expect(supportedInterfaces[0]?.protocolBinding).toBe('JSONRPC');
      const client = new LegacyJsonRpcTransport({ endpoint: `${lab.client.base}/agents/helper`, fetchImpl: withKey });
      const blocking = client.sendMessage(request('hi', {}, { returnImmediately: false }));
      await lab.posted(1);
      await lab.reply('hello');
      expect(textsOf((await blocking) as Task)).toEqual(['hello']);
      const stream = client.sendMessageStream(request('again'));
      const first = (await stream.next()).value as StreamResponse;
      const { id } = first.payload?.value as Task;
      await lab.until(() => lab.engine.book.find(id)?.row.posted === 1);
      const twin = client.resubscribeTask({ tenant: '', id });
      await twin.next();
      await lab.reply('and again');
      for (const events of [stream, twin]) {
        let last: StreamResponse | null = null;
        for await (const event of events) last = event;
        expect(last?.payload?.value).toMatchObject({ status: { state: TaskState.TASK_STATE_COMPLETED } });
      }
      const open = (await client.sendMessage(request('slow', {}, { returnImmediately: true }))) as Task;
      expect(stateOf(await client.getTask({ tenant: '', id: open.id, historyLength: undefined }))).not.toBe('');
      expect(stateOf(await client.cancelTask({ tenant: '', id: open.id, metadata: undefined }))).toBe(
        'TASK_STATE_CANCELED',
      );
    } finally {
      await lab.close();
    }
  });
});
