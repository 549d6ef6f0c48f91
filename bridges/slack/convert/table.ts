import { displayWidth } from './text.js';

export type Alignment = 'left' | 'right' | 'center' | null;

/** Cells as plain text; the first row is the header. */
export interface PlainTable {
  readonly align: readonly Alignment[];
  readonly rows: readonly (readonly string[])[];
}

const NARROWEST_COLUMN = 3;

/** Columns the padded table takes. */
export function tableWidth(table: PlainTable): number {
  const widths = columnWidths(table);
  return widths.reduce((sum, width) => sum + width, 0) + 3 * Math.max(0, widths.length - 1);
}

/** The table as lines of monospaced text, without a fence around it. */
export function layOutTable(table: PlainTable): string[] {
  const widths = columnWidths(table);
  const [header = [], ...rows] = table.rows;
  const line = (row: readonly string[]) =>
    widths
      .map((width, column) => pad(row[column] ?? '', width, table.align[column] ?? null))
      .join(' | ')
      .trimEnd();
  return [line(header), widths.map((width) => '-'.repeat(width)).join('-+-'), ...rows.map(line)];
}

function columnWidths({ rows }: PlainTable): number[] {
  const columns = rows[0]?.length ?? 0;
  return Array.from({ length: columns }, (_, column) =>
    rows.reduce((widest, row) => Math.max(widest, displayWidth(row[column] ?? '')), NARROWEST_COLUMN),
  );
}

function pad(cell: string, width: number, align: Alignment): string {
  const room = width - displayWidth(cell);
  if (align === 'right') return ' '.repeat(room) + cell;
  const before = align === 'center' ? room >> 1 : 0;
  return ' '.repeat(before) + cell + ' '.repeat(room - before);
}
