/** Label values come from fixed sets, never from ids or text. */
export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  inc(labels?: Labels, by?: number): void;
}
export interface Gauge {
  set(labels: Labels, value: number): void;
}
export interface Histogram {
  observe(labels: Labels, value: number): void;
}

/**
 * Where figures go. Names are full Prometheus names (`band_slack_events_total`); asking twice for one name gives the
 * same instrument.
 */
export interface Metrics {
  counter(name: string, help: string, labelNames?: readonly string[]): Counter;
  gauge(name: string, help: string, labelNames?: readonly string[]): Gauge;
  histogram(name: string, help: string, labelNames?: readonly string[], buckets?: readonly number[]): Histogram;
}

const nothing = () => undefined;

/** Counts nothing, at no cost. */
export const noMetrics: Metrics = {
  counter: () => ({ inc: nothing }),
  gauge: () => ({ set: nothing }),
  histogram: () => ({ observe: nothing }),
};
