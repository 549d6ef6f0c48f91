import type { JsonRpcTransportHandler } from '@a2a-js/sdk/server';
import type { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import { GatewayError } from '../../../src/base/errors.js';
import type { Call } from '../call.js';
import { contextOf } from '../handler.js';
import { methodOf, parseEnvelope, usableId, type Envelope, type Method, type RequestSchemas } from '../parse.js';
import { requestedVersion, unsupported, type Dialect } from '../versions.js';
import type { A2AOptions } from '../settings.js';

export interface RpcDeps {
  readonly v1: Pick<JsonRpcTransportHandler, 'handle'>;
  readonly v03: Pick<LegacyJsonRpcTransportHandler, 'handle'>;
  readonly schemas: RequestSchemas;
  readonly options: A2AOptions;
}

/** A JSON-RPC request that passed every check up to its operation. */
export interface RpcRequest {
  readonly envelope: Envelope;
  readonly dialect: Dialect;
  readonly method: Method;
  readonly params: Record<string, unknown>;
}

export type RpcAnswer =
  | { readonly kind: 'result'; readonly body: unknown }
  /** The first event was taken, so a stream that fails at once is an error answer. */
  | { readonly kind: 'stream'; readonly first: unknown; readonly events: AsyncGenerator };

const PUSH: ReadonlySet<Method> = new Set<Method>([
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
]);

/**
 * Envelope, version, method and parameters of a JSON-RPC body, in this order.
 *
 * @throws {GatewayError} `A2A_ENVELOPE`, `A2A_VERSION`, `A2A_METHOD_UNKNOWN`, `A2A_PARAMS`
 */
export function readRpc(
  body: unknown,
  versionHeader: string | undefined,
  query: URLSearchParams,
  { schemas, options }: RpcDeps,
): RpcRequest {
  const envelope = parseEnvelope(body);
  const asked = requestedVersion(versionHeader, query, options.versions);
  const dialect = asked ?? implied(envelope.method, options);
  const method = methodOf(envelope.method, dialect);
  if (!method) throw new GatewayError('A2A_METHOD_UNKNOWN');
  return { envelope, dialect, method, params: schemas.parse(method, dialect, envelope.params) };
}

/** Runs the operation on the protocol SDK's transport of its dialect. @throws what the operation threw */
export async function runRpc(
  { envelope, dialect, method, params }: RpcRequest,
  call: Call,
  deps: RpcDeps,
): Promise<RpcAnswer> {
  if (PUSH.has(method)) throw new GatewayError('A2A_PUSH_UNSUPPORTED');
  const transport = dialect === '1.0' ? deps.v1 : deps.v03;
  const request = { jsonrpc: '2.0', id: envelope.id, method: envelope.method, params };
  const answer: unknown = await transport.handle(request, contextOf(call));
  if (isStream(answer)) {
    const events = dialect === '0.3' ? withFinal(answer) : answer;
    const first = await events.next();
    if (first.done === true) throw call.failure ?? new Error('a stream ended before its first event');
    return { kind: 'stream', first: first.value, events };
  }
  if (typeof answer === 'object' && answer !== null && 'error' in answer) {
    // The SDK's own refusals are of checks that ours have made already.
    throw call.failure ?? new Error('the protocol SDK refused a checked request', { cause: answer.error });
  }
  return { kind: 'result', body: answer };
}

export { usableId };

/** What a request without a version means. */
function implied(method: string, { versions, missingVersion }: A2AOptions): Dialect {
  if (missingVersion === 'sniff' && versions.includes('1.0') && methodOf(method, '1.0')) return '1.0';
  if (!versions.includes('0.3')) throw unsupported(versions);
  return '0.3';
}

function isStream(answer: unknown): answer is AsyncGenerator {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

interface LegacyEvent {
  readonly result?: { readonly kind?: string; readonly status?: { readonly state?: string } };
}

/** The SDK calls only terminal statuses final; ours end a stream at an interrupted one as well. */
async function* withFinal(events: AsyncGenerator): AsyncGenerator {
  for await (const event of events) {
    const { result } = event as LegacyEvent;
    const state = result?.status?.state;
    const isLast = result?.kind === 'status-update' && (state === 'input-required' || state === 'auth-required');
    yield isLast ? { ...(event as LegacyEvent), result: { ...result, final: true } } : event;
  }
}
