/**
 * A plain server of @a2a-js/sdk that echoes at once, for a bench: `a2a-plain-sdk.ts [FOLDER]`. With a folder it keeps its
 * tasks on this project's durable store, else in the SDK's memory. Says `{ url }` once it listens.
 */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { AgentCard, Message, Task } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  type AgentExecutor,
  type TaskStore,
} from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';
import { toBytes } from '../../../src/store/json.js';
import { openLevelStore } from '../../../src/store/leveldb.js';

const executor: AgentExecutor = {
  execute: (context, bus) => {
    const { taskId, contextId, userMessage } = context;
    const base = { id: taskId, contextId, history: [Message.toJSON(userMessage)] };
    const status = (state: string) => ({ state, timestamp: new Date().toISOString() });
    const artifacts = [{ artifactId: randomUUID(), name: 'reply', parts: [{ text: 'echo' }] }];
    bus.publish(AgentEvent.task(Task.fromJSON({ ...base, status: status('TASK_STATE_WORKING') })));
    bus.publish(AgentEvent.task(Task.fromJSON({ ...base, artifacts, status: status('TASK_STATE_COMPLETED') })));
    bus.finished();
    return Promise.resolve();
  },
  cancelTask: () => Promise.resolve(),
};
const card = AgentCard.fromJSON({
  name: 'echo',
  description: 'echo',
  version: '1',
  supportedInterfaces: [{ url: 'http://127.0.0.1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
});

/** Every save is on disk when the SDK, which waits for it, goes on. */
async function tasksOnDisk(folder: string): Promise<TaskStore> {
  const store = await openLevelStore({ folder });
  return {
    async save(task) {
      await store.batch([{ kind: 'put', key: task.id, value: toBytes(Task.toJSON(task)) }]);
    },
    async load(taskId) {
      const stored = await store.get(taskId);
      return stored ? Task.fromJSON(JSON.parse(Buffer.from(stored.value).toString('utf8'))) : undefined;
    },
    list: () => Promise.reject(new Error('nobody lists')),
  };
}

const [folder] = process.argv.slice(2);
const tasks = folder === undefined ? new InMemoryTaskStore() : await tasksOnDisk(folder);
const requestHandler = new DefaultRequestHandler(card, tasks, executor);
const app = express();
app.use(express.json());
app.use('/agents/echo', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
