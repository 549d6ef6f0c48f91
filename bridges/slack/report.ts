import type { Clock } from '../../src/base/clock.js';
import type { Blocker, BridgeReport, DeadLetters } from '../../src/core/bridge.js';
import type { DurableQueue } from '../../src/store/durable-queue.js';
import type { SlackAppConfig } from './apps.js';
import { remedyOf } from './fault-table.js';
import type { Bindings } from './inbound/bindings.js';
import type { SlackRecord } from './inbound/records.js';
import type { SocketLink } from './inbound/socket-link.js';
import type { Installation } from './installations.js';
import type { SlackOut } from './outbound/port.js';

export interface ReportDeps {
  readonly apps: readonly SlackAppConfig[];
  readonly installations: ReadonlyMap<string, Installation>;
  readonly sockets: readonly SocketLink[];
  readonly inbox: DurableQueue<SlackRecord>;
  readonly out: SlackOut;
  readonly bindings: Pick<Bindings, 'unreachable'>;
}

/** Lost channels that are listed one by one. */
const MOST_CHANNELS = 20;
/** How long an app may be without a connection before the service counts as not ready. */
const SHORT_GAP_MS = 60_000;
const TOKEN_ACTION = 'Reinstall the app in the workspace and set the new bot token.';

/** The bridge as the status page shows it. */
export function reportOf({ apps, installations, sockets, inbox, out, bindings }: ReportDeps): BridgeReport {
  const links = apps.flatMap((app) => {
    const installation = installations.get(app.slug);
    const socket = sockets.find(({ slug }) => slug === app.slug);
    const token = installation?.refused ? 'refused' : installation?.identity ? 'known' : 'asking';
    return [
      { name: `${app.slug}: token`, state: token, since: installation?.since ?? 0 },
      ...(socket
        ? [{ name: `${app.slug}: socket`, state: `${socket.state.open} open`, since: socket.since }]
        : [{ name: `${app.slug}: HTTP`, state: 'listening', since: installation?.since ?? 0 }]),
    ];
  });
  const lastErrors = [
    ...[...installations.values()].flatMap(({ refused, since }) =>
      refused ? [{ at: since, code: refused.code, text: refused.message, action: TOKEN_ACTION }] : [],
    ),
    ...out.parks().map(({ since, cause, channel, slug }) => ({
      at: since,
      code: cause,
      text: channel === null ? `Writing for ${slug} waits.` : `Writing into ${channel} waits.`,
      action: remedyOf(cause) ?? 'Mend what Slack names.',
    })),
    ...bindings
      .unreachable()
      .slice(0, MOST_CHANNELS)
      .map(({ slug, channel, since }) => ({
        at: since,
        code: 'channel_not_found',
        text: `Slack shows ${slug} the channel ${channel} no more.`,
        action: 'Invite the bot to it if the conversations there are to go on.',
      })),
  ];
  return {
    links,
    queues: [{ name: 'inbox', depth: inbox.depth, dead: inbox.deadCount }, ...out.queues()],
    lastErrors,
    recent: [],
  };
}

/** A parked app shows as degraded; the service is not ready only while no way in is open at all. */
export function blockersOf({
  apps,
  installations,
  sockets,
  clock,
}: Pick<ReportDeps, 'apps' | 'installations' | 'sockets'> & { readonly clock: Clock }): readonly Blocker[] {
  const blockers = apps.flatMap(({ slug }): Blocker[] => {
    const installation = installations.get(slug);
    if (installation?.refused) return [];
    if (!installation?.identity) {
      return [
        {
          name: `slack.${slug}.token`,
          message: `Slack has not yet said who the bot of ${slug} is.`,
          action: 'Wait; if it lasts, look whether slack.com can be reached.',
          since: installation?.since ?? clock.now(),
        },
      ];
    }
    const socket = sockets.find((one) => one.slug === slug);
    if (!socket || socket.state.open > 0 || socket.state.parked) return [];
    // A connection that was lost is usually back before anybody needs to know.
    if (socket.hasBeenOpen && clock.now() - socket.since < SHORT_GAP_MS) return [];
    return [
      {
        name: `slack.${slug}.socket`,
        message: `No Socket Mode connection of ${slug} is open.`,
        action: 'Look whether slack.com can be reached and the app token is right.',
        since: socket.since,
      },
    ];
  });
  return blockers;
}

/** Inbox and outbox under one list; the queue's name stands in front of each id. */
export function createDeadLetters(inbox: DurableQueue<SlackRecord>, outbox: DeadLetters): DeadLetters {
  const INBOX = 'inbox:';
  const within = (id: string) => (id.startsWith(INBOX) ? id.slice(INBOX.length) : null);
  /** Under a name of its own: under the old one the message counts as seen, and its answers as written. */
  const again = async (id: string): Promise<boolean> => {
    const dead = (await inbox.deadRecords(Number.MAX_SAFE_INTEGER)).find((one) => one.id === id);
    if (!dead) return false;
    await inbox.put({ id: `again:${dead.diedAt}:${id}`, lane: dead.lane, body: { ...dead.body, again: true } });
    return await inbox.dropDead(id);
  };
  return {
    async list(limit = 100) {
      const dead = (await inbox.deadRecords(limit)).map(({ id, lane, code, reason, diedAt }) => ({
        id: `${INBOX}${id}`,
        queue: 'inbox' as const,
        conversation: lane,
        code,
        reason,
        at: diedAt,
      }));
      return [...dead, ...(await outbox.list(limit))].sort((a, b) => a.at - b.at).slice(0, limit);
    },
    async retry(id) {
      const own = within(id);
      return own === null ? await outbox.retry(id) : await again(own);
    },
    async drop(id) {
      const own = within(id);
      return own === null ? await outbox.drop(id) : await inbox.dropDead(own);
    },
  };
}
