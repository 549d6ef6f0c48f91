import type { IncomingMessage, ServerResponse } from 'node:http';
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('band-gateway');

/**
 * Runs `answer` inside a server span that continues the caller's W3C trace context, so that calls made from it carry
 * the context on. Without an OpenTelemetry SDK in the process this does nothing.
 *
 * @param route - the mount the request belongs to, never its full path
 */
export function traced(request: IncomingMessage, response: ServerResponse, route: string, answer: () => void): void {
  const parent = propagation.extract(context.active(), request.headers);
  const span = tracer.startSpan(
    `${request.method ?? 'GET'} ${route}`,
    { kind: SpanKind.SERVER, attributes: { 'http.request.method': request.method ?? 'GET', 'http.route': route } },
    parent,
  );
  if (!span.isRecording()) {
    context.with(trace.setSpan(parent, span), answer);
    return;
  }
  response.once('close', () => {
    span.setAttribute('http.response.status_code', response.statusCode);
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  context.with(trace.setSpan(parent, span), answer);
}
