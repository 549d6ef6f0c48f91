import {
  AgentCard,
  CancelTaskRequest,
  GetExtendedAgentCardRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from '@a2a-js/sdk';
import type { A2ARequestHandler } from '@a2a-js/sdk/server';
import { GatewayError } from '../../../src/base/errors.js';
import type { Call } from '../call.js';
import { invalidField } from '../errors.js';
import { contextOf } from '../handler.js';
import type { Method, RequestSchemas } from '../parse.js';
import type { RpcAnswer } from './rpc.js';
import type { RestOperation } from './routes.js';

export interface RestRequest {
  readonly method: Method;
  readonly params: Record<string, unknown>;
}

/**
 * Method and parameters of an HTTP+JSON request of 1.0: path, query and body are one set of fields.
 *
 * @throws {GatewayError} `A2A_ENVELOPE` for a body that is no object; `A2A_PARAMS`
 */
export function readRest(
  operation: RestOperation,
  query: URLSearchParams,
  body: unknown,
  schemas: RequestSchemas,
): RestRequest {
  if (body !== undefined && (typeof body !== 'object' || body === null || Array.isArray(body))) {
    throw new GatewayError('A2A_ENVELOPE');
  }
  if (operation.name === 'PushConfigs') throw new GatewayError('A2A_PUSH_UNSUPPORTED');
  const fields = {
    ...queryFields(query),
    ...body,
    ...('taskId' in operation && { id: operation.taskId }),
  };
  return { method: operation.name, params: schemas.parse(operation.name, '1.0', fields) };
}

/** Runs the operation and gives its answer in the 1.0 wire form. @throws what the operation threw */
export async function runRest(
  { method, params }: RestRequest,
  call: Call,
  handler: A2ARequestHandler,
): Promise<RpcAnswer> {
  const context = contextOf(call);
  switch (method) {
    case 'SendMessage': {
      const answer = await handler.sendMessage(SendMessageRequest.fromJSON(params), context);
      return result('messageId' in answer ? { message: Message.toJSON(answer) } : { task: Task.toJSON(answer) });
    }
    case 'SendStreamingMessage':
      return stream(handler.sendMessageStream(SendMessageRequest.fromJSON(params), context), call);
    case 'SubscribeToTask':
      return stream(handler.resubscribe(SubscribeToTaskRequest.fromJSON(params), context), call);
    case 'GetTask':
      return result(Task.toJSON(await handler.getTask(GetTaskRequest.fromJSON(params), context)));
    case 'CancelTask':
      return result(Task.toJSON(await handler.cancelTask(CancelTaskRequest.fromJSON(params), context)));
    case 'ListTasks':
      return result(listed(await handler.listTasks(ListTasksRequest.fromJSON(params), context), params));
    case 'GetExtendedAgentCard':
      return result(
        AgentCard.toJSON(
          await handler.getAuthenticatedExtendedAgentCard(GetExtendedAgentCardRequest.fromJSON({}), context),
        ),
      );
    case 'CreateTaskPushNotificationConfig':
    case 'GetTaskPushNotificationConfig':
    case 'ListTaskPushNotificationConfigs':
    case 'DeleteTaskPushNotificationConfig':
      throw new GatewayError('A2A_PUSH_UNSUPPORTED');
  }
}

function result(body: unknown): RpcAnswer {
  return { kind: 'result', body };
}

async function stream(events: AsyncGenerator<StreamResponse, void, undefined>, call: Call): Promise<RpcAnswer> {
  const wire = wireEvents(events);
  const first = await wire.next();
  if (first.done === true) throw call.failure ?? new Error('a stream ended before its first event');
  return { kind: 'stream', first: first.value, events: wire };
}

async function* wireEvents(events: AsyncGenerator<StreamResponse, void, undefined>): AsyncGenerator {
  for await (const event of events) yield StreamResponse.toJSON(event);
}

/** The codec leaves out empty values, which the protocol wants present here. */
function listed(response: ListTasksResponse, { includeArtifacts }: Record<string, unknown>): object {
  const { tasks = [], ...rest } = ListTasksResponse.toJSON(response) as { tasks?: object[] };
  return {
    tasks: includeArtifacts === true ? tasks.map((task) => ({ artifacts: [], ...task })) : tasks,
    nextPageToken: '',
    pageSize: response.pageSize,
    totalSize: 0,
    ...rest,
  };
}

const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize']);
const TEXTS: ReadonlySet<string> = new Set(['contextId', 'status', 'pageToken', 'statusTimestampAfter']);

/** Fields that a query carries; what it does not know is ignored. */
function queryFields(query: URLSearchParams): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of query) {
    const key = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    if (TEXTS.has(key)) fields[key] = value;
    else if (NUMBERS.has(key)) fields[key] = numberOf(key, value);
    else if (key === 'includeArtifacts') fields[key] = booleanOf(key, value);
  }
  return fields;
}

function numberOf(field: string, value: string): number {
  if (!/^-?\d+(?:\.\d+)?$/.test(value)) throw invalidField(field, 'must be a whole number');
  return Number(value);
}

function booleanOf(field: string, value: string): boolean {
  if (value !== 'true' && value !== 'false') throw invalidField(field, 'must be true or false');
  return value === 'true';
}
