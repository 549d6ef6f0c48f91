import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { asNotification, asRequest, type JsonRpcId } from './json-rpc.js';
import { faultToWire, AcpFault, type AcpReason, type WireError } from '../errors.js';

/** What a tap tells of the frames that pass, in the order they were received. */
export interface TapHandlers {
  /** `session/cancel` takes effect here, before anything that was received later is looked at. */
  onCancel(sessionId: string, seq: number): void;
}

export interface Tap {
  readonly stream: Stream;
  /** The place of an open request in the order of arrival, over all connections of this counter. */
  seqOf(requestId: JsonRpcId | undefined): number;
}

/** Numbers frames in the order of their arrival. */
export function createCounter(): () => number {
  let last = 0;
  return () => (last += 1);
}

/**
 * Stands between a transport and the SDK, which runs all handlers at once and refuses what follows an `initialize`
 * that it has not answered yet. Here frames get an order, a cancel is heard at once, frames behind an open
 * `initialize` wait for its answer, and errors that the SDK makes itself get our shape.
 */
export function tapStream(stream: Stream, next: () => number, handlers: TapHandlers): Tap {
  const open = new Map<JsonRpcId, { readonly method: string; readonly seq: number }>();
  let initialize: { readonly id: JsonRpcId; readonly answered: () => void } | null = null;
  let wait: Promise<void> | null = null;
  let release: () => void = () => undefined;

  const incoming = (message: AnyMessage): void => {
    const seq = next();
    const notification = asNotification(message);
    if (notification) {
      const sessionId = notification.method === 'session/cancel' ? sessionIdIn(notification.params) : null;
      if (sessionId !== null) handlers.onCancel(sessionId, seq);
      return;
    }
    const request = asRequest(message);
    if (!request) return;
    open.set(request.id, { method: request.method, seq });
    if (request.method !== 'initialize') return;
    wait = new Promise((resolve) => {
      release = resolve;
    });
    initialize = { id: request.id, answered: release };
  };
  const outgoing = (message: AnyMessage): AnyMessage => {
    if ('method' in message || !('id' in message)) return message;
    const request = open.get(message.id);
    open.delete(message.id);
    if (initialize?.id === message.id) {
      initialize.answered();
      initialize = null;
    }
    if (!('error' in message)) return message;
    return { ...message, error: reshape(message.error as WireError, request?.method ?? null) };
  };

  const reader = stream.readable.getReader();
  const writer = stream.writable.getWriter();
  return {
    seqOf: (requestId) => (requestId === undefined ? undefined : open.get(requestId)?.seq) ?? next(),
    stream: {
      readable: new ReadableStream<AnyMessage>(
        {
          async pull(controller) {
            if (wait) {
              await wait;
              wait = null;
            }
            const { done, value } = await reader.read();
            if (done) {
              controller.close();
              return;
            }
            incoming(value);
            controller.enqueue(value);
          },
          async cancel(reason) {
            release();
            await reader.cancel(reason);
          },
        },
        { highWaterMark: 0 },
      ),
      writable: new WritableStream<AnyMessage>({
        write: (message) => writer.write(outgoing(message)),
        close: () => writer.close(),
        abort: (reason) => writer.abort(reason),
      }),
    },
  };
}

function sessionIdIn(params: unknown): string | null {
  const id = (params as { sessionId?: unknown } | null | undefined)?.sessionId;
  return typeof id === 'string' ? id : null;
}

/** Errors of the SDK's own making carry no reason, and some of them echo what was sent. */
function reshape(error: WireError, method: string | null): WireError {
  const data: unknown = error.data;
  if (typeof data === 'object' && data !== null && 'reason' in data) return error;
  const as = (reason: AcpReason, extra: Record<string, unknown> = {}, text?: string) =>
    faultToWire(new AcpFault(reason, extra, text === undefined ? {} : { text }));
  switch (error.code) {
    case -32_700:
      return as('parse_error');
    case -32_600:
      return error.message.includes('must be initialized') ? as('not_initialized') : as('invalid_request');
    case -32_601:
      return as('unknown_method', method === null ? {} : { method });
    case -32_602:
      return isAbout(data, 'cwd') ? as('invalid_cwd') : as('invalid_params', { issues: fieldsOf(data) });
    case -32_002:
      return { ...error, data: { reason: 'unknown_session', retryable: false, ...(data as object) } };
    case -32_800:
      return as('request_cancelled');
    default:
      return as('internal');
  }
}

function isAbout(report: unknown, field: string): boolean {
  return typeof report === 'object' && report !== null && field in report;
}

/** The fields that a schema report complains about, without their values. */
function fieldsOf(report: unknown): string[] {
  return typeof report === 'object' && report !== null ? Object.keys(report).filter((key) => key !== '_errors') : [];
}
