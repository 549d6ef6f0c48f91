/**
 * Environment values by name in any case. Of several spellings the upper-case one wins, then the lower-case one, then
 * the first in sorted order; an empty value counts as unset.
 *
 * @param env - read once, now
 * @returns looks up a name given in upper case
 */
export function caselessEnv(env: NodeJS.ProcessEnv): (name: string) => string | undefined {
  const spellings = new Map<string, string[]>();
  for (const [spelling, value] of Object.entries(env)) {
    if (value === undefined || value === '') continue;
    const name = spelling.toUpperCase();
    const known = spellings.get(name);
    if (known) known.push(spelling);
    else spellings.set(name, [spelling]);
  }
  return (name) => {
    const known = spellings.get(name);
    if (!known) return undefined;
    const chosen = [name, name.toLowerCase()].find((spelling) => known.includes(spelling)) ?? known.sort()[0];
    return chosen === undefined ? undefined : env[chosen];
  };
}
