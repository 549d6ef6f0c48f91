import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo, type Demo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { killPrograms, startProgram } from '../support/program.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';

const KEY = 'partner-key-0123456789';

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
});
afterAll(() => demo.stop());
afterEach(killPrograms);

/** Starts the program with a Slack entry and an A2A entry, and waits until both are connected. */
async function startBoth(cwd: string, slack: string) {
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${demo.sandbox.restUrl}, ws_url: ${demo.sandbox.wsUrl} }
http: { port: 0 }
data_dir: data
agents:
  helpdesk:
    agent_id: ${DEMO.helpdesk.id}
    api_key: ${DEMO.helpdesk.apiKey}
    bridge: slack
    single_instance: false
    slack: ${slack}
    relay: { peer: demo/echo }
  front-door:
    agent_id: ${DEMO.gateway.id}
    api_key: ${DEMO.gateway.apiKey}
    bridge: a2a
    single_instance: false
    a2a: { auth: { api_keys: [{ name: partner, key: ${KEY} }] } }
`,
  );
  const program = startProgram(['start'], { cwd });
  const [, url = ''] = await program.until(/^Gateway at (\S+) for helpdesk \(slack\), front-door \(a2a\)/);
  for (let ready = false; !ready; ready = (await fetch(`${url}/readyz`)).ok) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { program, url };
}

describe.each(['socket', 'http'] as const)('a service with Slack (%s) and A2A side by side', (transport) => {
  it('answers people and programs through the same peer, and ends in order', async () => {
    const acme = await startAcme({ app: { socketMode: transport === 'socket' } });
    const { app, slack, botToken } = acme;
    const secret = transport === 'socket' ? `app_token: ${app.appToken}` : `signing_secret: ${app.signingSecret}`;
    const { program, url } = await startBoth(
      await tempFolder(),
      `{ bot_token: ${botToken}, ${secret}, slack_api_url: "${slack.apiUrl}" }`,
    );
    if (transport === 'http') {
      app.urls = {
        events: `${url}/slack/events`,
        interactions: `${url}/slack/interactions`,
        commands: `${url}/slack/commands`,
      };
    }
    const said = acme.alice.says('#general', '@gateway hello');
    await slack.until(() =>
      slack.botMessages(acme.general.id, said.ts).some(({ text }) => /^echo: .*hello/.test(text)),
    );
    expect((await a2aSend(url, 'echo', 'hello', KEY)).text).toBe('echo: hello');

    const page = await (await fetch(url)).text();
    expect(page).toContain('helpdesk');
    expect(page).toContain('front-door');
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toMatch(/slack_events_received_total\{.*\} [1-9]/);
    expect(metrics).not.toContain(acme.alice.id);

    program.kill();
    expect(await program.ended).toBe(0);
    slack.check();
    for (const token of [botToken, app.appToken, app.signingSecret]) expect(program.said.err).not.toContain(token);
  });
});
