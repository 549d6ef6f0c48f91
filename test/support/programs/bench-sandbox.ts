/** A sandbox in memory, in a process of its own, for benches. Says `{ restUrl, wsUrl }` once it listens. */
import { startSandbox } from '../../../src/sandbox/index.js';

const sandbox = await startSandbox({ port: 0 });
process.send?.({ restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl });
process.on('disconnect', () => process.exit(0));
