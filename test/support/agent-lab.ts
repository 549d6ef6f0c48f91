import { pino } from 'pino';
import { GenericAdapter, type GenericCallback, type GenericTurn } from '../../src/adapters/generic.js';
import { Agent, type AgentCreateOptions } from '../../src/agent.js';
import { SessionConfig } from '../../src/config/session-config.js';
import type { SessionConfigFields } from '../../src/config/session-fields.js';
import type { Logger } from '../../src/base/log.js';
import type { AgentPorts } from '../../src/runtime/ports.js';
import { createManualClock, type ManualClock } from '../../src/testing/manual-clock.js';
import { AGENT_ID, FakeBand } from './fake-band.js';

export interface LogLine {
  readonly logger: string;
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Loggers whose lines end in an array. */
export function recordingLog(): { readonly lines: LogLine[]; readonly log: (name: string) => Logger } {
  const lines: LogLine[] = [];
  return {
    lines,
    log: (name) =>
      pino(
        { level: 'debug', base: null },
        { write: (line) => lines.push({ logger: name, ...(JSON.parse(line) as { level: number; msg: string }) }) },
      ),
  };
}

/** An Agent on a fake Band and a clock that moves by hand. */
export interface AgentLab {
  readonly agent: Agent;
  readonly band: FakeBand;
  readonly clock: ManualClock;
  readonly lines: LogLine[];
  /** Texts that the adapter got, in order. */
  readonly handled: string[];
  /** Turns that the adapter got, in order. */
  readonly turns: GenericTurn[];
  readonly adapter: GenericAdapter;
  /** Lets everything that can happen without time passing happen. */
  settle(): Promise<void>;
}

export interface AgentLabOptions {
  /** What the adapter does with a turn; default an answer without words. */
  readonly onTurn?: GenericCallback;
  readonly session?: Partial<SessionConfigFields>;
  readonly agent?: Partial<AgentCreateOptions>;
  readonly band?: FakeBand;
  readonly clock?: ManualClock;
  readonly ports?: Partial<AgentPorts>;
  /** Default 1: the first idle poll comes after a whole interval. */
  readonly random?: () => number;
}

export function agentLab(options: AgentLabOptions = {}): AgentLab {
  const clock = options.clock ?? createManualClock();
  const band = options.band ?? new FakeBand({ now: () => clock.now() });
  const { lines, log } = recordingLog();
  const handled: string[] = [];
  const turns: GenericTurn[] = [];
  const adapter = new GenericAdapter(async (turn) => {
    handled.push(turn.message.content);
    turns.push(turn);
    if (options.onTurn) await options.onTurn(turn);
    else await turn.tools.noReply();
  });
  const agent = Agent.create(
    {
      adapter,
      agentId: AGENT_ID,
      apiKey: 'band_a_lab',
      restUrl: 'http://band.invalid',
      wsUrl: 'ws://band.invalid/socket',
      sessionConfig: new SessionConfig({ enableWorkingState: false, ...options.session }),
      ...options.agent,
      config: { singleInstance: false, ...options.agent?.config },
    },
    {
      clock,
      log,
      random: options.random ?? (() => 1),
      createRest: () => band.rest,
      createLink: () => band.createLink(),
      ...options.ports,
    },
  );
  return {
    agent,
    band,
    clock,
    lines,
    handled,
    turns,
    adapter,
    async settle() {
      for (let turn = 0; turn < 10; turn += 1) await clock.advance(0);
    },
  };
}
