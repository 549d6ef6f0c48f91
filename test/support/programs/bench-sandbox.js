/** A sandbox of the built package in memory, in a process of its own, for benches. Says `{ restUrl, wsUrl }` once it listens. */
import { startSandbox } from 'band-gateway/testing';

const sandbox = await startSandbox({ port: 0 });
process.send({ restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl });
process.on('disconnect', () => process.exit(0));
