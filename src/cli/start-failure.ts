import { isGatewayError, toError } from '../base/errors.js';
import type { CliWorld, ExitCode } from './world.js';

/**
 * Says why something did not start: which port is taken and which variable moves it, or the error's own words.
 *
 * @returns 2 for wrong settings, 1 for everything that may go well the next time
 */
export function startFailure(world: CliWorld, command: string, error: unknown, sandboxPort: number): ExitCode {
  world.err(`band-gateway ${command}: ${words(error, sandboxPort)}\n`);
  return isGatewayError(error, 'CONFIG_INVALID') ? 2 : 1;
}

function words(error: unknown, sandboxPort: number): string {
  if (isGatewayError(error, 'STORE_LOCKED')) {
    const holder = `the one that holds ${String(error.details['folder'])}`;
    return `${error.message} Stop ${holder}, or give this one a folder of its own with DATA_DIR (data_dir).`;
  }
  if (!isGatewayError(error, 'PORT_IN_USE')) return toError(error).message;
  const { host, port } = error.details;
  const variable = port === sandboxPort ? 'SANDBOX_PORT' : 'PORT';
  return `Port ${String(port)} on ${String(host)} is already in use. Stop what uses it, or choose another with ${variable} (0 takes any free one).`;
}
