import { describe, expect, it } from 'vitest';
import { AgentConfig } from '../../src/runtime/agent-config.js';

describe('AgentConfig', () => {
  it('R-089 subscribes, guards the host and supersedes by default', () => {
    const defaults = {
      autoSubscribeExistingRooms: true,
      singleInstance: true,
      conflictPolicy: 'supersede',
    };
    expect(new AgentConfig()).toEqual(expect.objectContaining(defaults));
    expect(new AgentConfig({ singleInstance: undefined })).toEqual(expect.objectContaining(defaults));
  });

  it('keeps what is given, and cannot be changed', () => {
    const config = new AgentConfig({
      autoSubscribeExistingRooms: false,
      singleInstance: false,
      conflictPolicy: 'reject',
    });
    expect(config).toMatchObject({
      autoSubscribeExistingRooms: false,
      singleInstance: false,
      conflictPolicy: 'reject',
    });
    expect(Object.isFrozen(config)).toBe(true);
  });
});
