const BITS_PER_ID = 16;
const PROBES = 7;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * Says of an id that it was certainly never added, or that it may have been: a Bloom filter of two bytes an id. Within
 * its capacity about one id in a thousand is suspected wrongly.
 */
export class IdFilter {
  readonly #bits: Uint32Array;
  readonly #mask: number;

  /** @param capacity - ids it is made for; more make it suspect more */
  constructor(capacity: number) {
    const bits = 2 ** Math.ceil(Math.log2(Math.max(1, capacity) * BITS_PER_ID));
    this.#bits = new Uint32Array(Math.ceil(bits / 32));
    this.#mask = bits - 1;
  }

  /** @returns true for an id that was certainly not added before */
  add(id: string): boolean {
    const step = stepOf(id);
    let bit = hash(id, FNV_OFFSET);
    let isNew = false;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const at = (bit & this.#mask) >>> 0;
      const word = this.#bits[at >>> 5] ?? 0;
      const flag = 1 << (at & 31);
      if ((word & flag) === 0) {
        isNew = true;
        this.#bits[at >>> 5] = word | flag;
      }
      bit = (bit + step) | 0;
    }
    return isNew;
  }

  mayHave(id: string): boolean {
    const step = stepOf(id);
    let bit = hash(id, FNV_OFFSET);
    for (let probe = 0; probe < PROBES; probe += 1) {
      const at = (bit & this.#mask) >>> 0;
      if (((this.#bits[at >>> 5] ?? 0) & (1 << (at & 31))) === 0) return false;
      bit = (bit + step) | 0;
    }
    return true;
  }
}

// Odd, so that the probes of one id differ.
const stepOf = (id: string): number => hash(id, FNV_PRIME) | 1;

/** FNV-1a with its bits mixed once more, since ids often differ in their last characters alone. */
function hash(text: string, seed: number): number {
  let value = seed;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), FNV_PRIME);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  value = Math.imul(value ^ (value >>> 12), 0x297a2d39);
  return value ^ (value >>> 15);
}
