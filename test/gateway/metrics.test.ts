import { expect, it } from 'vitest';
import { createPromMetrics } from '../../src/gateway/metrics.js';

const create = () => createPromMetrics({ processFigures: false });

it('asking twice for one name gives the same instrument', async () => {
  const metrics = create();
  metrics.counter('band_x_total', 'X.', ['kind']).inc({ kind: 'a' });
  metrics.counter('band_x_total', 'X.', ['kind']).inc({ kind: 'a' }, 2);
  expect(await metrics.text()).toContain('band_x_total{kind="a"} 3');
});

it('counts label sets over the limit together, so that no caller can grow the registry without end', async () => {
  const metrics = create();
  const counter = metrics.counter('band_x_total', 'X.', ['id']);
  for (let i = 0; i < 2_000; i += 1) counter.inc({ id: String(i) });
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('band_x_total{'));
  expect(lines).toHaveLength(501);
  expect(lines).toContain('band_x_total{id="other"} 1500');
});

it('sets gauges at scrape time and keeps two registries apart', async () => {
  const metrics = create();
  let value = 1;
  const gauge = metrics.gauge('band_depth', 'D.');
  metrics.onScrape(() => {
    gauge.set({}, value);
  });
  expect(await metrics.text()).toContain('band_depth 1');
  value = 7;
  expect(await metrics.text()).toContain('band_depth 7');
  expect(await create().text()).not.toContain('band_depth');
});

it('takes the buckets of a histogram', async () => {
  const metrics = create();
  metrics.histogram('band_s', 'S.', ['m'], [0.1, 1]).observe({ m: 'x' }, 0.5);
  const text = await metrics.text();
  expect(text).toContain('band_s_bucket{le="0.1",m="x"} 0');
  expect(text).toContain('band_s_bucket{le="1",m="x"} 1');
});
