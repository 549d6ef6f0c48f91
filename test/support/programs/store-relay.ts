/**
 * A small gateway for the kill tests: accepts messages into an inbox, hands each to an outbox in the batch that ends
 * it, and "sends" by appending a line to a file. `KILL_AT=n` ends the process with SIGKILL at its n-th step, a step
 * being the moment before or after a batch or a send. Usage: store-relay FOLDER COUNT
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger } from '../../../src/base/log.js';
import { DurableQueue } from '../../../src/store/durable-queue.js';
import { Inbox } from '../../../src/store/inbox.js';
import { openLevelStore } from '../../../src/store/leveldb.js';
import { startOutbox } from '../../../src/store/outbox.js';
import type { StateStore } from '../../../src/store/port.js';

const [folder = '', count = '0'] = process.argv.slice(2);
const killAt = Number(process.env['KILL_AT'] ?? Infinity);

let steps = 0;
const step = (): void => {
  steps += 1;
  if (steps === killAt) process.kill(process.pid, 'SIGKILL');
};
const append = (file: string, line: string): void => {
  const handle = openSync(join(folder, file), 'a');
  writeSync(handle, `${line}\n`);
  fsyncSync(handle);
  closeSync(handle);
};
const lines = (file: string): string[] =>
  existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean) : [];

const level = await openLevelStore({ folder: join(folder, 'store') });
const store: StateStore = {
  ...level,
  async batch(changes) {
    step();
    const revision = await level.batch(changes);
    step();
    return revision;
  },
};
const options = { store, bodySchema: z.string(), clock: systemClock, log: silentLogger };
const inbox = await Inbox.open<string>({ ...options, prefix: 'inbox', seenRetentionMs: 3_600_000 });
const outbox = await DurableQueue.open<string>({ ...options, prefix: 'outbox' });

startOutbox<string, string>(outbox, {
  find: async ({ id }) => (lines('sent').includes(id) ? id : null),
  write: async ({ id }) => {
    step();
    append('sent', id);
    step();
    return id;
  },
});
inbox.queue.start(async ({ id, lane, body }) => {
  const staged = outbox.stage({ id, lane, body });
  return staged
    ? {
        kind: 'done',
        changes: staged.changes,
        committed: () => {
          staged.committed();
        },
      }
    : { kind: 'done' };
});

// The sender repeats everything that it was not told was taken, and one that it was.
for (let i = 0; i < Number(count); i += 1) {
  const id = `m${i}`;
  if (lines('told').includes(id) && i % 2 === 0) continue;
  await inbox.accept({ id, lane: `lane ${i % 2}`, body: id });
  append('told', id);
}
await inbox.queue.drained();
await outbox.drained();
await store.close();
console.log(String(steps));
