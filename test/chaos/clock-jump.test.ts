import { expect, it, onTestFinished } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { deferred } from '../../src/base/async.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { createSettableClock } from './clocks.js';
import { PARTNER_KEY, demoWorld, frontDoor, helpdesk, startService, textsOf, until } from './service.js';

const MINUTE_MS = 60_000;
/** Milliseconds by which the clock is set, one after the other, while everything is open. */
const JUMPS = (process.env['CLOCK_JUMPS_MINUTES'] ?? '10,-10').split(',').map((minutes) => Number(minutes) * MINUTE_MS);

it.each(JUMPS)(
  'a clock that is set by %i ms while tasks and turns are open ends none of them, and the service goes on',
  async (jump) => {
    const { sandbox } = await demoWorld();
    const acme = await startAcme({ rates: false, app: { socketMode: true } });
    onTestFinished(() => acme.slack.stop());
    const gate = deferred();
    const slow = sandboxAgent(sandbox, {
      agentId: DEMO.editor.id,
      apiKey: DEMO.editor.apiKey,
      adapter: new GenericAdapter(async ({ message, tools }) => {
        await gate.promise;
        await tools.sendMessage(`done: ${message.content.split(' ').at(-1) ?? ''}`, [{ id: message.senderId }]);
      }),
    });
    await slow.start();
    onTestFinished(async () => {
      await slow.stop();
    });
    const clock = createSettableClock();
    const service = await startService({
      folder: await tempFolder(),
      sandbox,
      agents: [helpdesk(acme).replace('peer: demo/echo', 'peer: demo/editor'), frontDoor()],
      clock,
    });
    await service.ready();
    const task = a2aSend(service.url, 'editor', 'from-the-client', PARTNER_KEY);
    const said = acme.alice.says('#general', '@gateway from-the-person');
    const texts = () => [DEMO.gateway.id, DEMO.helpdesk.id].map((id) => textsOf(sandbox, id).length);
    await until('both questions in their rooms', () => texts().every((count) => count === 1));

    clock.set(jump);
    // What looks at the time does so again: new work, probes, timers.
    expect(await a2aSend(service.url, 'echo', 'meanwhile', PARTNER_KEY)).toMatchObject({ text: 'echo: meanwhile' });
    const other = acme.bob.says('#general', '@gateway meanwhile');
    await until('the next question', () => textsOf(sandbox, DEMO.helpdesk.id).length === 2);
    // A jump forward looks like a host that slept, whose connections are dead: each link is replaced within five seconds.
    const opened = () => service.log.filter(({ msg }) => msg === 'band link connected').length;
    if (jump > 0) await until('fresh links', () => opened() === 4);
    gate.resolve();

    const { state, text } = await task;
    const { slack } = acme;
    const answers = (one: typeof said) => slack.botMessages(one.channel, one.threadTs).map(({ shown }) => shown);
    for (const one of [said, other]) await slack.until(() => answers(one).length > 0, 'an answer', 15_000);
    await slack.settled();
    expect({ state, text }).toEqual({ state: 'TASK_STATE_COMPLETED', text: 'done: from-the-client' });
    expect(answers(said)).toEqual(['done: from-the-person']);
    expect(answers(other)).toEqual(['done: meanwhile']);
    await service.ready();
    for (const { link } of (await service.report()).agents) expect(link?.state).toBe('connected');

    clock.set(-jump);
    expect(await a2aSend(service.url, 'echo', 'and back', PARTNER_KEY)).toMatchObject({ text: 'echo: and back' });
    expect(textsOf(sandbox, DEMO.gateway.id)).toHaveLength(3);
    slack.check();
  },
  40_000,
);
