import {
  AgentCard,
  ListTasksResponse as SdkListTasksResponse,
  Message as SdkMessage,
  StreamResponse,
  Task as SdkTask,
  TaskState as SdkTaskState,
  type ListTasksRequest,
  type SendMessageRequest,
} from '@a2a-js/sdk';
import { ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server';
import { GatewayError, toError } from '../../src/base/errors.js';
import type { StateStore } from '../../src/store/port.js';
import type { Call } from './call.js';
import type { CardBook } from './cards/card-book.js';
import type { CardContext } from './cards/card.js';
import { overlaps } from './convert/media-types.js';
import type { OpenTask } from './engine/book.js';
import type { TaskEngine } from './engine/engine.js';
import { listTasks, type PageTokens } from './engine/list.js';
import { snapshot } from './engine/log.js';
import type { RecordKeys } from './engine/records.js';
import { follow, settled } from './engine/watch.js';
import { refusal } from './errors.js';
import type { PublishedPeer } from './peers/directory.js';
import type { A2AOptions } from './settings.js';
import { isTerminal, type Message, type StreamEvent, type Task, type TaskState } from './wire.js';

export interface HandlerDeps {
  readonly engine: TaskEngine;
  readonly store: StateStore;
  readonly keys: RecordKeys;
  readonly tokens: PageTokens;
  readonly cards: CardBook;
  readonly options: A2AOptions;
  readonly now: () => number;
  cardContext(baseUrl: string): CardContext;
}

const CALL = 'call';
const DEFAULT_PAGE_SIZE = 50;
/** Never sent on: a request without a message was refused before. */
const NO_MESSAGE = SdkMessage.fromJSON({});
/** All that the protocol SDK asks of this card is whether streams are offered. */
const STREAMING_CARD = AgentCard.fromJSON({ capabilities: { streaming: true } });

/** The call inside a context of the protocol SDK. */
export function contextOf(call: Call): ServerCallContext {
  return new ServerCallContext({ state: new Map<string, unknown>([[CALL, call]]), requestedVersion: call.dialect });
}

/**
 * The task engine as the protocol SDK's transports see it. What an operation throws is kept on the call, since the
 * transports would show its text; the doors translate it.
 */
export function createHandler(deps: HandlerDeps): A2ARequestHandler {
  const { engine, options } = deps;

  const send = async (params: SendMessageRequest, call: Call): Promise<string> => {
    const peer = servedPeer(call);
    const { configuration } = params;
    if (configuration?.taskPushNotificationConfig) throw new GatewayError('A2A_PUSH_UNSUPPORTED');
    const accepted = configuration?.acceptedOutputModes ?? [];
    const offered = peer.override?.outputModes ?? options.outputModes;
    if (options.strictOutputModes && accepted.length > 0 && !overlaps(accepted, offered)) {
      throw refusal('A2A_CONTENT_TYPE', { mediaType: accepted.join(', ') });
    }
    const message = SdkMessage.toJSON(params.message ?? NO_MESSAGE) as Message;
    return engine.send({ requestId: call.requestId, owner: call.principal.id, peer, message });
  };

  const current = async (taskId: string, call: Call): Promise<Task> => {
    const { view } = await engine.read(call.principal.id, call.peerId, taskId);
    return snapshot(view);
  };

  const openTask = (taskId: string): OpenTask | null => engine.book.find(taskId);

  const followed = (
    open: OpenTask,
    call: Call,
    endWhenInterrupted: boolean,
  ): AsyncGenerator<StreamEvent, void, undefined> =>
    follow(open, {
      bufferBytes: options.stream.bufferBytes,
      endWhenInterrupted,
      caller: call.caller,
      onCut: call.cut,
    });

  return {
    getAgentCard: () => Promise.resolve(STREAMING_CARD),

    getAuthenticatedExtendedAgentCard: (_params, context) =>
      noting(context, async (call) => {
        const cards = deps.cardContext(call.baseUrl);
        if (!cards.extendedCard) throw new GatewayError('A2A_NO_EXTENDED_CARD');
        return AgentCard.fromJSON(await deps.cards.extended(servedPeer(call), '1.0', cards));
      }),

    sendMessage: (params, context) =>
      noting(context, async (call) => {
        const taskId = await send(params, call);
        const open = params.configuration?.returnImmediately ? null : openTask(taskId);
        const task = open ? await settled(open, call.caller) : await current(taskId, call);
        return toSdkTask(task, params.configuration?.historyLength);
      }),

    async *sendMessageStream(params, context) {
      const call = callOf(context);
      try {
        const taskId = await send(params, call);
        const open = openTask(taskId);
        if (!open) {
          yield toSdkEvent({ task: await current(taskId, call) }, params.configuration?.historyLength);
          return;
        }
        for await (const event of followed(open, call, true)) {
          yield toSdkEvent(event, params.configuration?.historyLength);
        }
      } catch (error) {
        call.failure = toError(error);
        throw error;
      }
    },

    getTask: ({ id, historyLength }, context) =>
      noting(context, async (call) => toSdkTask(await current(id, call), historyLength)),

    cancelTask: ({ id }, context) =>
      noting(context, async (call) => {
        const { view } = await engine.cancel(call.principal.id, call.peerId, id);
        return toSdkTask(snapshot(view));
      }),

    async *resubscribe({ id }, context) {
      const call = callOf(context);
      try {
        const { row } = await engine.read(call.principal.id, call.peerId, id);
        const open = openTask(id);
        if (!open || isTerminal(row.state)) throw refusal('A2A_TASK_OVER', { taskId: id, state: row.state });
        // In 0.3 an interrupted status is final, and a stream ends with it.
        for await (const event of followed(open, call, call.dialect === '0.3')) yield toSdkEvent(event);
      } catch (error) {
        call.failure = toError(error);
        throw error;
      }
    },

    listTasks: (params, context) =>
      noting(context, async (call) => {
        const pageSize = params.pageSize ?? DEFAULT_PAGE_SIZE;
        const { taskIds, nextPageToken, totalSize } = await listTasks(
          { store: deps.store, keys: deps.keys, tokens: deps.tokens, now: deps.now() },
          {
            owner: call.principal.id,
            peerId: call.peerId,
            contextId: params.contextId === '' ? null : params.contextId,
            status: stateFilter(params),
            statusFrom: params.statusTimestampAfter === undefined ? null : Date.parse(params.statusTimestampAfter),
            pageSize,
            pageToken: params.pageToken === '' ? null : params.pageToken,
          },
        );
        const tasks: SdkTask[] = [];
        for (const taskId of taskIds) {
          const found = await engine.book.read(taskId);
          if (found) tasks.push(listedTask(snapshot(found.view), params));
        }
        return { ...SdkListTasksResponse.fromJSON({ nextPageToken, totalSize, pageSize }), tasks };
      }),

    createTaskPushNotificationConfig: refusePush,
    getTaskPushNotificationConfig: refusePush,
    listTaskPushNotificationConfigs: refusePush,
    deleteTaskPushNotificationConfig: refusePush,
  };
}

function refusePush(_params: unknown, context: ServerCallContext): Promise<never> {
  return noting(context, () => Promise.reject(new GatewayError('A2A_PUSH_UNSUPPORTED')));
}

function callOf(context: ServerCallContext): Call {
  return context.state.get(CALL) as Call;
}

async function noting<T>(context: ServerCallContext, operation: (call: Call) => Promise<T>): Promise<T> {
  const call = callOf(context);
  try {
    return await operation(call);
  } catch (error) {
    call.failure = toError(error);
    throw error;
  }
}

function servedPeer(call: Call): PublishedPeer {
  if (!call.peer) throw refusal('A2A_PEER_UNKNOWN', { alias: call.peerId });
  return call.peer;
}

function stateFilter({ status }: ListTasksRequest): TaskState | null {
  return status === SdkTaskState.TASK_STATE_UNSPECIFIED ? null : (SdkTaskState[status] as TaskState);
}

function listedTask(task: Task, { includeArtifacts, historyLength }: ListTasksRequest): SdkTask {
  const sdkTask = toSdkTask(task, historyLength);
  return includeArtifacts ? sdkTask : { ...sdkTask, artifacts: [] };
}

/** @param historyLength - the last so many messages; absent: all of them */
function toSdkTask(task: Task, historyLength?: number): SdkTask {
  return SdkTask.fromJSON(withHistory(task, historyLength));
}

function toSdkEvent(event: StreamEvent, historyLength?: number): StreamResponse {
  return StreamResponse.fromJSON('task' in event ? { task: withHistory(event.task, historyLength) } : event);
}

function withHistory(task: Task, historyLength: number | undefined): Task {
  if (historyLength === undefined || !task.history || task.history.length <= historyLength) return task;
  const { history, ...rest } = task;
  return historyLength === 0 ? rest : { ...rest, history: history.slice(-historyLength) };
}
