export { startSandbox } from './sandbox.js';
export type {
  DevMessage,
  DevRoom,
  DevSocket,
  DevState,
  NewAgent,
  NewUser,
  PushFault,
  RestFault,
  Sandbox,
  SandboxDev,
  SandboxLimits,
  SandboxOptions,
  SandboxSwitches,
  Seed,
  SeedAgent,
  SeedUser,
  UpgradeFault,
} from './options.js';
export { dice, echo, type DemoSelf, type DemoStep } from './demo-agents.js';
export { DEMO, DEMO_SEED, EMPTY_SEED } from './seed.js';
export { readSeed } from './seed-file.js';
