import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { AcpCommand } from '../support/acp/command.js';
import { killPrograms, startProgram, type RunningProgram } from '../support/program.js';
import { startAcme, type Acme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { PARTNER_KEY, frontDoor, helpdesk, pointSlackAt, until } from '../support/whole-service.js';
import { demoWorld } from '../chaos/service.js';

afterEach(killPrograms);

const WRONG_KEY = 'a-wrong-key-that-is-secret';

async function startAll(transport: 'socket' | 'http', top = '') {
  const { sandbox } = await demoWorld();
  const acme = await startAcme({ rates: false, app: { socketMode: transport === 'socket' } });
  onTestFinished(() => acme.slack.stop());
  const cwd = await tempFolder();
  const { restUrl, wsUrl } = sandbox;
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${restUrl}, ws_url: ${wsUrl} }
http: { port: 0 }
data_dir: data
${top}
agents:
${helpdesk(acme)}
${frontDoor()}
  editor:
    agent_id: ${DEMO.editor.id}
    api_key: ${DEMO.editor.apiKey}
    bridge: acp
    acp: { peers: [demo/echo], context_preamble: never }
`,
  );
  const program = startProgram(['start'], { cwd, env: { TMPDIR: cwd } });
  const [, url = ''] = await program.until(/^Gateway at (\S+) for /);
  await until('readiness', async () => (await fetch(`${url}/readyz`)).ok);
  pointSlackAt(acme, url);
  return { sandbox, acme, cwd, program, url };
}

async function endsWell(program: RunningProgram): Promise<void> {
  program.kill();
  expect(await program.ended).toBe(0);
}

/** What the workspace and its app hold that nobody else may read. */
const secretsOf = ({ app, botToken }: Acme) => [botToken, app.appToken, app.signingSecret];

describe.each(['socket', 'http'] as const)('with Slack by %s, A2A and an editor', (transport) => {
  it('S-210 A-011 nothing that is secret stands in a log at trace, on the status page or among the figures', async () => {
    const { sandbox, acme, cwd, program, url } = await startAll(transport, 'log_level: trace');
    const { slack, alice } = acme;
    const said = alice.says('#general', '@gateway hello');
    await slack.until(() => slack.botMessages(said.channel, said.threadTs).length > 0, 'an answer');
    const asked = alice.runs('/band hello', '#general');
    // Slack refuses an answer, then the token itself.
    slack.fault({
      method: 'chat.postMessage',
      times: 1,
      effect: { kind: 'error', error: 'restricted_action' },
    });
    alice.replies(said, '@gateway once more');
    await until('a refusal', () => program.said.err.includes('restricted_action'));
    slack.fault({ method: 'chat.postMessage', times: 1, effect: { kind: 'error', error: 'account_inactive' } });
    alice.replies(said, '@gateway and again');
    await until('the end of the token', () => program.said.err.includes('account_inactive'));
    const isDegraded = /state fair">degraded<[\s\S]*Last errors[\s\S]*account_inactive/;
    await until('the status page to say so', async () => isDegraded.test(await (await fetch(url)).text()));
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      /^band_bridge_problems\{agent="helpdesk",bridge="slack"\} [1-9]/m,
    );
    expect((await fetch(`${url}/readyz`)).status).toBe(200);

    await a2aSend(url, 'echo', 'hello', PARTNER_KEY);
    await a2aSend(url, 'echo', 'hello', WRONG_KEY);
    const editor = new AcpCommand({ cwd, args: ['--log-level', 'trace'] });
    onTestFinished(() => editor.kill());
    await editor.initialize();
    await editor.until(() => editor.stderr.includes('attached to the process'), 'attaching');
    await editor.prompt(await editor.newSession(), 'hello');
    for (const { id } of [DEMO.gateway, DEMO.helpdesk, DEMO.editor]) sandbox.dev.closeSockets(id, 1006);
    await until('the links', async () => (await fetch(`${url}/readyz`)).ok);
    const shown = await Promise.all(
      ['/', '/metrics', '/readyz'].map(async (page) => await (await fetch(`${url}${page}`)).text()),
    );
    await endsWell(program);

    const texts = { log: program.said.err, out: program.said.out, editor: editor.stderr, pages: shown.join('\n') };
    expect(texts.log.length).toBeGreaterThan(5_000);
    const secrets = [...secretsOf(acme), DEMO.gateway.apiKey, DEMO.helpdesk.apiKey, DEMO.editor.apiKey];
    for (const [name, text] of Object.entries(texts)) {
      const found = [...secrets, PARTNER_KEY, WRONG_KEY, asked.responseUrl, asked.triggerId].filter((secret) =>
        text.includes(secret),
      );
      expect(found, name).toEqual([]);
    }
  }, 60_000);
});

describe('what Slack refuses for good', () => {
  it('S-044 is listed by the command with its reason, gets a second chance, or is dropped', async () => {
    const { acme, cwd, program } = await startAll('socket');
    const { slack, alice } = acme;
    const dead = async (...words: string[]) => {
      const command = startProgram(['dead', ...words], { cwd, env: { TMPDIR: cwd } });
      return { code: await command.ended, out: command.said.out, err: command.said.err };
    };
    const refuse = (times: number) =>
      slack.fault({
        method: 'chat.postMessage',
        times,
        when: ({ text }) => typeof text === 'string' && text.includes('echo:'),
        effect: { kind: 'error', error: 'restricted_action' },
      });
    const letters = async () => {
      const { code, out } = await dead('list', '--json');
      expect(code).toBe(0);
      return JSON.parse(out) as { agent: string; id: string; queue: string; code: string }[];
    };
    const answers = (said: ReturnType<typeof alice.says>) =>
      slack.botMessages(said.channel, said.threadTs).filter(({ shown }) => shown.includes('echo:'));

    refuse(2);
    const first = alice.says('#general', '@gateway to be kept');
    const second = alice.says('#rooms', '@gateway to be dropped');
    await until('two letters', async () => (await letters()).length === 2);
    const kept = (await letters()).map(({ agent, id, queue }) => ({ agent, id, queue }));
    expect(kept).toEqual([0, 1].map(() => ({ agent: 'helpdesk', id: expect.any(String) as string, queue: 'outbox' })));
    expect((await dead('list')).out).toContain('restricted_action');
    expect(await dead('retry', 'helpdesk', kept[0]?.id ?? '')).toMatchObject({ code: 0, out: 'Done.\n' });
    expect(await dead('drop', 'helpdesk', kept[1]?.id ?? '')).toMatchObject({ code: 0, out: 'Done.\n' });
    await until('the second chance', () => answers(first).length + answers(second).length === 1);
    expect((await dead('list')).out).toBe('Nothing is given up on.\n');
    expect(await dead('drop', 'helpdesk', kept[1]?.id ?? '')).toMatchObject({ code: 1 });
    await slack.settled();
    expect(answers(first).length + answers(second).length).toBe(1);
    await endsWell(program);
    slack.check();
  }, 60_000);
});
