import type { A2AOptionsInput } from '../../../bridges/a2a/index.js';
import type { Task } from '../../../bridges/a2a/wire.js';
import { kindOf, message, type Answer, type Body, type Stream } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

/** One operation over one binding, with the answer in the same shape for all. */
export interface Binding {
  readonly name: 'JSONRPC' | 'HTTP+JSON';
  send(params: object): Promise<Outcome>;
  stream(params: object): Promise<Stream>;
  get(id: string, historyLength?: number): Promise<Outcome>;
  list(params: Record<string, string | number | boolean>): Promise<Outcome>;
  cancel(id: string): Promise<Outcome>;
  subscribe(id: string): Promise<Stream>;
  extendedCard(): Promise<Outcome>;
}

export interface Outcome {
  readonly answer: Answer;
  /** The result, whatever it is wrapped in; for an error the error. */
  readonly value: Body;
  /** Reason of the error, or null. */
  readonly reason: string | null;
}

const PEER = 'helper';

/** Both bindings of a lab. */
export function bindingsOf({ client }: A2ALab): Binding[] {
  const rpc = async (method: string, params: object) => outcome(await client.rpc(PEER, method, params));
  const rest = async (verb: string, path: string, body?: object) =>
    outcome(await client.request(verb, `/agents/${PEER}/${path}`, body));
  const query = (params: Record<string, string | number | boolean>) => {
    const text = Object.entries(params)
      .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
      .join('&');
    return text === '' ? '' : `?${text}`;
  };
  return [
    {
      name: 'JSONRPC',
      send: (params) => rpc('SendMessage', params),
      stream: (params) => client.stream(PEER, 'SendStreamingMessage', params),
      get: (id, historyLength) => rpc('GetTask', { id, ...(historyLength !== undefined && { historyLength }) }),
      list: (params) => rpc('ListTasks', params),
      cancel: (id) => rpc('CancelTask', { id }),
      subscribe: (id) => client.stream(PEER, 'SubscribeToTask', { id }),
      extendedCard: () => rpc('GetExtendedAgentCard', {}),
    },
    {
      name: 'HTTP+JSON',
      send: (params) => rest('POST', 'message:send', params),
      stream: (params) => client.restStream(`/agents/${PEER}/message:stream`, params),
      get: (id, historyLength) =>
        rest('GET', `tasks/${id}${historyLength === undefined ? '' : `?historyLength=${historyLength}`}`),
      list: (params) => rest('GET', `tasks${query(params)}`),
      cancel: (id) => rest('POST', `tasks/${id}:cancel`),
      subscribe: (id) => client.restStream(`/agents/${PEER}/tasks/${id}:subscribe`),
      extendedCard: () => rest('GET', 'extendedAgentCard'),
    },
  ];
}

function outcome(answer: Answer): Outcome {
  const { body } = answer;
  const { error, result } = body as Partial<Body>;
  const details = error ? ((error as Partial<Body['error']>).data ?? error.details) : [];
  return {
    answer,
    value: (error as unknown as Body | undefined) ?? (result as Body | undefined) ?? body,
    reason: details.find((one) => (one as Partial<typeof one>).reason !== undefined)?.reason ?? null,
  };
}

/** A lab whose peer answers each text at once, by a script; default an echo. */
export async function answeringLab(
  script: (text: string) => string | null = (text) => `echo: ${text}`,
  options: A2AOptionsInput = {},
): Promise<A2ALab> {
  const lab = await a2aLab({ options });
  lab.rooms.onPost = async (roomId, _id, content) => {
    const reply = script(content.replace('@Helper ', ''));
    if (reply !== null) await lab.reply(reply, { roomId });
  };
  return lab;
}

export const asks = '\n```a2a\n{"state":"input-required"}\n```';

/** A task that has reached where the script leads it. */
export async function taskOf(binding: Binding, text = 'hi', fields: Record<string, unknown> = {}): Promise<Task> {
  return (await binding.send(message(text, fields))).value.task;
}

/** What the events of a stream are. */
export async function kindsOf(stream: Stream): Promise<string[]> {
  return (await stream.rest()).map(kindOf);
}
