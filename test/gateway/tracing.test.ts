import { context, propagation, trace, type Span, type SpanContext, type TextMapPropagator } from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { noMetrics } from '../../src/base/metrics.js';
import { createHttpHost } from '../../src/gateway/http-host.js';
import { asyncContexts } from '../support/async-contexts.js';
import { HOST_OPTIONS } from '../support/http-host-options.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';

/** As much of an SDK as the service talks to: spans that remember, the W3C header, contexts that follow async work. */
function installSdk() {
  const spans: {
    name: string;
    parent: SpanContext | undefined;
    attributes: Record<string, unknown>;
    ended: boolean;
  }[] = [];
  const w3c: TextMapPropagator = {
    inject: () => undefined,
    fields: () => ['traceparent'],
    extract(into, carrier, getter) {
      const found = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(\d\d)$/.exec(String(getter.get(carrier, 'traceparent')));
      if (!found) return into;
      const [, traceId = '', spanId = ''] = found;
      return trace.setSpanContext(into, { traceId, spanId, traceFlags: 1, isRemote: true });
    },
  };
  context.setGlobalContextManager(asyncContexts());
  propagation.setGlobalPropagator(w3c);
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startActiveSpan: () => {
        throw new Error('not used');
      },
      startSpan(name, options, parentContext = context.active()) {
        const record = {
          name,
          parent: trace.getSpanContext(parentContext),
          attributes: { ...options?.attributes } as Record<string, unknown>,
          ended: false,
        };
        spans.push(record);
        const span = {
          spanContext: () => ({ traceId: record.parent?.traceId ?? TRACE_ID, spanId: '1'.repeat(16), traceFlags: 1 }),
          isRecording: () => true,
          setAttribute(key: string, value: unknown) {
            record.attributes[key] = value;
            return span;
          },
          setStatus: () => span,
          end() {
            record.ended = true;
          },
        };
        return span as unknown as Span;
      },
    }),
  });
  return spans;
}

afterEach(() => {
  context.disable();
  propagation.disable();
  trace.disable();
});

async function serve(listener: () => void) {
  const host = createHttpHost(HOST_OPTIONS, { log: silentLogger, metrics: noMetrics, clock: systemClock });
  host.mount('/agents', (_, response) => {
    listener();
    response.end('ok');
  });
  await host.start();
  return host;
}

describe('with an SDK in the process', () => {
  it('A-346 a request continues the trace of its caller, and what it does runs inside its span', async () => {
    const spans = installSdk();
    let inside: SpanContext | undefined;
    const host = await serve(() => {
      inside = trace.getSpanContext(context.active());
    });
    const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;
    await (await fetch(`${host.localUrl}/agents/secret-peer?key=secret`, { headers: { traceparent } })).text();
    await host.stop();
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({
      name: 'GET /agents',
      parent: { traceId: TRACE_ID, spanId: PARENT_ID },
      attributes: { 'http.route': '/agents', 'http.response.status_code': 200 },
      ended: true,
    });
    expect(inside?.traceId).toBe(TRACE_ID);
    expect(JSON.stringify(spans)).not.toContain('secret');
  });
});

describe('without an SDK', () => {
  it('a request is answered as it is', async () => {
    let active = true;
    const host = await serve(() => {
      active = trace.getSpan(context.active())?.isRecording() ?? false;
    });
    expect(await (await fetch(`${host.localUrl}/agents/x`, { headers: { traceparent: 'garbage' } })).text()).toBe('ok');
    await host.stop();
    expect(active).toBe(false);
  });
});
