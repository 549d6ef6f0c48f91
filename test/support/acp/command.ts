import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { checkFrames } from './schema.js';
import type { Frame } from './lab.js';

/** The built program; tests of processes run what users run. */
export const BIN = fileURLToPath(new URL('../../../dist/src/cli/bin.js', import.meta.url));
export const BAND_ACP = fileURLToPath(new URL('../../../dist/src/cli/band-acp.js', import.meta.url));

const WAIT_MS = 15_000;

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly args?: readonly string[];
  readonly cwd: string;
  readonly bin?: string;
  readonly node?: readonly string[];
}

/** A running `band-gateway acp`, and an editor's end of its pipes. */
export class AcpCommand {
  readonly child: ChildProcessWithoutNullStreams;
  readonly frames: Frame[] = [];
  readonly asked = new Map<unknown, string>();
  /** Every byte that came out of standard output. */
  stdout = Buffer.alloc(0);
  stderr = '';
  exit: { code: number | null; signal: string | null } | null = null;
  readonly startedAt = performance.now();
  #rest = '';
  #nextId = 0;
  #tell = new Set<() => void>();

  constructor({ env = {}, args = [], cwd, bin = BIN, node = [] }: CommandOptions) {
    if (!existsSync(bin)) throw new Error(`${bin} is missing: build first`);
    const given = { PATH: process.env['PATH'], HOME: cwd, TMPDIR: cwd, ...env };
    const words = bin === BAND_ACP ? args : ['acp', ...args];
    this.child = spawn(process.execPath, [...node, bin, ...words], { cwd, env: given });
    this.child.stdout.on('data', (chunk: Buffer) => {
      this.stdout = Buffer.concat([this.stdout, chunk]);
      const lines = (this.#rest + chunk.toString()).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) this.frames.push(JSON.parse(line) as Frame);
      this.#changed();
    });
    this.child.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    this.child.stdin.on('error', () => undefined);
    this.child.on('close', (code, signal) => {
      this.exit = { code, signal };
      this.#changed();
    });
  }

  write(text: string | Uint8Array): void {
    this.child.stdin.write(text);
  }

  send(frame: Record<string, unknown>): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...frame })}\n`);
  }

  ask(method: string, params: unknown, id: string | number = (this.#nextId += 1)): string | number {
    this.asked.set(id, method);
    this.send({ id, method, params });
    return id;
  }

  async answer(id: string | number | null): Promise<Frame> {
    return this.until(
      () => this.frames.find((frame) => frame.id === id && frame.method === undefined),
      `the answer to ${id}`,
    );
  }

  request(method: string, params: unknown): Promise<Frame> {
    return this.answer(this.ask(method, params));
  }

  initialize(): Promise<Frame> {
    return this.request('initialize', {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
      clientInfo: { name: 'test-editor', version: '1.0.0' },
    });
  }

  async newSession(): Promise<string> {
    const { result, error } = await this.request('session/new', { cwd: '/projects/demo', mcpServers: [] });
    if (!result) throw new Error(JSON.stringify(error));
    return (result as { sessionId: string }).sessionId;
  }

  prompt(sessionId: string, text: string): Promise<Frame> {
    return this.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] });
  }

  said(): string[] {
    return this.texts('agent_message_chunk');
  }

  texts(kind: string): string[] {
    return this.frames.flatMap(({ params }) => {
      const update = params?.['update'] as { sessionUpdate?: string; content?: { text?: string } } | undefined;
      return update?.sessionUpdate === kind && update.content?.text !== undefined ? [update.content.text] : [];
    });
  }

  /** Waits until `look` finds something. */
  async until<T>(look: () => T | undefined | null | false, what: string): Promise<T> {
    const deadline = Date.now() + WAIT_MS;
    for (;;) {
      const found = look();
      if (found !== undefined && found !== null && found !== false) return found;
      if (Date.now() > deadline || this.exit) {
        throw new Error(`${what} did not come (exit ${JSON.stringify(this.exit)})\n${this.stderr.slice(-2_000)}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 25);
        this.#tell.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  async ended(): Promise<{ code: number | null; signal: string | null }> {
    const deadline = Date.now() + WAIT_MS;
    while (!this.exit) {
      if (Date.now() > deadline) throw new Error(`still running\n${this.stderr.slice(-2_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return this.exit;
  }

  /** Throws unless standard output is whole lines of valid frames and nothing else. */
  checkOutput(): void {
    const text = this.stdout.toString();
    if (text !== '' && !text.endsWith('\n')) throw new Error(`unfinished line: ${text.slice(-200)}`);
    checkFrames(this.frames, this.asked);
  }

  async kill(): Promise<void> {
    if (!this.exit) this.child.kill('SIGKILL');
    await this.ended();
  }

  #changed(): void {
    for (const tell of this.#tell) tell();
    this.#tell.clear();
  }
}
