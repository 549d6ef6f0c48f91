import type { LoggedCall, SlackDouble } from './double.js';
import type { Said } from './people.js';
import type { Json } from './world.js';

const MOST_LINES = 40;

/** What happened in one thread, line by line: each post with its key, each look-up, and which process made it. */
export function postTrail(slack: SlackDouble, said: Said, processStarts: readonly number[]): string {
  const begun = processStarts[0] ?? 0;
  const line = (at: number, what: string) => {
    const process = processStarts.filter((start) => start <= at).length;
    return `  ${((at - begun) / 1_000).toFixed(3)} s, process ${process}: ${what}`;
  };
  const concerns = ({ method, args }: LoggedCall) =>
    args['channel'] === said.channel &&
    ((method === 'chat.postMessage' && args['thread_ts'] === said.ts) ||
      (method === 'conversations.replies' && args['ts'] === said.ts));
  const calls = slack.calls().filter(concerns).slice(0, MOST_LINES);
  const stands = slack.botMessages(said.channel, said.ts).slice(0, MOST_LINES);
  return [
    `calls for thread ${said.channel} ${said.ts}:`,
    ...calls.map((call) => line(call.at, `${call.method} ${aboutOf(call)} → ${call.outcome}`)),
    'what stands there:',
    ...stands.map((one) => line(one.at, `${JSON.stringify(one.metadata)} ${JSON.stringify(one.shown)}`)),
  ].join('\n');
}

function aboutOf({ method, args }: LoggedCall): string {
  if (method === 'conversations.replies')
    return args['include_all_metadata'] === undefined ? 'reads' : 'looks for posts';
  const metadata = typeof args['metadata'] === 'string' ? (JSON.parse(args['metadata']) as Json) : null;
  const payload = metadata?.['event_payload'] as Json | undefined;
  return payload ? `key ${String(payload['k'])} (${String(payload['t'])})` : '';
}
