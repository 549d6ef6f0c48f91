import type { GatewayError } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import type { BandRest } from '../../src/platform/rest/band-rest.js';
import { slackErrorOf } from './errors.js';
import { ANY_TEAM, slackKey } from './conversation.js';
import type { Bindings } from './inbound/bindings.js';
import type { Threads } from './inbound/threads.js';
import type { Installation } from './installations.js';
import type { SlackOut } from './outbound/port.js';
import type { SlackOutDeps } from './outbound/slack-out.js';

export interface OutHooksDeps {
  readonly installations: ReadonlyMap<string, Installation>;
  readonly bindings: Bindings;
  readonly threads: Threads;
  readonly rest: BandRest;
  readonly log: Logger;
}

/** What writing into Slack asks of the rest of the bridge: who writes, and which room a thread stands for. */
export function createOutHooks({
  installations,
  bindings,
  threads,
  rest,
  log,
}: OutHooksDeps): Pick<SlackOutDeps, 'installation' | 'roomError' | 'threadMoved' | 'replies' | 'unreachable'> {
  return {
    installation(slug, team) {
      const found = installations.get(slug);
      if (!found?.identity || found.refused || (team !== ANY_TEAM && found.identity.teamId !== team)) return null;
      const { teamUrl, botUserId, scopes } = found.identity;
      return { client: found.client, app: found.app, teamUrl, botUserId, scopes };
    },
    async roomError(thread, error, signal) {
      const binding = bindings.find(thread);
      if (!binding) return;
      const metadata = { slack_error: error.slackError, slack_ref: error.ref };
      await rest.postEvent(binding.roomId, { content: error.text, messageType: 'error', metadata }, { signal });
    },
    async threadMoved(thread, newThreadTs, signal) {
      const binding = bindings.find(thread);
      if (binding) await bindings.move(binding, newThreadTs, signal);
    },
    async replies(thread) {
      return (await threads.get(slackKey(thread))).replies;
    },
    async unreachable(thread) {
      log.error({ channel: thread.channel, app: thread.slug }, 'a Slack channel can no longer be reached');
      await bindings.markUnreachable(thread);
    },
  };
}

/** Slack refuses an app: what it has to say waits, in every workspace of which that is known, and its rooms hear so. */
export async function suspendAll(
  { app, identity }: Installation,
  error: GatewayError,
  bindings: Pick<Bindings, 'ofApp'>,
  out: Pick<SlackOut, 'suspend'>,
): Promise<void> {
  const teams = new Set([...bindings.ofApp(app.slug)].map(({ thread }) => thread.team));
  // Nothing would lift it again.
  teams.delete(ANY_TEAM);
  if (identity) teams.add(identity.teamId);
  for (const team of teams) await out.suspend(app.slug, team, slackErrorOf(error) ?? error.code);
}
