import express from 'express';
import request from 'supertest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { createHttpHost } from '../../src/gateway/http-host.js';
import { createPromMetrics } from '../../src/gateway/metrics.js';
import { HOST_OPTIONS } from '../support/http-host-options.js';

describe('an Express application on the common HTTP server', () => {
  const start = async () => {
    const host = createHttpHost(HOST_OPTIONS, {
      log: silentLogger,
      metrics: createPromMetrics({ processFigures: false }),
      clock: systemClock,
    });
    const application = express();
    application.use('/pages', express.json());
    application.post('/pages/echo', (asked, answer) => void answer.json({ got: asked.body as unknown }));
    const unmount = host.mount('/pages', application);
    await host.start();
    host.opened();
    onTestFinished(() => host.stop());
    return { client: request(host.localUrl), unmount };
  };

  it('is served below its prefix, its body unread before it', async () => {
    const { client } = await start();
    const answer = await client.post('/pages/echo').send({ a: 1 });
    expect([answer.status, answer.body]).toEqual([200, { got: { a: 1 } }]);
  });

  it('leaves a JSON 503 behind once it was taken off: its owner may come back', async () => {
    const { client, unmount } = await start();
    unmount();
    const answer = await client.post('/pages/echo').send({ a: 1 });
    expect([answer.status, answer.type]).toEqual([503, 'application/json']);
  });
});
