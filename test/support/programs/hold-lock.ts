// Holds an agent's single-instance lock until it is killed: `hold-lock.ts <agentId> <folder>`.
import { createInstanceLock } from '../../../src/runtime/instance-lock.js';

const [agentId = '', folder = ''] = process.argv.slice(2);
try {
  await createInstanceLock(agentId, folder).claim();
  process.stdout.write('held\n');
  setInterval(() => undefined, 1_000);
} catch (error) {
  process.stdout.write(`${(error as Error).name}: ${(error as Error).message}\n`);
}
