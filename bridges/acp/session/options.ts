import type { SessionConfigOption, SessionMode, SessionModeState } from '@agentclientprotocol/sdk';
import { AcpFault } from '../errors.js';
import { isAgent, type Person } from '../roster.js';
import type { AcpOptions } from '../settings.js';

export const MODE_OPTION = 'mode';
export const TARGET_OPTION = 'target';
export const TARGET_AUTO = 'auto';
export const TARGET_ALL = 'all';

const DEFAULT_MODE: SessionMode = { id: 'default', name: 'Default' };

/** What the person may choose for a session. */
export interface Choices {
  readonly modeId: string;
  /** `auto`, `all` or a handle. */
  readonly target: string;
}

export function availableModes(options: Pick<AcpOptions, 'modes'>): SessionMode[] {
  if (options.modes.length === 0) return [DEFAULT_MODE];
  return options.modes.map(({ id, name }) => ({ id, name: name ?? id.charAt(0).toUpperCase() + id.slice(1) }));
}

export function firstChoices(options: Pick<AcpOptions, 'modes'>): Choices {
  return { modeId: availableModes(options)[0]?.id ?? DEFAULT_MODE.id, target: TARGET_AUTO };
}

/** Choices as kept in a marker; a mode that is no longer offered falls back to the first one. */
export function restoredChoices(
  options: Pick<AcpOptions, 'modes'>,
  kept: { readonly mode: string | null; readonly target: string | null },
): Choices {
  const first = firstChoices(options);
  const isOffered = availableModes(options).some(({ id }) => id === kept.mode);
  return { modeId: isOffered && kept.mode !== null ? kept.mode : first.modeId, target: kept.target ?? first.target };
}

export function modeState(options: Pick<AcpOptions, 'modes'>, choices: Choices): SessionModeState {
  return { currentModeId: choices.modeId, availableModes: availableModes(options) };
}

/** Mode and target as options; some editors show only these. Always the whole list. */
export function configOptions(
  options: Pick<AcpOptions, 'modes'>,
  choices: Choices,
  people: readonly Person[],
): SessionConfigOption[] {
  const targets = [
    { value: TARGET_AUTO, name: 'Automatic' },
    { value: TARGET_ALL, name: 'Everyone in the room' },
    ...people.filter(isAgent).flatMap(({ handle, name }) => (handle === null ? [] : [{ value: handle, name }])),
  ];
  // A chosen peer stays choosable after it has left: the value must be one of the list.
  if (!targets.some(({ value }) => value === choices.target))
    targets.push({ value: choices.target, name: choices.target });
  return [
    {
      id: MODE_OPTION,
      name: 'Mode',
      category: 'mode',
      type: 'select',
      currentValue: choices.modeId,
      options: availableModes(options).map(({ id, name }) => ({ value: id, name })),
    },
    {
      id: TARGET_OPTION,
      name: 'Send to',
      category: '_band_target',
      type: 'select',
      currentValue: choices.target,
      options: targets,
    },
  ];
}

/** @throws {AcpFault} `unknown_mode` */
export function withMode(options: Pick<AcpOptions, 'modes'>, choices: Choices, modeId: string): Choices {
  if (!availableModes(options).some(({ id }) => id === modeId)) throw new AcpFault('unknown_mode', { modeId });
  return { ...choices, modeId };
}

/** @throws {AcpFault} `unknown_option`, `invalid_value` */
export function withOption(
  options: Pick<AcpOptions, 'modes'>,
  choices: Choices,
  people: readonly Person[],
  change: { readonly configId: string; readonly value: unknown },
): Choices {
  const option = configOptions(options, choices, people).find(({ id }) => id === change.configId);
  if (option?.type !== 'select') throw new AcpFault('unknown_option', { configId: change.configId });
  const { value } = change;
  const isOffered = option.options.some((one) => 'value' in one && one.value === value);
  if (typeof value !== 'string' || !isOffered) throw new AcpFault('invalid_value', { configId: change.configId });
  return change.configId === MODE_OPTION ? { ...choices, modeId: value } : { ...choices, target: value };
}
