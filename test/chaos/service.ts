import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import type { DevMessage, Sandbox } from '../../src/sandbox/index.js';
import { openService, type RunningService, type ServiceSettings } from '../support/whole-service.js';

export * from '../support/whole-service.js';

/** Starts and does not wait until it is ready; stopped when the test has finished. */
export async function startService(settings: ServiceSettings): Promise<RunningService> {
  const service = await openService(settings);
  onTestFinished(() => service.stop());
  return service;
}

/** A sandbox with `demo/echo` and `demo/dice` in it, gone when the test has finished. */
export async function demoWorld(): Promise<Demo> {
  const demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
  onTestFinished(() => demo.stop());
  return demo;
}

/** Texts that an agent wrote into rooms, oldest first in each room. */
export function textsOf(sandbox: Sandbox, senderId: string): DevMessage[] {
  return sandbox.dev
    .state()
    .rooms.flatMap(({ messages }) => messages)
    .filter((message) => message.senderId === senderId && message.messageType === 'text');
}
