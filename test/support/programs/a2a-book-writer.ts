/**
 * Writes tasks into a LevelDB folder as fast as it can, a line with the task's id on stdout for each step that is on
 * disk, until it is killed. Usage: a2a-book-writer FOLDER
 */
import { TaskBook } from '../../../bridges/a2a/engine/book.js';
import { recordKeys } from '../../../bridges/a2a/engine/records.js';
import { openLevelStore } from '../../../src/store/leveldb.js';
import { newTask, remarkOn } from '../a2a/task-rows.js';

const [folder = ''] = process.argv.slice(2);
const book = new TaskBook(await openLevelStore({ folder }), recordKeys('a2a/x/'), () => undefined);
const writer = async (lane: number): Promise<never> => {
  for (let n = 0; ; n += 1) {
    const { row, events } = newTask(`${lane}-${n}`);
    await book.create(row, events, []);
    process.stdout.write(`${row.id} 1\n`);
    for (let step = 2; step <= 5; step += 1) {
      await book.change(row.id, (task) => remarkOn(task, 'x'.repeat(2_000)));
      process.stdout.write(`${row.id} ${step}\n`);
    }
  }
};
await Promise.all(Array.from({ length: 8 }, (_, lane) => writer(lane)));
