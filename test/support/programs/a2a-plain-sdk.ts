/** A plain server of @a2a-js/sdk that echoes at once, for a bench. Says `{ url }` once it listens. */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { AgentCard, Message, Task } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, type AgentExecutor } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

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
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use(express.json());
app.use('/agents/echo', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
