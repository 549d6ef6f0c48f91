import type { Stream } from '@agentclientprotocol/sdk';
import { Background, withDeadline } from '../../src/base/async.js';
import { systemClock, type Clock } from '../../src/base/clock.js';
import { silentLogger, type Logger } from '../../src/base/log.js';
import { createBandGate, type BandGate } from './band.js';
import { openConnection, type Authentication, type EditorConnection } from './client/connection.js';
import { createCounter } from './client/tap.js';
import type { AcpReason } from './errors.js';
import { createLinkWatch } from './inbound/link-watch.js';
import { runPrompt } from './inbound/prompt.js';
import { createRoster } from './roster.js';
import { openSessionIndex, type IndexStore } from './session/session-index.js';
import { Sessions } from './session/sessions.js';
import type { AcpOptions } from './settings.js';

export interface AcpServerDeps {
  readonly options: AcpOptions;
  readonly version: string;
  readonly authentication: Authentication;
  readonly clock?: Clock | undefined;
  readonly log?: Logger | undefined;
  /** Where the session index survives restarts; without one it is built anew from the rooms. */
  readonly indexStore?: IndexStore | null | undefined;
}

/** Editors on one side, an agent's rooms on the other. It works before Band is reached: session calls wait. */
export interface AcpServer {
  readonly options: AcpOptions;
  readonly gate: BandGate;
  readonly sessions: Sessions;
  /** Editors connected now. */
  readonly connections: number;
  /** @param principal - whose sessions this editor sees; null is the person at this host */
  connect(stream: Stream, principal?: string | null): EditorConnection;
  /** The live connection to Band came up or went down; people hear when it is down in a turn. */
  connectionChanged(isConnected: boolean): void;
  /** Ends all running turns with this reason; sessions stay. */
  breakTurns(reason: AcpReason): void;
  /** Ends turns and connections, and waits for work in the background, at most the shutdown time. */
  close(): Promise<void>;
}

/** One message in: stream → tap → connection → session's queue → prompt → room. Back: adapter → session → editors. */
export async function createAcpServer(deps: AcpServerDeps): Promise<AcpServer> {
  const { options, clock = systemClock, log = silentLogger } = deps;
  const gate = createBandGate(clock, options.readyTimeoutMs);
  const background = new Background((error) => {
    log.warn({ err: error }, 'work in the background failed');
  });
  let toldOfIndex = false;
  const index = await openSessionIndex({
    clock,
    log,
    store: deps.indexStore ?? null,
    onWriteError(error) {
      if (!toldOfIndex) log.warn({ err: error }, 'the session index cannot be written; it lives in memory only');
      toldOfIndex = true;
    },
  });
  const link = createLinkWatch(clock);
  const sessions = new Sessions({
    clock,
    log,
    options,
    gate,
    roster: createRoster(clock),
    index,
    background,
    deliverySupport: { isOff: false },
    link,
    runPrompt,
  });
  const next = createCounter();
  const connections = new Set<EditorConnection>();

  return {
    options,
    gate,
    sessions,
    get connections() {
      return connections.size;
    },
    connect(stream, principal = null) {
      const connection = openConnection(stream, principal, {
        sessions,
        options,
        authentication: deps.authentication,
        log,
        version: deps.version,
        agentName: () => gate.access?.self.name ?? null,
        next,
      });
      connections.add(connection);
      background.run(async () => {
        await connection.closed;
        connections.delete(connection);
      });
      return connection;
    },
    connectionChanged: link.changed,
    breakTurns(reason) {
      sessions.breakTurns(reason);
    },
    async close() {
      sessions.stop();
      for (const connection of connections) connection.close();
      await withDeadline(clock, options.shutdownMs, null, () => background.drain()).catch(() => {
        log.warn({ waiting: background.size }, 'stopped before all work in the background was done');
      });
    },
  };
}
