import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Labels, Metrics } from '../base/metrics.js';

/** Figures with their text form. */
export interface PromMetrics extends Metrics {
  /** The Prometheus text format; figures read at scrape time are fresh. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Called before each scrape, to set gauges. */
  onScrape(fn: () => void): void;
}

/** Label sets one instrument may have; further ones are counted together as `other`. */
const MAX_SERIES = 500;

/** A registry of its own, so that two gateways in one process do not share figures. */
export function createPromMetrics({ processFigures = true } = {}): PromMetrics {
  const registry = new Registry();
  if (processFigures) collectDefaultMetrics({ register: registry });
  const instruments = new Map<string, unknown>();
  const scrapeHooks: (() => void)[] = [];

  const once = <T>(name: string, make: () => T): T => {
    const found = instruments.get(name) as T | undefined;
    if (found !== undefined) return found;
    const made = make();
    instruments.set(name, made);
    return made;
  };
  const base = (name: string, help: string, labelNames: readonly string[] = []) => ({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
  });

  return {
    contentType: registry.contentType,
    counter: (name, help, labelNames) =>
      once(name, () => {
        const counter = new Counter(base(name, help, labelNames));
        const bound = boundSeries();
        return {
          inc(labels: Labels = {}, by = 1) {
            counter.inc(bound(labels), by);
          },
        };
      }),
    gauge: (name, help, labelNames) =>
      once(name, () => {
        const gauge = new Gauge(base(name, help, labelNames));
        const bound = boundSeries();
        return {
          set(labels: Labels, value: number) {
            gauge.set(bound(labels), value);
          },
        };
      }),
    histogram: (name, help, labelNames, buckets) =>
      once(name, () => {
        const histogram = new Histogram({ ...base(name, help, labelNames), ...(buckets && { buckets: [...buckets] }) });
        const bound = boundSeries();
        return {
          observe(labels: Labels, value: number) {
            histogram.observe(bound(labels), value);
          },
        };
      }),
    onScrape(fn) {
      scrapeHooks.push(fn);
    },
    text() {
      for (const hook of scrapeHooks) hook();
      return registry.metrics();
    },
  };
}

/** Passes label sets through until there are too many, whatever a caller puts into them. */
function boundSeries(): (labels: Labels) => Record<string, string> {
  const seen = new Set<string>();
  return (labels) => {
    const values = Object.values(labels);
    if (values.length === 0) return {};
    const key = values.join('\u0000');
    if (seen.has(key)) return labels;
    if (seen.size >= MAX_SERIES) return Object.fromEntries(Object.keys(labels).map((name) => [name, 'other']));
    seen.add(key);
    return labels;
  };
}
