/** Whether one of `values` fits one of `patterns`: `*` stands for any run of characters, letter case does not count. */
export function matchesAny(patterns: readonly string[], values: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const expression = compiled(pattern);
    return values.some((value) => expression.test(value));
  });
}

function compiled(pattern: string): RegExp {
  const source = pattern
    .split('*')
    .map((literal) => literal.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
  return new RegExp(`^${source}$`, 'is');
}
