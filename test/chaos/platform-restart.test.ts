import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo } from '../../src/gateway/demo.js';
import { DEMO, type Sandbox } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { startAcme, type Acme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { createFastClock } from './clocks.js';
import {
  PARTNER_KEY,
  demoWorld,
  frontDoor,
  helpdesk,
  pause,
  startService,
  textsOf,
  until,
  type RunningService,
} from './service.js';

/** How much faster the service's time passes, and how long the platform refuses, in the service's seconds. */
const FACTOR = Number(process.env['OUTAGE_FACTOR'] ?? 15);
const OUTAGE_SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 30);
const MESSAGES = Number(process.env['OUTAGE_MESSAGES'] ?? 5);
const LIMIT_MS = 30_000 + (OUTAGE_SECONDS * 1_000) / FACTOR;
const OURS = [DEMO.gateway.id, DEMO.helpdesk.id];

async function startWorld(sandbox: Sandbox): Promise<{ acme: Acme; service: RunningService }> {
  const acme = await startAcme({ rates: false, app: { socketMode: true } });
  onTestFinished(() => acme.slack.stop());
  const service = await startService({
    folder: await tempFolder(),
    sandbox,
    // Requests that were taken in wait as long as the outage lasts, instead of failing after half a minute.
    agents: [helpdesk(acme), frontDoor(`      dispatch_deadline_ms: ${OUTAGE_SECONDS * 10_000}`)],
    clock: createFastClock(FACTOR),
  });
  await service.ready();
  return { acme, service };
}

/** People and clients write the whole time; clients ask again under the same id until they are answered. */
function keepAsking({ acme, service }: { acme: Acme; service: RunningService }, name: string) {
  const deadline = Date.now() + LIMIT_MS;
  const client = async (id: string): Promise<string | null> => {
    for (;;) {
      const answer = await a2aSend(service.url, 'echo', id, PARTNER_KEY, id).catch(() => null);
      if (answer?.state === 'TASK_STATE_COMPLETED') return answer.text;
      if (Date.now() > deadline) return `no answer: ${JSON.stringify(answer)}`;
      await pause(50);
    }
  };
  const ids = Array.from({ length: MESSAGES }, (_, n) => `${name}-client-${n}`);
  const asked = ids.map((id) => client(id));
  const said = ids.map((id, n) => ({
    id: id.replace('client', 'person'),
    said: acme.alice.says('#general', `@gateway ${name}-person-${n}`),
  }));
  return {
    ids,
    async answered() {
      expect(await Promise.all(asked)).toEqual(ids.map((id) => `echo: ${id}`));
      const { slack } = acme;
      const echoes = (one: (typeof said)[number]) =>
        slack
          .botMessages(one.said.channel, one.said.threadTs)
          .filter(({ shown }) => shown.startsWith('echo: ') && shown.endsWith(one.id));
      for (const one of said) {
        await slack.until(() => echoes(one).length > 0, `the answer to ${one.id}`, Math.max(1, deadline - Date.now()));
      }
      await slack.settled();
      for (const one of said) expect(echoes(one), one.id).toHaveLength(1);
    },
  };
}

/** What our agents wrote into rooms: each question once. */
function expectEachOnce(sandbox: Sandbox, name: string): void {
  const posted = OURS.flatMap((id) => textsOf(sandbox, id)).flatMap(
    ({ content }) => new RegExp(`${name}-(?:client|person)-\\d+`).exec(content) ?? [],
  );
  expect(posted.sort()).toEqual(
    ['client', 'person'].flatMap((kind) => Array.from({ length: MESSAGES }, (_, n) => `${name}-${kind}-${n}`)).sort(),
  );
}

const connections = ({ log }: RunningService) => log.filter(({ msg }) => msg === 'band link connected').length;

describe('a platform that restarts', () => {
  it.each([1001, 1006, 1012])(
    'closes with %i and refuses for half a minute: all links come back once, and everything accepted is answered once',
    async (code) => {
      const { sandbox } = await demoWorld();
      const world = await startWorld(sandbox);
      const before = keepAsking(world, `before-${code}`);
      await pause(50);
      const opened = connections(world.service);
      for (const id of OURS) {
        sandbox.dev.faultUpgrades({ mode: 'refuse', status: 503, principalId: id, times: 2 });
        sandbox.dev.faultUpgrades({ mode: 'refuse', status: 429, retryAfter: 2, principalId: id, times: 2 });
        sandbox.dev.faultUpgrades({ mode: 'refuse', status: 503, principalId: id });
        sandbox.dev.faultRest({ status: 503, callerId: id, times: 10_000 });
        expect(sandbox.dev.closeSockets(id, code)).toBe(1);
      }
      const meanwhile = keepAsking(world, `meanwhile-${code}`);
      const { blockers } = await world.service.untilReadiness(({ status }) => status === 503);
      expect(blockers.map(({ name }) => name).filter((name) => name.endsWith('.link')).length).toBeGreaterThan(0);
      await pause((OUTAGE_SECONDS * 1_000) / FACTOR);
      sandbox.dev.clearFaults();

      await world.service.ready(LIMIT_MS);
      await before.answered();
      await meanwhile.answered();
      expectEachOnce(sandbox, `before-${code}`);
      expectEachOnce(sandbox, `meanwhile-${code}`);
      expect(connections(world.service) - opened).toBe(OURS.length);
      for (const { state } of (await world.service.report()).agents) expect(state).toBe('running');
      world.acme.slack.check();
    },
    LIMIT_MS + 20_000,
  );

  it('ends and comes back on its own data: rooms, links and everything accepted go on', async () => {
    const dataDir = await tempFolder();
    const start = (port: number) => startDemo({ port, dataDir }, { clock: systemClock, log: silentLogger });
    const first = await start(0);
    const world = await startWorld(first.sandbox);
    const before = keepAsking(world, 'before');
    await until('a message in a room', () => textsOf(first.sandbox, DEMO.gateway.id).length > 0);
    await first.stop();
    const meanwhile = keepAsking(world, 'meanwhile');
    await world.service.untilReadiness(({ status }) => status === 503);
    const second = await start(first.sandbox.port);
    onTestFinished(() => second.stop());
    await world.service.ready(LIMIT_MS);
    await before.answered();
    await meanwhile.answered();
    expectEachOnce(second.sandbox, 'before');
    expectEachOnce(second.sandbox, 'meanwhile');
    world.acme.slack.check();
  }, 60_000);
});
