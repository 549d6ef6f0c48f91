import type { HttpListener } from '../base/http-mount.js';
import type { Blocker } from '../core/bridge.js';
import { sendJson, sendMethodNotAllowed } from './http-errors.js';

/** What stands between the service and being ready, gathered when somebody asks. */
export interface Health {
  /** @param source - names what blocks at this moment; empty when nothing does */
  watch(source: () => readonly Blocker[]): void;
  blockers(): readonly Blocker[];
  /** `/healthz`: 200 as long as the process answers; a restart would help nothing that readiness reports. */
  readonly live: HttpListener;
  /** `/readyz`: 200, or 503 with every blocker, since when, and what to do. */
  readonly ready: HttpListener;
}

export function createHealth(): Health {
  const sources: (() => readonly Blocker[])[] = [];
  const blockers = () => sources.flatMap((source) => source());

  const reading =
    (answer: HttpListener): HttpListener =>
    (request, response) => {
      if (request.method === 'GET' || request.method === 'HEAD') answer(request, response);
      else sendMethodNotAllowed(response, 'GET');
    };

  return {
    watch(source) {
      sources.push(source);
    },
    blockers,
    live: reading((_, response) => {
      sendJson(response, 200, { status: 'ok' });
    }),
    ready: reading((_, response) => {
      const found = blockers();
      const shown = found.map(({ since, ...rest }) => ({ ...rest, since: new Date(since).toISOString() }));
      sendJson(response, found.length === 0 ? 200 : 503, {
        status: found.length === 0 ? 'ready' : 'not_ready',
        blockers: shown,
      });
    }),
  };
}
