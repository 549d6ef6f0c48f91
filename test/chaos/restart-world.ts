import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo } from '../../src/gateway/demo.js';
import { DEMO, type DevMessage, type Sandbox } from '../../src/sandbox/index.js';
import { AcpCommand } from '../support/acp/command.js';
import { startProgram, type RunningProgram } from '../support/program.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { startAcme, type Acme } from '../support/slack/acme.js';
import { frontDoor, pause, pointSlackAt, until } from '../support/whole-service.js';

/** A sandbox with a peer that takes its time, a Slack workspace, and a service between them that can be restarted. */
export interface RestartWorld {
  readonly sandbox: Sandbox;
  readonly acme: Acme;
  /** Where the service is, once it was started. */
  readonly url: string;
  /** Starts the service and waits until it is ready. */
  start(): Promise<RunningProgram>;
  /** An editor's command that has found the running service. */
  openEditor(): Promise<AcpCommand>;
  /** Texts that stand in rooms in the agent's name. */
  postedBy(agentId: string): DevMessage[];
  stop(): Promise<void>;
}

/** Long enough that a restart meets questions under way, short enough for a test. */
const THINKS_MS = { least: 50, most: 450 };

export async function startRestartWorld(cwd: string, transport: 'socket' | 'http'): Promise<RestartWorld> {
  const demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
  const { sandbox } = demo;
  const acme = await startAcme({ rates: false, app: { socketMode: transport === 'socket' } });
  const slow = sandbox.dev.addAgent({ ownerHandle: 'demo', name: 'Slow', description: 'thinks before it answers' });
  const thinker = sandboxAgent(sandbox, {
    agentId: slow.id,
    apiKey: slow.apiKey,
    adapter: new GenericAdapter(async ({ message, tools, signal }) => {
      await systemClock.sleep(THINKS_MS.least + Math.random() * (THINKS_MS.most - THINKS_MS.least), signal);
      await tools.sendMessage(`echo: ${saidIn(message.content)}`, [{ id: message.senderId }]);
    }),
  });
  await thinker.start();
  let url = '';
  // One folder for locks and sockets, so that editors' commands find the service and no other test's.
  const env = { TMPDIR: cwd };

  return {
    sandbox,
    acme,
    get url() {
      return url;
    },
    async start() {
      writeConfig(cwd, { sandbox, acme, port: url === '' ? 0 : Number(new URL(url).port) });
      const program = startProgram(['start'], { cwd, env });
      [, url = ''] = await program.until(/^Gateway at (\S+) for /);
      pointSlackAt(acme, url);
      await until('readiness', async () => (await fetch(`${url}/readyz`)).ok);
      return program;
    },
    async openEditor() {
      const command = new AcpCommand({ cwd });
      await command.initialize();
      await command.until(() => command.stderr.includes('attached to the process'), 'attaching');
      return command;
    },
    postedBy: (agentId) =>
      sandbox.dev
        .state()
        .rooms.flatMap(({ messages }) => messages)
        .filter(({ senderId, messageType }) => senderId === agentId && messageType === 'text'),
    async stop() {
      await thinker.stop(null);
      await acme.slack.stop();
      await demo.stop();
    },
  };
}

/** What was asked, without mentions and without the name that Slack's messages are carried under. */
function saidIn(content: string): string {
  return content.split(' ').at(-1) ?? '';
}

function writeConfig(cwd: string, { sandbox, acme, port }: { sandbox: Sandbox; acme: Acme; port: number }): void {
  const { app, botToken, slack } = acme;
  const way = app.socketMode ? `app_token: ${app.appToken}` : `transport: http, signing_secret: ${app.signingSecret}`;
  writeFileSync(
    path.join(cwd, 'gateway.yaml'),
    `platform: { rest_url: ${sandbox.restUrl}, ws_url: ${sandbox.wsUrl} }
http: { port: ${port} }
data_dir: data
shutdown: { timeout_seconds: 2 }
agents:
  helpdesk:
    agent_id: ${DEMO.helpdesk.id}
    api_key: ${DEMO.helpdesk.apiKey}
    bridge: slack
    single_instance: false
    relay: { peer: demo/slow }
    slack: { bot_token: ${botToken}, ${way}, slack_api_url: "${slack.apiUrl}" }
${frontDoor()}
  editor:
    agent_id: ${DEMO.editor.id}
    api_key: ${DEMO.editor.apiKey}
    bridge: acp
    acp: { peers: [demo/slow], context_preamble: never }
`,
  );
}

/** Waits a moment before something is asked again. */
export const aMoment = (): Promise<void> => pause(50);
