import { expect, it, onTestFinished } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { createFastClock } from './clocks.js';
import { PARTNER_KEY, demoWorld, frontDoor, helpdesk, pause, startService, textsOf, until } from './service.js';
import { startTcpProxy } from './tcp-proxy.js';

/** How much faster the service's time passes, and how often its links fall silent. */
const FACTOR = Number(process.env['HALF_OPEN_FACTOR'] ?? 15);
const ROUNDS = Number(process.env['HALF_OPEN_ROUNDS'] ?? 1);
/** A heartbeat is due every 30 s, and has until the next one to be answered; a first reconnect follows at once. */
const HEARTBEAT_MS = 30_000;
const RECONNECT_MS = 5_000;

it('links that fall silent without closing are replaced once a heartbeat stays unanswered, and nothing is lost', async () => {
  const { sandbox } = await demoWorld();
  const proxy = await startTcpProxy(sandbox.port);
  const acme = await startAcme({ rates: false, app: { socketMode: true } });
  onTestFinished(() => acme.slack.stop());
  const service = await startService({
    folder: await tempFolder(),
    sandbox: { restUrl: sandbox.restUrl, wsUrl: sandbox.wsUrl.replace(String(sandbox.port), String(proxy.port)) },
    agents: [helpdesk(acme), frontDoor()],
    clock: createFastClock(FACTOR),
  });
  await service.ready();
  const opened = () => service.log.filter(({ msg }) => msg === 'band link connected').length;

  for (let round = 0; round < ROUNDS; round += 1) {
    const before = opened();
    expect(proxy.freeze()).toBe(2);
    const begun = Date.now();
    const asked = a2aSend(service.url, 'echo', `client ${round}`, PARTNER_KEY);
    const said = acme.alice.says('#general', `@gateway person ${round}`);
    await until('both links', () => opened() === before + 2);
    const tookMs = (Date.now() - begun) * FACTOR;
    // What a busy machine adds counts FACTOR times over.
    expect(tookMs).toBeLessThan(2 * HEARTBEAT_MS + RECONNECT_MS + 2_000 * FACTOR);
    await service.ready();
    expect(await asked).toMatchObject({ state: 'TASK_STATE_COMPLETED', text: `echo: client ${round}` });
    const answers = () => acme.slack.botMessages(said.channel, said.threadTs);
    await acme.slack.until(() => answers().length > 0, 'the answer in Slack', 15_000);
    await acme.slack.settled();
    expect(answers().map(({ shown }) => shown)).toEqual([expect.stringMatching(`echo: .*person ${round}`)]);
  }
  // The dead connections are gone from the platform's books too, and nobody fights.
  await pause(100);
  for (const id of [DEMO.gateway.id, DEMO.helpdesk.id]) {
    expect(sandbox.dev.state().sockets.filter(({ principalId }) => principalId === id)).toHaveLength(1);
    expect(textsOf(sandbox, id)).toHaveLength(ROUNDS);
  }
}, 40_000);
