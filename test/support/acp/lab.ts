import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { silentLogger, type Logger } from '../../../src/base/log.js';
import { parseOptions } from '../../../src/config/setting.js';
import { createManualClock, type ManualClock } from '../../../src/testing/manual-clock.js';
import { bandAccess } from '../../../bridges/acp/band.js';
import type { Authentication, EditorConnection } from '../../../bridges/acp/client/connection.js';
import { createAcpServer, type AcpServer } from '../../../bridges/acp/server.js';
import type { IndexStore } from '../../../bridges/acp/session/session-index.js';
import { acpSettings, type AcpServerOptions } from '../../../bridges/acp/settings.js';
import { FakeBand, type FakePerson } from './fake-band.js';
import { checkFrames } from './schema.js';

interface Meta {
  readonly 'band.ai': Readonly<Record<string, unknown>>;
}
export interface SelectOption {
  readonly id: string;
  readonly type: string;
  readonly currentValue: string;
  readonly options: readonly { readonly value: string; readonly name: string }[];
}

/** Any of the protocol's answers, with the fields that tests look at. */
export interface Answer {
  readonly protocolVersion: number;
  readonly agentCapabilities: { readonly _meta: Meta };
  readonly authMethods: readonly unknown[];
  readonly sessionId: string;
  readonly modes: { readonly currentModeId: string };
  readonly configOptions: readonly SelectOption[];
  readonly sessions: readonly { readonly sessionId: string; readonly cwd: string }[];
  readonly nextCursor?: string;
  readonly stopReason: string;
  readonly _meta: Meta;
}

/** Any update of a session, with the fields that tests look at. */
export interface Update {
  readonly sessionUpdate: string;
  readonly messageId: string;
  readonly content: { readonly type: string; readonly text: string };
  readonly title: string;
  readonly availableCommands: readonly { readonly name: string; readonly description: string }[];
  readonly configOptions: readonly SelectOption[];
  readonly _meta: Meta;
}

export interface Frame {
  readonly jsonrpc: '2.0';
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Answer;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

/** The update that a frame carries. */
export function updateOf(frame: Frame): Update | undefined {
  return frame.method === 'session/update' ? (frame.params?.['update'] as Update | undefined) : undefined;
}

/** The answer itself. @throws for a refusal */
export function resultOf(frame: Frame): Answer {
  if (!frame.result) throw new Error(`refused: ${JSON.stringify(frame.error)}`);
  return frame.result;
}

export interface Lab {
  readonly clock: ManualClock;
  readonly band: FakeBand;
  readonly server: AcpServer;
  /** A connected editor that has said `initialize`. */
  editor(options?: { initialize?: boolean; notices?: boolean; principal?: string | null }): Promise<EditorEnd>;
  close(): Promise<void>;
}

export interface LabOptions {
  readonly peers?: readonly FakePerson[];
  readonly options?: AcpServerOptions;
  readonly band?: FakeBand;
  readonly clock?: ManualClock;
  /** Band is there from the start; default true. */
  readonly ready?: boolean;
  readonly log?: Logger;
  readonly authentication?: Authentication;
  readonly indexStore?: IndexStore;
}

/** A server between a fake Band and editors whose frames are written and read raw. */
export async function createLab(options: LabOptions = {}): Promise<Lab> {
  const clock = options.clock ?? createManualClock();
  const band = options.band ?? new FakeBand(options.peers ?? []);
  const ends: EditorEnd[] = [];
  const server = await createAcpServer({
    options: parseOptions(acpSettings, options.options ?? {}),
    version: '0.1.0',
    authentication: options.authentication ?? { isGood: true, check: () => Promise.resolve() },
    clock,
    log: options.log ?? silentLogger,
    ...(options.indexStore ? { indexStore: options.indexStore } : {}),
  });
  band.deliver = (row, roomId) => server.sessions.deliver(row, roomId, null);
  if (options.ready !== false) makeReady(server, band);
  return {
    clock,
    band,
    server,
    async editor({ initialize = true, notices = false, principal = null } = {}) {
      const end = new EditorEnd(server, clock, principal);
      ends.push(end);
      if (initialize) await end.initialize(notices);
      return end;
    },
    async close() {
      const closing = server.close();
      await clock.advance(5_000);
      await closing;
      for (const end of ends) checkFrames(end.frames, end.asked);
    },
  };
}

export function makeReady(server: AcpServer, band: FakeBand): void {
  const me = { ...band.self, owner_uuid: band.owner.id, description: 'bridge' };
  server.gate.set({ kind: 'ready', access: bandAccess(band.rest, me) });
}

/** An editor's end of a connection: raw frames both ways. */
export class EditorEnd {
  readonly frames: Frame[] = [];
  /** The method of each request sent, by its id. */
  readonly asked = new Map<unknown, string>();
  readonly connection: EditorConnection;
  /** While set, frames are not read: an editor that hangs. */
  blocked: Promise<void> | null = null;
  readonly #clock: ManualClock;
  #push!: (message: AnyMessage) => void;
  #end!: () => void;
  #nextId = 0;

  constructor(server: AcpServer, clock: ManualClock, principal: string | null) {
    this.#clock = clock;
    const stream: Stream = {
      readable: new ReadableStream<AnyMessage>({
        start: (controller) => {
          this.#push = (message) => {
            controller.enqueue(message);
          };
          this.#end = () => {
            controller.close();
          };
        },
      }),
      writable: new WritableStream<AnyMessage>({
        write: async (message) => {
          await this.blocked;
          this.frames.push(JSON.parse(JSON.stringify(message)) as Frame);
        },
      }),
    };
    this.connection = server.connect(stream, principal);
  }

  /** Writes a frame as it is. */
  send(message: unknown): void {
    this.#push(message as AnyMessage);
  }

  notify(method: string, params: unknown): void {
    this.send({ jsonrpc: '2.0', method, params });
  }

  /** Sends a request and hands back its id. */
  ask(method: string, params: unknown, id: string | number = (this.#nextId += 1)): string | number {
    this.asked.set(id, method);
    this.send({ jsonrpc: '2.0', id, method, params });
    return id;
  }

  hangUp(): void {
    this.#end();
  }

  answerTo(id: string | number | null): Frame | undefined {
    return this.frames.find((frame) => frame.id === id && frame.method === undefined);
  }

  /** Lets everything that is due now happen. */
  async settle(): Promise<void> {
    for (let i = 0; i < 6; i += 1) await this.#clock.advance(0);
  }

  /** The answer to a request that needs no time to pass. */
  async request(method: string, params: unknown): Promise<Frame> {
    const id = this.ask(method, params);
    for (let i = 0; i < 50 && !this.answerTo(id); i += 1) await this.#clock.advance(0);
    const answer = this.answerTo(id);
    if (!answer) throw new Error(`no answer to ${method}`);
    return answer;
  }

  async initialize(notices = false): Promise<Frame> {
    return this.request('initialize', {
      protocolVersion: 1,
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true },
        terminal: true,
        ...(notices ? { session: { notices: {} } } : {}),
      },
      clientInfo: { name: 'zed', title: 'Zed', version: '1.19.2' },
    });
  }

  /** Opens a session; @returns its id */
  async newSession(params: Record<string, unknown> = {}): Promise<string> {
    const answer = await this.request('session/new', { cwd: '/home/ana/shop', mcpServers: [], ...params });
    if (!answer.result) throw new Error(JSON.stringify(answer.error));
    await this.settle();
    return answer.result.sessionId;
  }

  prompt(sessionId: string, text: string | unknown[], id?: string | number): string | number {
    const prompt = typeof text === 'string' ? [{ type: 'text', text }] : text;
    return id === undefined
      ? this.ask('session/prompt', { sessionId, prompt })
      : this.ask('session/prompt', { sessionId, prompt }, id);
  }

  /** Updates of one kind, of one session where one is named. */
  updates(kind: string, sessionId?: string): Update[] {
    return this.frames
      .filter((frame) => sessionId === undefined || frame.params?.['sessionId'] === sessionId)
      .flatMap((frame) => updateOf(frame) ?? [])
      .filter((update) => update.sessionUpdate === kind);
  }

  /** Text that the agent's side said, in order. */
  said(sessionId?: string): string[] {
    return this.updates('agent_message_chunk', sessionId).map((update) => update.content.text);
  }

  indexOf(match: (frame: Frame) => boolean): number {
    return this.frames.findIndex(match);
  }
}
