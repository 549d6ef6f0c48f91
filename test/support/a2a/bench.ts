import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Agent } from 'undici';
import { httpCall } from '../../../src/platform/rest/http-call.js';
import { DEMO } from '../../../src/sandbox/index.js';
import { buildPackage, builtProgram, startBenchProcess } from '../bench-process.js';

export interface BenchServer {
  readonly child: ChildProcess;
  readonly url: string;
}

export interface BenchPlatform {
  /** For a gateway made by hand. */
  readonly env: Record<string, string>;
  readonly gateways: readonly BenchServer[];
  /** What stands behind the gateways. */
  readonly band: readonly ChildProcess[];
}

/** Processes of a bench, ended together. */
export class BenchProcesses {
  readonly #children: ChildProcess[] = [];

  /** Starts a server and waits until it says where it is. */
  async start(program: string, env: Record<string, string> = {}, args: readonly string[] = []): Promise<BenchServer> {
    const path = fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', path, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { child, url: (JSON.parse(line) as { url: string }).url };
  }

  /** Starts a program that speaks by messages, and gives the first. */
  async fork(program: string, args: readonly string[] = []): Promise<{ child: ChildProcess; said: unknown }> {
    const path = fileURLToPath(new URL(`../programs/${program}.ts`, import.meta.url));
    return this.#forked(fork(path, args, { execArgv: ['--expose-gc', '--import', 'tsx'] }));
  }

  async #forked(child: ChildProcess): Promise<{ child: ChildProcess; said: unknown }> {
    this.#children.push(child);
    const [said] = (await once(child, 'message')) as [unknown];
    return { child, said };
  }

  /**
   * A sandbox with an echo peer, and gateways of it, all on the built package.
   *
   * @param peer - an Agent of this project in a process of its own, or one made by hand inside the sandbox's process, where
   *   what the peer costs is not the question
   * @param stores - one gateway each, at most two: `memory`, or the folder of a durable store
   */
  async platform(peer: 'agent' | 'by hand', stores: readonly string[] = ['memory']): Promise<BenchPlatform> {
    await buildPackage();
    const { child, said } = await this.#forked(
      fork(builtProgram(peer === 'agent' ? 'bench-sandbox' : 'bench-platform'), { execArgv: [] }),
    );
    const { restUrl, wsUrl } = said as { restUrl: string; wsUrl: string };
    const band = { BAND_REST_URL: restUrl, BAND_WS_URL: wsUrl };
    const built = async (program: string, args: readonly string[], who: { id: string; apiKey: string }) => {
      const env = { ...band, AGENT_ID: who.id, API_KEY: who.apiKey };
      const one = await startBenchProcess(process.execPath, [builtProgram(program), ...args], env);
      this.#children.push(one.child);
      return { child: one.child, url: one.said };
    };
    const others = peer === 'agent' ? [await built('bench-agent', [], DEMO.echo)] : [];
    const gateways: BenchServer[] = [];
    for (const [n, store] of stores.entries()) {
      gateways.push(await built('bench-a2a', [store], n === 0 ? DEMO.gateway : DEMO.editor));
    }
    const bare = { ...band, AGENT_ID: DEMO.helpdesk.id, API_KEY: DEMO.helpdesk.apiKey, PEER_ID: DEMO.echo.id };
    return { env: bare, gateways, band: [child, ...others.map((one) => one.child)] };
  }

  stop(): void {
    for (const child of this.#children) child.kill('SIGKILL');
  }
}

const dispatcher = new Agent({ connections: 256 });

/** One blocking send in a context. */
export async function sendTo(url: string, contextId: string): Promise<void> {
  const message = { messageId: randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text: 'hello' }] };
  const { text } = await httpCall(dispatcher, {
    options: {
      origin: url,
      method: 'POST',
      path: '/agents/echo',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    },
    signal: undefined,
    maxAnswerBytes: Number.POSITIVE_INFINITY,
    tooLarge: () => new Error('no answer is too large'),
  });
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
