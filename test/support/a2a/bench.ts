import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Agent, request } from 'undici';
import { DEMO } from '../../../src/sandbox/index.js';
import { buildPackage, builtProgram, startBenchProcess } from '../bench-process.js';

/** Processes of a bench, ended together. */
export class BenchProcesses {
  readonly #children: ChildProcess[] = [];

  /** Starts a program and gives the first line it says. */
  async start(program: string, env: Record<string, string> = {}, args: readonly string[] = []): Promise<string> {
    const path = fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', path, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return line;
  }

  /** Starts a program that speaks by messages, and gives the first. */
  async fork(program: string, args: readonly string[] = []): Promise<{ child: ChildProcess; said: unknown }> {
    const path = fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url));
    const child = fork(path, args, { execArgv: ['--expose-gc', '--import', 'tsx'] });
    this.#children.push(child);
    const [said] = (await once(child, 'message')) as [unknown];
    return { child, said };
  }

  /**
   * A sandbox with an echo peer, and a gateway of it in memory.
   *
   * @param peer - an Agent of this project in a process of its own, or one made by hand inside the sandbox's process, where
   *   what the peer costs is not the question
   * @returns the gateway's address
   */
  async platform(peer: 'agent' | 'by hand'): Promise<{ env: Record<string, string>; gateway: string }> {
    const { said: platform } = await this.fork(peer === 'agent' ? 'bench-sandbox' : 'bench-platform');
    const { restUrl, wsUrl } = platform as { restUrl: string; wsUrl: string };
    const band = { BAND_REST_URL: restUrl, BAND_WS_URL: wsUrl };
    if (peer === 'agent') {
      await buildPackage();
      const echo = { ...band, AGENT_ID: DEMO.echo.id, API_KEY: DEMO.echo.apiKey };
      this.#children.push((await startBenchProcess(process.execPath, [builtProgram('bench-agent')], echo)).child);
    }
    const options = {
      port: 0,
      store: 'memory',
      completion: 'first',
      auth: { anonymous: 'loopback' },
      limits: { ratePerMin: 0, ipRatePerMin: 0 },
    };
    const own = { ...band, AGENT_ID: DEMO.gateway.id, API_KEY: DEMO.gateway.apiKey };
    const said = await this.start('a2a-gateway', own, [JSON.stringify(options)]);
    const bare = { ...band, AGENT_ID: DEMO.helpdesk.id, API_KEY: DEMO.helpdesk.apiKey, PEER_ID: DEMO.echo.id };
    return { env: bare, gateway: (JSON.parse(said) as { url: string }).url };
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}

const dispatcher = new Agent({ connections: 256 });

/** One blocking send in a context. */
export async function sendTo(url: string, contextId: string): Promise<void> {
  const message = { messageId: randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text: 'hello' }] };
  const answer = await request(`${url}/agents/echo`, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  });
  const text = await answer.body.text();
  if (!text.includes('"artifacts"')) throw new Error(`no answer: ${text}`);
}

/** Sends until `total` were answered, so many at a time, each worker in a context of its own. @returns milliseconds */
export async function sendMany(url: string, total: number, workers: number, prefix: string): Promise<number> {
  let left = total;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      while (left > 0) {
        left -= 1;
        await sendTo(url, `${prefix}-${worker}`);
      }
    }),
  );
  return performance.now() - started;
}
