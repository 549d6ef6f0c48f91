import { caselessEnv } from './env-lookup.js';

/** Where agents live unless somebody says otherwise. */
export const BAND_CLOUD = Object.freeze({
  wsUrl: 'wss://app.band.ai/api/v1/socket/websocket',
  restUrl: 'https://app.band.ai',
});

export interface PlatformUrls {
  readonly wsUrl: string;
  readonly restUrl: string;
  /** What to log once when exactly one of the two ended at Band Cloud by default; else null. */
  readonly warning: string | null;
}

/**
 * The platform's two addresses, each on its own: a non-empty argument, else the environment variable `BAND_WS_URL` or
 * `BAND_REST_URL` in any case, else Band Cloud. No `.env` file is read.
 *
 * @param env - read now; default the process environment
 */
export function resolvePlatformUrls(
  given: { readonly wsUrl?: string | null | undefined; readonly restUrl?: string | null | undefined },
  env: NodeJS.ProcessEnv = process.env,
): PlatformUrls {
  const lookup = caselessEnv(env);
  const chosen = {
    wsUrl: firstFilled(given.wsUrl, lookup('BAND_WS_URL')),
    restUrl: firstFilled(given.restUrl, lookup('BAND_REST_URL')),
  };
  return Object.freeze({
    wsUrl: chosen.wsUrl ?? BAND_CLOUD.wsUrl,
    restUrl: chosen.restUrl ?? BAND_CLOUD.restUrl,
    warning: warningOf(chosen),
  });
}

function firstFilled(...values: (string | null | undefined)[]): string | null {
  return values.find((value) => value) ?? null;
}

function warningOf({ wsUrl, restUrl }: { wsUrl: string | null; restUrl: string | null }): string | null {
  if ((wsUrl === null) === (restUrl === null)) return null;
  const [set, missing] = wsUrl === null ? ['BAND_REST_URL', 'BAND_WS_URL'] : ['BAND_WS_URL', 'BAND_REST_URL'];
  return (
    `Only ${set} is set: ${missing} stays at Band Cloud. An agent whose two addresses belong to different platforms ` +
    `authenticates but sees no messages; set both.`
  );
}
