import type { RestFault } from '../options.js';

/** Faults that wait for the REST calls they are meant for. */
export class RestFaults {
  #waiting: { fault: RestFault; path: RegExp; skip: number; left: number }[] = [];

  add(fault: RestFault): void {
    const path = (fault.path ?? '/api/v1/*').split('*').map(escapeRegExp).join('.*');
    this.#waiting.push({ fault, path: new RegExp(`^${path}$`), skip: fault.skip ?? 0, left: fault.times ?? 1 });
  }

  clear(): void {
    this.#waiting = [];
  }

  /** The first fault meant for this call, which is used up by it. */
  meet(method: string, path: string, callerId: string | null): RestFault | null {
    for (const entry of this.#waiting) {
      const { fault } = entry;
      if (fault.method !== undefined && fault.method.toUpperCase() !== method) continue;
      if (fault.callerId !== undefined && fault.callerId !== callerId) continue;
      if (!entry.path.test(path)) continue;
      if (entry.skip > 0) {
        entry.skip -= 1;
        continue;
      }
      entry.left -= 1;
      if (entry.left <= 0) this.#waiting = this.#waiting.filter((other) => other !== entry);
      return fault;
    }
    return null;
  }
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
