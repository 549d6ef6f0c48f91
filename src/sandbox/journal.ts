import { mkdirSync } from 'node:fs';
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { GatewayError } from '../base/errors.js';
import type { Journal } from './platform.js';
import { apply, factsOf, momentOf, type Fact } from './world/facts.js';
import type { World } from './world/world.js';

const JOURNAL = 'journal.jsonl';
const NEW_JOURNAL = 'journal.new';
/** A journal is rewritten as the shortest history once it has grown by this much, and to twice its size at least. */
const REWRITE_AFTER_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
/** Keys stand in it. */
const OWNER_ONLY = 0o600;

/**
 * Opens a folder that keeps the world, and reads what it holds into `world`.
 *
 * One line of JSON a command, written before the command is answered: it survives the death of the process at any
 * moment (not of the machine). A line that was cut short by a death is dropped with its command, which nobody was told
 * of. The folder has one owner at a time, by the kernel's lock.
 *
 * @throws {GatewayError} `SANDBOX_DATA`
 */
export async function openJournal(folder: string, world: World): Promise<Journal> {
  let lock: ClassicLevel | null = null;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    lock = new ClassicLevel(join(folder, 'lock'));
    await lock.open();
    rmSync(join(folder, NEW_JOURNAL), { force: true });
    return new FileJournal(folder, world, lock);
  } catch (error) {
    await lock?.close().catch(() => undefined);
    throw new GatewayError('SANDBOX_DATA', { cause: error, details: { folder } });
  }
}

class FileJournal implements Journal {
  readonly #folder: string;
  readonly #lock: ClassicLevel;
  #file: number;
  #size: number;
  #rewrittenSize: number;

  constructor(folder: string, world: World, lock: ClassicLevel) {
    this.#folder = folder;
    this.#lock = lock;
    const path = join(folder, JOURNAL);
    this.#file = openSync(path, existsSync(path) ? 'r+' : 'w+', OWNER_ONLY);
    this.#size = replay(this.#file, world);
    ftruncateSync(this.#file, this.#size);
    this.#rewrittenSize = this.#size;
  }

  append(facts: readonly Fact[], world: World): void {
    this.#write(`${JSON.stringify(facts)}\n`);
    if (this.#size > this.#rewrittenSize * 2 && this.#size > this.#rewrittenSize + REWRITE_AFTER_BYTES) {
      this.#rewrite(world);
    }
  }

  /** Starts from nothing: what a reset wants. */
  clear(): void {
    ftruncateSync(this.#file, 0);
    this.#size = 0;
    this.#rewrittenSize = 0;
  }

  async close(): Promise<void> {
    fsyncSync(this.#file);
    closeSync(this.#file);
    await this.#lock.close();
  }

  #write(text: string): void {
    const bytes = Buffer.from(text);
    let written = 0;
    while (written < bytes.length) {
      written += writeSync(this.#file, bytes, written, bytes.length - written, this.#size + written);
    }
    this.#size += bytes.length;
  }

  /** The new file is complete and on disk before it takes the old one's name. */
  #rewrite(world: World): void {
    const path = join(this.#folder, NEW_JOURNAL);
    const old = this.#file;
    this.#file = openSync(path, 'w+', OWNER_ONLY);
    this.#size = 0;
    let lines: string[] = [];
    let waiting = 0;
    const flush = () => {
      if (lines.length > 0) this.#write(lines.join(''));
      lines = [];
      waiting = 0;
    };
    for (const fact of factsOf(world)) {
      const line = `${JSON.stringify([fact])}\n`;
      lines.push(line);
      waiting += line.length;
      if (waiting > CHUNK_BYTES) flush();
    }
    flush();
    fsyncSync(this.#file);
    renameSync(path, join(this.#folder, JOURNAL));
    closeSync(old);
    this.#rewrittenSize = this.#size;
  }
}

/** Makes every fact of the file true. @returns the length of its whole lines */
function replay(file: number, world: World): number {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let rest = Buffer.alloc(0);
  let whole = 0;
  for (let at = 0; ;) {
    const read = readSync(file, chunk, 0, chunk.length, at);
    if (read === 0) return whole;
    at += read;
    let bytes = Buffer.concat([rest, chunk.subarray(0, read)]);
    for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE)) {
      for (const fact of JSON.parse(bytes.toString('utf8', 0, end)) as Fact[]) {
        apply(world, fact);
        const moment = momentOf(fact);
        if (moment !== null) world.timeline.passed(moment);
      }
      whole += end + 1;
      bytes = bytes.subarray(end + 1);
    }
    rest = bytes;
  }
}
