/** One measured value. A ratio has the unit `×` and is made inside one run. */
export interface FigureRow {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** What the project aims at, e.g. `≥ 0.5`. */
  readonly aim?: string;
}

/** What a bench module's `run` answers. */
export interface Figure {
  readonly figure: string;
  readonly rows: readonly FigureRow[];
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Runs two measurements turn by turn, so that both meet the same machine, and gives the median of each. */
export async function interleaved(
  rounds: number,
  first: () => Promise<number>,
  second: () => Promise<number>,
): Promise<[number, number]> {
  const firsts: number[] = [];
  const seconds: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    firsts.push(await first());
    seconds.push(await second());
  }
  return [median(firsts), median(seconds)];
}
