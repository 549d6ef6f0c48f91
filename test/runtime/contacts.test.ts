import { describe, expect, it } from 'vitest';
import { ValueError } from '../../src/base/band-errors.js';
import { ContactEventConfig, ContactEventStrategy } from '../../src/runtime/contacts.js';

const UUID = '12345678-1234-5678-1234-567812345678';

describe('ContactEventConfig', () => {
  it('R-130 is disabled and empty unless said otherwise', () => {
    expect(new ContactEventConfig()).toMatchObject({
      strategy: 'disabled',
      hubTaskId: null,
      onEvent: null,
      broadcastChanges: false,
    });
    expect(new ContactEventConfig({ strategy: undefined, hubTaskId: undefined })).toMatchObject({
      strategy: 'disabled',
      hubTaskId: null,
    });
    expect(Object.isFrozen(new ContactEventConfig())).toBe(true);
  });

  it('R-131 the callback strategy without a callback is refused, before anything else is looked at', () => {
    const callback = ContactEventStrategy.CALLBACK;
    for (const init of [
      { strategy: callback },
      { strategy: callback, hubTaskId: 'x' },
      { strategy: callback, onEvent: null },
    ]) {
      expect(() => new ContactEventConfig(init)).toThrow(ValueError);
      expect(() => new ContactEventConfig(init)).toThrow('CALLBACK strategy requires on_event callback');
    }
    const onEvent = () => undefined;
    expect(new ContactEventConfig({ strategy: callback, onEvent }).onEvent).toBe(onEvent);
  });

  it.each(Object.values(ContactEventStrategy))('R-132 with %s a task id that is no UUID is refused', (strategy) => {
    const init = { strategy, hubTaskId: 'task-7', onEvent: () => undefined };
    expect(() => new ContactEventConfig(init)).toThrow(ValueError);
    expect(() => new ContactEventConfig(init)).toThrow("hub_task_id must be a UUID, got 'task-7'");
  });

  it('R-133 an empty task id is refused and shown as empty', () => {
    expect(() => new ContactEventConfig({ hubTaskId: '' })).toThrow("hub_task_id must be a UUID, got ''");
  });

  it.each([UUID, UUID.toUpperCase(), UUID.replaceAll('-', ''), `{${UUID}}`, `urn:uuid:${UUID}`, `URN:UUID:${UUID}`])(
    'R-132 %s is a UUID',
    (hubTaskId) => {
      expect(new ContactEventConfig({ hubTaskId }).hubTaskId).toBe(hubTaskId);
    },
  );

  it.each([`${UUID}0`, UUID.slice(1), `{${UUID}`, `${UUID}}`, ` ${UUID}`, UUID.replace('1', 'g')])(
    'R-132 %j is no UUID',
    (hubTaskId) => {
      expect(() => new ContactEventConfig({ hubTaskId })).toThrow(`got '${hubTaskId}'`);
    },
  );

  it('an unknown strategy is refused', () => {
    expect(() => new ContactEventConfig({ strategy: 'sometimes' as never })).toThrow(ValueError);
  });
});
