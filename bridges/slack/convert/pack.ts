/** A piece of a text that is never cut. Pieces of one container (a fence, a list, a table) can be told apart. */
export interface Unit {
  readonly text: string;
  /** What stands between this piece and the one before it, when both are in one part. */
  readonly glue: string;
  /** Put before the piece when it begins a part in the middle of its container, e.g. a fence's first line. */
  readonly open?: string;
  /** Put after the last piece of the container in a part, e.g. a fence's last line. */
  readonly close?: string;
  /** Pieces with the same one belong together; null stands alone. */
  readonly container: number | null;
  /** Replaces `text` where the piece begins a part. */
  readonly first?: string;
  /** Put after the piece where it ends a part. */
  readonly last?: string;
  /** Blocks that Slack makes of it beyond the one it is sent in. */
  readonly extraBlocks: number;
  readonly tables: number;
  /** A table that this piece is a row of, with the rows a part may hold of it. */
  readonly rows?: number;
}

export interface Part {
  readonly text: string;
}

export interface PackLimits {
  readonly chars: number;
  readonly blocks: number;
  readonly tables: number;
  readonly measure: (text: string) => number;
  /** Stops after this many parts; the rest is left out. */
  readonly most: number;
}

interface Open {
  units: Unit[];
  chars: number;
  blocks: number;
  tables: number;
  rows: number;
}

const emptyPart = (): Open => ({ units: [], chars: 0, blocks: 1, tables: 0, rows: 0 });

/** Fills parts with pieces in order. A table that needs a part of its own takes the text before it along. */
export function packUnits(units: readonly Unit[], limits: PackLimits): Part[] {
  const parts: Part[] = [];
  let part = emptyPart();
  const close = () => {
    const text = assemble(part.units);
    if (text.trim() !== '') parts.push({ text });
    part = emptyPart();
  };
  for (const unit of units) {
    if (parts.length >= limits.most) break;
    if (part.units.length > 0 && !fits(part, unit, limits)) {
      const carried = carryAlong(part, unit);
      close();
      for (const earlier of carried) add(part, earlier, limits);
      if (part.units.length > 0 && !fits(part, unit, limits)) close();
    }
    add(part, unit, limits);
  }
  if (parts.length < limits.most) close();
  return parts;
}

function cost(part: Open, unit: Unit, measure: (text: string) => number): number {
  const last = part.units.at(-1);
  const closing = (unit.close?.length ?? 0) + (unit.last?.length ?? 0);
  if (!last) return measure((unit.open ?? '') + (unit.first ?? unit.text)) + closing;
  const continues = unit.container !== null && unit.container === last.container;
  if (continues) return measure(unit.text) + unit.glue.length;
  return measure(unit.text) + unit.glue.length + (unit.open?.length ?? 0) + closing;
}

function fits(part: Open, unit: Unit, limits: PackLimits): boolean {
  const last = part.units.at(-1);
  const continues = unit.container !== null && unit.container === last?.container;
  if (part.chars + cost(part, unit, limits.measure) > limits.chars) return false;
  if (continues) return unit.rows === undefined || part.rows + 1 <= unit.rows;
  return part.blocks + unit.extraBlocks <= limits.blocks && part.tables + unit.tables <= limits.tables;
}

function add(part: Open, unit: Unit, limits: PackLimits): void {
  const last = part.units.at(-1);
  const continues = unit.container !== null && unit.container === last?.container;
  part.chars += cost(part, unit, limits.measure);
  part.units.push(unit);
  if (continues) part.rows += 1;
  else {
    part.blocks += unit.extraBlocks;
    part.tables += unit.tables;
    part.rows = 1;
  }
}

/** Text that introduces a table goes with it: everything since the table before. Taken out of `part`. */
function carryAlong(part: Open, unit: Unit): Unit[] {
  const continues = unit.container !== null && unit.container === part.units.at(-1)?.container;
  if (unit.tables === 0 || continues || part.tables === 0) return [];
  const lastTable = part.units.findLastIndex((earlier) => earlier.tables > 0);
  return part.units.splice(lastTable + 1);
}

function assemble(units: readonly Unit[]): string {
  let out = '';
  for (const [index, unit] of units.entries()) {
    const before = units[index - 1];
    const after = units[index + 1];
    const continues = before !== undefined && unit.container !== null && unit.container === before.container;
    if (before) out += unit.glue;
    if (!continues) out += unit.open ?? '';
    out += before ? unit.text : (unit.first ?? unit.text);
    if (unit.container === null || after?.container !== unit.container) out += unit.close ?? '';
    if (!after) out += unit.last ?? '';
  }
  return out.replace(/^\n+/, '').trimEnd();
}
