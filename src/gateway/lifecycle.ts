import { toError } from '../base/errors.js';

/** A part of the service with a beginning and an end. */
export interface Lifecycle {
  /** For messages about this part. */
  readonly name: string;
  start(): Promise<void>;
  /** Safe to call once after `start`, whether or not that succeeded. */
  stop(): Promise<void>;
}

/**
 * Starts parts left to right and stops them right to left. A part that does not start takes down those before it, and
 * its error is thrown. A part that does not stop keeps none of the others from stopping.
 */
export function inOrder(name: string, parts: readonly Lifecycle[]): Lifecycle {
  const started: Lifecycle[] = [];

  const stopAll = async (): Promise<unknown[]> => {
    const failures: unknown[] = [];
    for (let part = started.pop(); part; part = started.pop()) {
      try {
        await part.stop();
      } catch (error) {
        failures.push(error);
      }
    }
    return failures;
  };

  return {
    name,
    async start() {
      for (const part of parts) {
        started.push(part);
        try {
          await part.start();
        } catch (error) {
          const failures = await stopAll();
          if (failures.length > 0) throw new AggregateError([error, ...failures], toError(error).message);
          throw error;
        }
      }
    },
    async stop() {
      const failures = await stopAll();
      if (failures.length > 0) throw new AggregateError(failures, `${name} did not stop cleanly`);
    },
  };
}
