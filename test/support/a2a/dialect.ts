/** Spellings that only one of the two dialects has, looked for where the protocol puts them. */
const ONLY_LEGACY = {
  kinds: new Set(['task', 'message', 'status-update', 'artifact-update', 'text', 'file', 'data']),
  words: /^(?:submitted|working|completed|canceled|failed|rejected|input-required|auth-required|user|agent)$/,
};
const ONLY_CURRENT = /^(?:TASK_STATE|ROLE)_/;

/** What an answer says in the other dialect's spelling; empty when it keeps to its own. Error details are neutral. */
export function mixedSpellings(value: unknown, dialect: '1.0' | '0.3', path = '$'): string[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => mixedSpellings(item, dialect, `${path}[${at}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const here = `${path}.${key}`;
    // Content and metadata are the peer's or the client's own words.
    if (key === 'error' || key === 'metadata' || key === 'data' || key === 'text') return [];
    if (typeof item === 'string' && (key === 'state' || key === 'role')) {
      const isForeign = dialect === '1.0' ? ONLY_LEGACY.words.test(item) : ONLY_CURRENT.test(item);
      return isForeign ? [here] : [];
    }
    if (dialect === '1.0' && key === 'kind' && typeof item === 'string' && ONLY_LEGACY.kinds.has(item)) return [here];
    if (dialect === '0.3' && (key === 'statusUpdate' || key === 'artifactUpdate')) return [here];
    return mixedSpellings(item, dialect, here);
  });
}
