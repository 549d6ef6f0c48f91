import type { HttpListener } from '../../../src/base/http-mount.js';
import type { SlackAppConfig } from '../apps.js';
import type { SlackOptions } from '../settings.js';
import { createHttpIngress, type HttpIngressDeps } from './http.js';
import { SocketLink, type SocketLinkDeps } from './socket-link.js';

export interface DoorsDeps
  extends
    Pick<HttpIngressDeps, 'accept' | 'answerTo' | 'clock' | 'log' | 'metrics' | 'open'>,
    Pick<SocketLinkDeps, 'dispatcher' | 'random'> {
  readonly apps: readonly SlackAppConfig[];
  readonly options: SlackOptions;
  /** An app has so many connections now. */
  readonly onConnections: (slug: string, connections: number) => void;
}

/** Where Slack's deliveries come in: one listener for the apps that are called, a link for each that calls. */
export interface Doors {
  readonly listener: HttpListener;
  readonly sockets: readonly SocketLink[];
}

export function createDoors({ apps, options, dispatcher, random, onConnections, ...shared }: DoorsDeps): Doors {
  const { slackApiUrl, proxy, mountPath, bodyLimitBytes } = options;
  const { pingTimeoutMs, connections } = options.socket;
  const sockets = apps.flatMap(({ slug, transport, appToken }) =>
    transport === 'socket' && appToken !== null
      ? [
          new SocketLink({
            ...shared,
            slug,
            appToken,
            slackApiUrl,
            dispatcher,
            proxy,
            random,
            pingTimeoutMs,
            connections,
            onChange: ({ open }) => {
              onConnections(slug, open);
            },
          }),
        ]
      : [],
  );
  const called = apps.filter(({ transport }) => transport === 'http');
  return { sockets, listener: createHttpIngress({ ...shared, apps: called, mountPath, bodyLimitBytes }) };
}
