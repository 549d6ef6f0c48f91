import type { A2AClient, Answer, CallOptions } from './client.js';

type Fields = Readonly<Record<string, unknown>>;

/** One operation as one door takes it. */
export interface Way {
  readonly name: string;
  readonly style: 'rpc' | 'rest';
  readonly ask: (client: A2AClient, peer: string, options?: CallOptions) => Promise<Answer>;
}

/** The id of every JSON-RPC request of these ways. */
export const ASKED_ID = 'asked-7';

const rpc = (method: string, params: unknown, version: string | null): Way => ({
  name: method,
  style: 'rpc',
  ask: (client, peer, options = {}) => client.rpc(peer, method, params, { version, id: ASKED_ID, ...options }),
});
const rest = (method: string, path: string, body?: unknown): Way => ({
  name: `${method} ${path}`,
  style: 'rest',
  ask: (client, peer, options = {}) => client.request(method, `/agents/${peer}${path}`, body, options),
});

/** A send in both dialects and over both doors, plain and streaming. The message is in the 1.0 form. */
export function sendWays(message: Fields, configuration: Fields = {}): Way[] {
  const current = { message: { role: 'ROLE_USER', ...message }, configuration };
  const older = { message: legacyMessageOf(message), configuration: legacyConfigurationOf(configuration) };
  return [
    rpc('SendMessage', current, '1.0'),
    rpc('SendStreamingMessage', current, '1.0'),
    rpc('message/send', older, null),
    rpc('message/stream', older, null),
    rest('POST', '/message:send', current),
    rest('POST', '/message:stream', current),
  ];
}

export function getWays(id: string): Way[] {
  return [rpc('GetTask', { id }, '1.0'), rpc('tasks/get', { id }, null), rest('GET', `/tasks/${id}`)];
}

export function cancelWays(id: string): Way[] {
  return [rpc('CancelTask', { id }, '1.0'), rpc('tasks/cancel', { id }, null), rest('POST', `/tasks/${id}:cancel`)];
}

export function subscribeWays(id: string): Way[] {
  return [
    rpc('SubscribeToTask', { id }, '1.0'),
    rpc('tasks/resubscribe', { id }, null),
    rest('POST', `/tasks/${id}:subscribe`),
    rest('GET', `/tasks/${id}:subscribe`),
  ];
}

/** 0.3 has no list. */
export function listWays(filters: Fields): Way[] {
  const query = new URLSearchParams(
    Object.fromEntries(Object.entries(filters).map(([name, value]) => [name, String(value)])),
  );
  return [rpc('ListTasks', filters, '1.0'), rest('GET', `/tasks?${query.toString()}`)];
}

export function extendedCardWays(): Way[] {
  return [
    rpc('GetExtendedAgentCard', {}, '1.0'),
    rpc('agent/getAuthenticatedExtendedCard', {}, null),
    rest('GET', '/extendedAgentCard'),
  ];
}

/** Every operation on push configurations. */
export function pushWays(taskId: string, url: string): Way[] {
  const at = `/tasks/${taskId}/pushNotificationConfigs`;
  const set = { id: taskId, taskId, pushNotificationConfig: { url } };
  return [
    rpc('CreateTaskPushNotificationConfig', { taskId, url }, '1.0'),
    rpc('GetTaskPushNotificationConfig', { taskId, id: 'x' }, '1.0'),
    rpc('ListTaskPushNotificationConfigs', { taskId }, '1.0'),
    rpc('DeleteTaskPushNotificationConfig', { taskId, id: 'x' }, '1.0'),
    rpc('tasks/pushNotificationConfig/set', set, null),
    rpc('tasks/pushNotificationConfig/get', { id: taskId }, null),
    rpc('tasks/pushNotificationConfig/list', { id: taskId }, null),
    rpc('tasks/pushNotificationConfig/delete', { id: taskId, pushNotificationConfigId: 'x' }, null),
    rest('POST', at, { url }),
    rest('GET', at),
    rest('GET', `${at}/x`),
    rest('DELETE', `${at}/x`),
  ];
}

/** A body as it stands, at the doors that read one. */
export function bodyWays(body: unknown, headers: Record<string, string> = {}): Way[] {
  const post = (name: string, style: Way['style'], path: string, version: string | null): Way => ({
    name,
    style,
    ask: (client, peer, options = {}) =>
      client.request('POST', `/agents/${peer}${path}`, body, {
        version,
        ...options,
        headers: { ...headers, ...options.headers },
      }),
  });
  return [
    post('JSON-RPC 1.0', 'rpc', '', '1.0'),
    post('JSON-RPC 0.3', 'rpc', '', null),
    post('message:send', 'rest', '/message:send', '1.0'),
    post('message:stream', 'rest', '/message:stream', '1.0'),
  ];
}

export const onRpc = (ways: readonly Way[]): Way[] => ways.filter(({ style }) => style === 'rpc');
export const onRest = (ways: readonly Way[]): Way[] => ways.filter(({ style }) => style === 'rest');

function legacyMessageOf({ role, parts, ...rest }: Fields): object {
  return {
    kind: 'message',
    role: role === undefined || role === 'ROLE_USER' ? 'user' : role,
    ...rest,
    ...(parts !== undefined && { parts: Array.isArray(parts) ? parts.map(legacyPartOf) : parts }),
  };
}

function legacyPartOf(part: unknown): unknown {
  const { text, data, raw, url, filename, mediaType, ...rest } = part as Fields;
  if (text !== undefined) return { kind: 'text', text, ...rest };
  if (data !== undefined) return { kind: 'data', data, ...rest };
  const file = {
    ...(raw !== undefined && { bytes: raw }),
    ...(url !== undefined && { uri: url }),
    ...(filename !== undefined && { name: filename }),
    ...(mediaType !== undefined && { mimeType: mediaType }),
  };
  return { kind: 'file', file, ...rest };
}

function legacyConfigurationOf({ returnImmediately, taskPushNotificationConfig, ...rest }: Fields): object {
  return {
    ...rest,
    ...(returnImmediately !== undefined && { blocking: returnImmediately !== true }),
    ...(taskPushNotificationConfig !== undefined && { pushNotificationConfig: taskPushNotificationConfig }),
  };
}
