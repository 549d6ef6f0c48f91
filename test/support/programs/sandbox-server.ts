/** A sandbox in a process of its own, to be killed. Prints its address. Usage: sandbox-server FOLDER [PORT] */
import { startSandbox } from '../../../src/sandbox/index.js';

const [folder = '', port = '0'] = process.argv.slice(2);
const sandbox = await startSandbox({ port: Number(port), dataDir: folder });
process.stdout.write(`${sandbox.restUrl}\n`);
