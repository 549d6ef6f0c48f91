// Surrogates sort after U+E000..U+FFFF in UTF-8 but before them in UTF-16: moving both ranges makes the orders agree.
const SURROGATES_FROM = 0xd800;
const PRIVATE_FROM = 0xe000;

const rank = (unit: number): number => {
  if (unit < SURROGATES_FROM) return unit;
  return unit < PRIVATE_FROM ? unit + 0x2000 : unit - 0x800;
};

/** Orders two keys as their UTF-8 bytes would. */
export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i += 1) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}
