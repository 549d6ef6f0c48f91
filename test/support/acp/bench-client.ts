import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { client, methods, ndJsonStream, type ClientContext } from '@agentclientprotocol/sdk';
import { BIN } from './command.js';

const program = (name: string) => fileURLToPath(new URL(`../programs/${name}`, import.meta.url));

/** A sandbox with an echo peer in another process. */
export async function startBenchWorld(): Promise<{ readonly env: Record<string, string>; stop(): Promise<void> }> {
  const child = fork(program('acp-world.ts'), { execArgv: ['--import', 'tsx'] });
  const [env] = (await once(child, 'message')) as [Record<string, string>];
  return {
    env,
    async stop() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/** An editor's side of an agent process, on the protocol SDK. */
export interface BenchEditor {
  readonly child: ChildProcess;
  /** Milliseconds from the start of the process to the answer of `initialize`. */
  readonly startMs: number;
  newSession(): Promise<string>;
  /** Milliseconds to the first piece of the answer, and to the end of the turn. */
  prompt(sessionId: string, text: string): Promise<{ readonly firstMs: number; readonly endMs: number }>;
  stop(): Promise<void>;
}

export function ourCommand(args: readonly string[] = []): readonly string[] {
  return [BIN, 'acp', '--peer', 'echo', '--context', 'never', '--log-level', 'error', ...args];
}

export async function startEditor(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<BenchEditor> {
  const before = performance.now();
  const child = spawn(process.execPath, [...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let onChunk: () => void = () => undefined;
  const connection = client({ name: 'bench' })
    .onNotification(methods.client.session.update, ({ params }) => {
      if (params.update.sessionUpdate === 'agent_message_chunk') onChunk();
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      ),
    );
  const agent: ClientContext = connection.agent;
  await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const startMs = performance.now() - before;
  return {
    child,
    startMs,
    newSession: async () =>
      (await agent.request(methods.agent.session.new, { cwd: '/bench', mcpServers: [] })).sessionId,
    async prompt(sessionId, text) {
      const start = performance.now();
      let firstMs = Number.NaN;
      onChunk = () => {
        if (Number.isNaN(firstMs)) firstMs = performance.now() - start;
      };
      await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
      return { firstMs, endMs: performance.now() - start };
    },
    async stop() {
      connection.close();
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
