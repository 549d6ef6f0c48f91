/** What a path of this bridge names. */
export type Route =
  | { readonly kind: 'peers' }
  | { readonly kind: 'card'; readonly alias: string; readonly legacy: boolean }
  | { readonly kind: 'rpc'; readonly alias: string }
  | { readonly kind: 'rest'; readonly alias: string; readonly operation: RestOperation }
  | { readonly kind: 'unknown' };

export type RestOperation =
  | { readonly name: 'SendMessage' | 'SendStreamingMessage' | 'ListTasks' | 'GetExtendedAgentCard' }
  | { readonly name: 'GetTask' | 'CancelTask' | 'SubscribeToTask' | 'PushConfigs'; readonly taskId: string };

export interface Matched {
  readonly route: Route;
  /** HTTP methods the route takes. */
  readonly methods: readonly string[];
}

const UNKNOWN: Matched = { route: { kind: 'unknown' }, methods: [] };
const READ = ['GET', 'HEAD'] as const;
const MAX_ALIAS_CHARS = 256;
const UNSAFE = /[/\\\p{Cc}]|\.\./u;

/**
 * The route of a path, with or without a trailing slash. A path that cannot name anything is `unknown`, never an error.
 *
 * @param method - decides where two routes share a path
 */
export function matchRoute(pathname: string, method: string): Matched {
  const segments = pathname.replace(/\/$/, '').split('/').slice(1);
  const [root, rawAlias, ...rest] = segments;
  if (root === 'peers') return rawAlias === undefined ? { route: { kind: 'peers' }, methods: READ } : UNKNOWN;
  if (root !== 'agents' || rawAlias === undefined) return UNKNOWN;
  const alias = decodeOnce(rawAlias);
  if (alias === null) return UNKNOWN;
  const path = rest.join('/');
  switch (path) {
    case '':
      return method === 'POST'
        ? { route: { kind: 'rpc', alias }, methods: ['GET', 'HEAD', 'POST'] }
        : { route: { kind: 'card', alias, legacy: false }, methods: ['GET', 'HEAD', 'POST'] };
    case '.well-known/agent-card.json':
      return { route: { kind: 'card', alias, legacy: false }, methods: READ };
    case '.well-known/agent.json':
      return { route: { kind: 'card', alias, legacy: true }, methods: READ };
    case 'message:send':
      return rest1(alias, { name: 'SendMessage' }, ['POST']);
    case 'message:stream':
      return rest1(alias, { name: 'SendStreamingMessage' }, ['POST']);
    case 'tasks':
      return rest1(alias, { name: 'ListTasks' }, ['GET']);
    case 'extendedAgentCard':
      return rest1(alias, { name: 'GetExtendedAgentCard' }, ['GET']);
    default:
      return rest[0] === 'tasks' ? taskRoute(alias, rest.slice(1)) : UNKNOWN;
  }
}

function taskRoute(alias: string, [rawTask = '', ...below]: readonly string[]): Matched {
  const [, rawId = '', verb] = /^(.*?)(?::(cancel|subscribe))?$/.exec(rawTask) ?? [];
  const taskId = decodeOnce(rawId);
  if (taskId === null) return UNKNOWN;
  if (below.length === 0) {
    if (verb === 'cancel') return rest1(alias, { name: 'CancelTask', taskId }, ['POST']);
    // The method table of the protocol says POST, its proto file GET.
    if (verb === 'subscribe') return rest1(alias, { name: 'SubscribeToTask', taskId }, ['GET', 'POST']);
    return rest1(alias, { name: 'GetTask', taskId }, ['GET']);
  }
  if (verb !== undefined || below[0] !== 'pushNotificationConfigs' || below.length > 2) return UNKNOWN;
  const methods = below.length === 1 ? ['GET', 'POST'] : ['GET', 'DELETE'];
  return rest1(alias, { name: 'PushConfigs', taskId }, methods);
}

function rest1(alias: string, operation: RestOperation, methods: readonly string[]): Matched {
  return { route: { kind: 'rest', alias, operation }, methods };
}

function decodeOnce(segment: string): string | null {
  try {
    const text = decodeURIComponent(segment);
    return text === '' || text.length > MAX_ALIAS_CHARS || UNSAFE.test(text) ? null : text;
  } catch {
    return null; // broken percent-encoding names nothing
  }
}
