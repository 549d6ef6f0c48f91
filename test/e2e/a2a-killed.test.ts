import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { A2AOptionsInput } from '../../bridges/a2a/index.js';
import { GenericAdapter } from '../../src/adapters/generic.js';
import type { Agent } from '../../src/agent.js';
import { deferred, type Deferred } from '../../src/base/async.js';
import { DEMO, startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { a2aClient, message, type A2AClient } from '../support/a2a/client.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('../support/programs/a2a-gateway.ts', import.meta.url));
const KEY = 'partner-key';
const TASKS = Number(process.env['A2A_KILL_TASKS'] ?? 50);

interface Running {
  readonly client: A2AClient;
  readonly child: ChildProcess;
  kill(): Promise<void>;
}

/** A gateway process on a store, a platform in this one, and a peer that answers when it is told to. */
describe('a gateway that is killed', () => {
  let sandbox: Sandbox;
  let peer: Agent;
  let folder: string;
  const children: ChildProcess[] = [];
  /** By the text of a request: answering waits for it. */
  const gates = new Map<string, Deferred>();
  let isOpen = false;

  const begin = async () => {
    folder = await tempFolder();
    sandbox = await startSandbox({ port: 0 });
    isOpen = false;
    peer = sandboxAgent(sandbox, {
      adapter: new GenericAdapter(async ({ message: { content, senderId }, tools }) => {
        const text = content.replace(/^@\S+\s*/, '');
        if (text.startsWith('ask')) {
          await tools.sendMessage('Which?\n```a2a\n{"state":"input-required"}\n```', [{ id: senderId }]);
          return;
        }
        const gate = gates.get(text) ?? deferred();
        gates.set(text, gate);
        if (!isOpen) await gate.promise;
        await tools.sendMessage(`answer to ${text}`, [{ id: senderId }]);
      }),
    });
    await peer.start();
  };
  const openGates = () => {
    isOpen = true;
    for (const gate of gates.values()) gate.resolve();
  };
  const launch = async (more: A2AOptionsInput = {}): Promise<Running> => {
    const options: A2AOptionsInput = {
      port: 0,
      store: join(folder, 'store'),
      auth: { apiKeys: [{ name: 'partner', key: KEY }] },
      completion: 'first',
      limits: { ratePerMin: 0, ipRatePerMin: 0 },
      ...more,
    };
    const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, JSON.stringify(options)], {
      env: {
        ...process.env,
        BAND_REST_URL: sandbox.restUrl,
        BAND_WS_URL: sandbox.wsUrl,
        AGENT_ID: DEMO.gateway.id,
        API_KEY: DEMO.gateway.apiKey,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
    const [line] = (await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'exit').then(() => Promise.reject(new Error(`the gateway ended: ${errors}`))),
    ])) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const client = a2aClient(url, { headers: { 'x-api-key': KEY } });
    await expect.poll(async () => (await client.request('GET', '/peers')).status, { interval: 20 }).toBe(200);
    return {
      client,
      child,
      async kill() {
        const gone = once(child, 'exit');
        child.kill('SIGKILL');
        await gone;
      },
    };
  };
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    openGates();
    gates.clear();
    await peer.stop();
    await sandbox.close();
  });

  const postedTexts = () =>
    sandbox.dev
      .state()
      .rooms.flatMap(({ messages }) => messages)
      .filter(({ senderId, messageType }) => senderId === DEMO.gateway.id && messageType === 'text')
      .map(({ content }) => content.replace(/^@\S+\s*/, ''));
  const stateOf = async (client: A2AClient, id: string) =>
    (await client.rpc('echo', 'GetTask', { id })).body.result.status.state;

  it('A-320 A-321 A-322 A-327 brings every accepted task to its end, posts nothing twice, and gives subscribers the rest', async () => {
    await begin();
    let gateway = await launch();
    const accepted: string[] = [];
    const texts: string[] = [];
    const send = async (n: number) => {
      // A few share a context, so that some wait in their lane.
      const params = message(`job ${n}`, { contextId: `c${n % Math.ceil(TASKS * 0.8)}` }, { returnImmediately: true });
      const answer = await gateway.client.rpc('echo', 'SendMessage', params);
      accepted.push(answer.body.result.task.id);
      texts.push(`job ${n}`);
    };
    await Promise.all(Array.from({ length: TASKS }, (_, n) => send(n)));
    const stream = await gateway.client.stream('echo', 'SendStreamingMessage', message('streamed'));
    const { id: streamed } = (await stream.next())!.result.task;
    accepted.push(streamed);
    texts.push('streamed');
    // Some are posted, some are not: the middle of the work.
    await expect.poll(() => postedTexts().length, { interval: 2 }).toBeGreaterThan(Math.floor(TASKS / 3));
    await gateway.kill();
    openGates();
    gateway = await launch();
    const again = await gateway.client.stream('echo', 'SubscribeToTask', { id: streamed });
    const rest = await again.rest();
    if (!rest[0]?.error) expect(rest.at(-1)?.result.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    await expect
      .poll(async () => new Set(await Promise.all(accepted.map((id) => stateOf(gateway.client, id)))), {
        timeout: 15_000,
        interval: 100,
      })
      .toEqual(new Set(['TASK_STATE_COMPLETED']));
    for (const [at, id] of accepted.entries()) {
      const task = (await gateway.client.rpc('echo', 'GetTask', { id })).body.result;
      expect(task.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual([`answer to ${texts[at]}`]);
    }
    expect(postedTexts().sort()).toEqual([...texts].sort());
  }, 60_000);

  it('A-320 A-324 a killed gateway’s interrupted task is continued in the same room', async () => {
    await begin();
    openGates();
    let gateway = await launch();
    const asked = await gateway.client.rpc('echo', 'SendMessage', message('ask me', { contextId: 'c' }));
    const { id, status } = asked.body.result.task;
    expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    await gateway.kill();
    gateway = await launch();
    expect(await stateOf(gateway.client, id)).toBe('TASK_STATE_INPUT_REQUIRED');
    const done = await gateway.client.rpc('echo', 'SendMessage', message('the main one', { taskId: id }));
    expect(done.body.result.task.artifacts?.[0]?.parts[0]?.text).toBe('answer to the main one');
    expect(sandbox.dev.state().rooms).toHaveLength(1);
  }, 30_000);

  it('A-330 a second process on the same folder is refused', async () => {
    await begin();
    await launch();
    await expect(launch()).rejects.toThrow(/data directory/);
  }, 30_000);

  it('A-327 a gateway that is told to stop under load loses no accepted task', async () => {
    await begin();
    const gateway = await launch();
    const accepted: string[] = [];
    const sends = Array.from({ length: 30 }, async (_, n) => {
      const params = message(`load ${n}`, {}, { returnImmediately: true });
      const answer = await gateway.client.rpc('echo', 'SendMessage', params).catch(() => null);
      const id = (answer?.body.result as { task?: { id: string } } | undefined)?.task?.id;
      if (id !== undefined) accepted.push(id);
    });
    await expect.poll(() => accepted.length, { interval: 1 }).toBeGreaterThan(3);
    gateway.child.kill('SIGTERM');
    await Promise.all([...sends, once(gateway.child, 'exit')]);
    openGates();
    const again = await launch();
    await expect
      .poll(async () => new Set(await Promise.all(accepted.map((id) => stateOf(again.client, id)))), {
        timeout: 15_000,
      })
      .toEqual(new Set(['TASK_STATE_COMPLETED']));
    const texts = postedTexts();
    expect(new Set(texts).size).toBe(texts.length);
  }, 60_000);
});
