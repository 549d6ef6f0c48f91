import type { Clock } from '../../../src/base/clock.js';
import type { Logger } from '../../../src/base/log.js';
import type { DurableQueue } from '../../../src/store/durable-queue.js';
import { parseDelivery } from '../parse.js';
import type { SlackIdentity } from '../web-methods.js';
import type { SlackRecord } from './records.js';

const KEPT_MS = 24 * 3_600_000;
export const NO_INSTALLATION = 'SLACK_NO_INSTALLATION';

/**
 * Hands on what came from a workspace before the app was installed in it, up to a day after. The messages keep their
 * place among those that were seen, so that the two events of one post still make one turn.
 *
 * @returns how many deliveries
 */
export async function takeUpLate(
  inbox: Pick<DurableQueue<SlackRecord>, 'deadRecords' | 'put' | 'dropDead'>,
  slug: string,
  { teamId }: SlackIdentity,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<number> {
  let found = 0;
  for (const { id, lane, body, code, diedAt } of await inbox.deadRecords(Number.MAX_SAFE_INTEGER)) {
    if (code !== NO_INSTALLATION || body.slug !== slug || clock.now() - diedAt > KEPT_MS) continue;
    const delivery = parseDelivery(body.payload);
    if (!('teamId' in delivery) || delivery.teamId !== teamId) continue;
    await inbox.put({ id: `installed:${diedAt}:${id}`, lane, body });
    await inbox.dropDead(id);
    found += 1;
  }
  if (found > 0) log.info({ app: slug, team: teamId, found }, 'deliveries of before the installation are taken up');
  return found;
}
