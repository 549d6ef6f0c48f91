import { request } from 'undici';
import type { SlackAppConfig } from '../../../../bridges/slack/apps.js';
import { createHttpIngress, type HttpIngressDeps } from '../../../../bridges/slack/inbound/http.js';
import { signBody } from '../../../../bridges/slack/signature.js';
import { createLogger } from '../../../../src/base/log.js';
import type { createMemoryStore } from '../../../../src/store/memory.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { openDoor } from './doors.js';

export const NOW_MS = Date.UTC(2026, 10, 29);
export const NOW = NOW_MS / 1_000;
export const app = (slug: string, secret: string | string[]): SlackAppConfig => ({
  slug,
  botToken: 'xoxb-1',
  signingSecrets: [secret].flat(),
  appToken: null,
  transport: 'http',
  persona: null,
  surface: null,
  allow: [],
  deny: [],
});
export const MAIN = app('main', 'secret-main');

/** The HTTP door on a clock that stands still; what it counts, logs and hands on is noted. */
export const setUp = async (more: Partial<HttpIngressDeps> & { store?: ReturnType<typeof createMemoryStore> } = {}) => {
  const clock = createManualClock(NOW_MS);
  const lines: string[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(line) } });
  const counted: string[] = [];
  const metrics = {
    counter: (name: string) => ({
      inc: (labels: object = {}) => void counted.push(`${name} ${JSON.stringify(labels)}`),
    }),
    gauge: () => ({ set: () => undefined }),
    histogram: () => ({ observe: () => undefined }),
  };
  const door = await openDoor({ clock, metrics, ...(more.store ? { store: more.store } : {}) });
  door.start();
  const listener = createHttpIngress({
    apps: [MAIN],
    mountPath: '/slack',
    accept: door.accept,
    clock,
    log,
    metrics,
    bodyLimitBytes: 10_000,
    open: () => true,
    ...more,
  });
  return { ...door, clock, lines, counted, listener };
};

export interface Sent {
  secret?: string;
  at?: number;
  type?: string;
  path?: string;
  method?: 'POST' | 'GET';
  headers?: Record<string, string>;
}
/** A request signed as Slack signs it, unless it is to be otherwise. */
export const post = async (url: string, body: string | Buffer, sent: Sent = {}) => {
  const { secret = 'secret-main', at = NOW, type = 'application/json', path = '/slack/main/events' } = sent;
  const bytes = Buffer.from(body);
  const answer = await request(url + path, {
    method: sent.method ?? 'POST',
    headers: {
      'content-type': type,
      'x-slack-request-timestamp': String(at),
      'x-slack-signature': signBody(secret, String(at), bytes),
      ...sent.headers,
    },
    ...(sent.method === 'GET' ? {} : { body: bytes }),
  });
  return { status: answer.statusCode, text: await answer.body.text(), headers: answer.headers };
};
let events = 0;
export const event = (id = `Ev${(events += 1)}`) =>
  JSON.stringify({
    type: 'event_callback',
    team_id: 'T1',
    api_app_id: 'A1',
    event_id: id,
    event_time: 1,
    event: { type: 'app_mention', user: 'U1', text: 'hi', ts: '1.1', channel: 'C1' },
  });
