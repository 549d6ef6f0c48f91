/** What the platform counts as content; spaces, controls, formatting and lone combining marks are none. */
const VISIBLE = /[\p{L}\p{N}\p{P}\p{S}]/u;

/** True when at least one character can be seen. */
export function isVisible(text: string): boolean {
  return VISIBLE.test(text);
}

/** Code points in a text: what the platform's limits count. */
export function charactersIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count += 1;
  return count;
}

/** How deep JSON nests; 0 for a plain value. Stops counting past `limit`, and never recurses. */
export function nestingOf(value: unknown, limit: number): number {
  let depth = 0;
  let level: unknown[] = [value];
  while (level.length > 0 && depth <= limit) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const inner of Object.values(item)) if (typeof inner === 'object' && inner !== null) next.push(inner);
    }
    level = next;
    depth += 1;
  }
  return depth;
}
