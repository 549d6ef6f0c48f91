import path from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { killPrograms, startProgram } from '../support/program.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { createFastClock } from './clocks.js';
import { PARTNER_KEY, demoWorld, frontDoor, helpdesk, pause, startService, textsOf } from './service.js';

const MESSAGES = Number(process.env['TWO_GATEWAYS_MESSAGES'] ?? 8);
/** How much faster the time of the one that waits passes. */
const FACTOR = Number(process.env['TWO_GATEWAYS_FACTOR'] ?? 30);

afterEach(killPrograms);

describe('two gateways', () => {
  it('on one data directory: the second says that the folder is taken and ends with 1; the first notices nothing', async () => {
    const { sandbox } = await demoWorld();
    const folder = await tempFolder();
    const first = await startService({ folder, sandbox, agents: [frontDoor()] });
    await first.ready();
    const program = startProgram(['start'], { cwd: folder });
    expect(await program.ended).toBe(1);
    expect(program.said.err).toContain('Another process owns this data directory');
    expect(program.said.err).toContain(path.join(folder, 'data', 'store'));
    expect(program.said.err).not.toMatch(/\n\s+at /);
    expect(program.said.out).toBe('');
    expect(await a2aSend(first.url, 'echo', 'mine', PARTNER_KEY)).toMatchObject({ text: 'echo: mine' });
  }, 30_000);

  it('on one agent id of one host: the second waits as a state, keeps asking, and takes over when the first is gone', async () => {
    const { sandbox } = await demoWorld();
    const guarded = frontDoor().replace('single_instance: false', 'single_instance: true');
    const first = await startService({ folder: await tempFolder(), sandbox, agents: [guarded] });
    await first.ready();

    const second = await startService({
      folder: await tempFolder(),
      sandbox,
      agents: [guarded],
      clock: createFastClock(FACTOR),
    });
    const { blockers } = await second.untilReadiness(
      ({ blockers: [one] }) => one?.message.includes('already running') === true,
    );
    expect(blockers).toHaveLength(1);
    expect(blockers[0]).toMatchObject({ name: 'agent.front-door' });
    expect(blockers[0]?.action).toContain('Stop the other process');
    expect((await second.report()).agents[0]?.state).toBe('elsewhere');
    // A minute's wait, not a loop; and the first keeps its connection.
    await pause((1.5 * 60_000) / FACTOR);
    const refusals = second.log.filter(({ msg }) => msg === 'agent is not running').length;
    expect(refusals).toBeGreaterThanOrEqual(1);
    expect(refusals).toBeLessThanOrEqual(3);
    expect((await first.readiness()).status).toBe(200);
    expect(first.log.filter(({ msg }) => msg === 'band link connected')).toHaveLength(1);
    expect(await a2aSend(first.url, 'echo', 'mine', PARTNER_KEY)).toMatchObject({ text: 'echo: mine' });

    await first.stop();
    await second.ready();
    expect(await a2aSend(second.url, 'echo', 'mine now', PARTNER_KEY)).toMatchObject({ text: 'echo: mine now' });
  }, 30_000);

  // A real minute's wait; the same with a faster clock stands above.
  it.runIf(process.env['STANDBY_REAL_CLOCK'])(
    'on one agent id at the platform: the one on standby yields, and is back within a minute by the machine’s own clock',
    async () => {
      const { sandbox } = await demoWorld();
      const standby = frontDoor('    on_superseded: standby');
      const first = await startService({ folder: await tempFolder(), sandbox, agents: [standby] });
      await first.ready();
      const second = await startService({ folder: await tempFolder(), sandbox, agents: [frontDoor()] });
      await second.ready();
      await first.untilReadiness(({ status }) => status === 503);
      expect((await first.report()).agents[0]?.state).toBe('elsewhere');
      // Asking does not push the other out.
      await pause(75_000);
      expect((await second.readiness()).status).toBe(200);
      expect(second.log.filter(({ msg }) => msg === 'band link connected')).toHaveLength(1);
      await second.stop();
      await first.ready(65_000);
      expect(await a2aSend(first.url, 'echo', 'back', PARTNER_KEY)).toMatchObject({ text: 'echo: back' });
    },
    180_000,
  );

  it('on one Slack app: no event is lost, and neither of them answers one twice', async () => {
    const { sandbox } = await demoWorld();
    const acme = await startAcme({ rates: false, app: { socketMode: true } });
    onTestFinished(() => acme.slack.stop());
    const twin = sandbox.dev.addAgent({
      ownerHandle: 'demo',
      name: 'Twin',
      description: 'The helpdesk of another house.',
    });
    const first = await startService({ folder: await tempFolder(), sandbox, agents: [helpdesk(acme)] });
    const second = await startService({
      folder: await tempFolder(),
      sandbox,
      agents: [helpdesk(acme).replace(DEMO.helpdesk.id, twin.id).replace(DEMO.helpdesk.apiKey, twin.apiKey)],
    });
    await Promise.all([first.ready(), second.ready()]);
    const { slack, app, alice } = acme;
    await slack.until(() => slack.sockets.open(app).filter(({ saidHello }) => saidHello).length === 4, 'all sockets');

    const said = Array.from({ length: MESSAGES }, (_, n) => alice.says('#general', `@gateway message ${n}`));
    const answers = (one: (typeof said)[number]) => slack.botMessages(one.channel, one.threadTs);
    for (const one of said) await slack.until(() => answers(one).length > 0, 'an answer', 20_000);
    await slack.settled();
    const events = slack.deliveries().filter(({ type }) => type === 'event_callback');
    expect(events.every(({ state }) => state === 'acked')).toBe(true);
    // A mention is two events to Slack, and each goes to any connection of the app: each gateway may take one of them.
    const questions = (id: string) =>
      textsOf(sandbox, id).map(({ content }) => /message \d+/.exec(content)?.[0] ?? content);
    for (const asked of [questions(DEMO.helpdesk.id), questions(twin.id)])
      expect(new Set(asked).size).toBe(asked.length);
    expect(new Set([...questions(DEMO.helpdesk.id), ...questions(twin.id)]).size).toBe(MESSAGES);
    for (const one of said) expect(answers(one).length).toBeLessThanOrEqual(2);
    slack.check();
  }, 60_000);
});
