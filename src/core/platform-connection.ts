import { inspect } from 'node:util';

/** Where the platform is and who this agent is there. The key does not show when printed or serialized. */
export interface PlatformConnection {
  readonly agentId: string;
  readonly apiKey: string;
  readonly restUrl: string;
  readonly wsUrl: string;
}

/** A frozen connection whose printed and serialized forms leave the key out. */
export function createPlatformConnection(parts: PlatformConnection): PlatformConnection {
  const { agentId, apiKey, restUrl, wsUrl } = parts;
  const shown = { agentId, restUrl, wsUrl };
  const hidden = (value: unknown) => ({ value, enumerable: false });
  return Object.freeze(
    Object.defineProperties({ ...shown } as PlatformConnection, {
      apiKey: hidden(apiKey),
      toJSON: hidden(() => shown),
      toString: hidden(() => `PlatformConnection(${agentId})`),
      [inspect.custom]: hidden(() => shown),
    }),
  );
}
