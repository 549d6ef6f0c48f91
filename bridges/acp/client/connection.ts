import { randomUUID } from 'node:crypto';
import {
  agent,
  methods,
  type AgentContext,
  type AgentApp,
  type AgentConnection,
  type AgentRequestContext,
  type InitializeRequest,
  type InitializeResponse,
  type PromptRequest,
  type PromptResponse,
  type SessionUpdate,
  type Stream,
} from '@agentclientprotocol/sdk';
import { childSignal } from '../../../src/base/async.js';
import type { Logger } from '../../../src/base/log.js';
import type { ClientInfo } from '../conversation.js';
import { AcpFault, toRequestError } from '../errors.js';
import { flattenPrompt } from '../parse.js';
import { withMode, withOption } from '../session/options.js';
import { newJob, TurnCancelled } from '../session/prompt-queue.js';
import type { Introduced, OpenParams, Sessions } from '../session/sessions.js';
import { meta } from '../session/updates.js';
import type { AcpOptions } from '../settings.js';
import type { Editor } from './editor.js';
import { tapStream } from './tap.js';

const PROTOCOL_VERSION = 1;
const AUTH_METHOD = 'band_api_key';
const AUTH_ALIASES: ReadonlySet<string> = new Set([AUTH_METHOD, 'api_key', 'cursor_login']);

/** How an editor's person proves that this agent may be used; the key itself never passes here. */
export interface Authentication {
  /** Whether the credentials are there and not known to be bad. */
  readonly isGood: boolean;
  /**
   * Reads the sources anew and asks Band.
   *
   * @throws {AcpFault} `credentials_missing`, `credentials_rejected`, `platform_unavailable`
   */
  check(signal: AbortSignal): Promise<void>;
}

export interface ConnectionDeps {
  readonly sessions: Sessions;
  readonly options: AcpOptions;
  readonly authentication: Authentication;
  readonly log: Logger;
  readonly version: string;
  /** As far as it is known. */
  readonly agentName: () => string | null;
  /** Arrival order over all connections. */
  readonly next: () => number;
}

export interface EditorConnection {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Requests other than prompts that are not answered yet. */
  readonly openRequests: number;
  close(): void;
}

/** Serves one editor on a stream of frames until either side ends it. */
export function openConnection(stream: Stream, principal: string | null, deps: ConnectionDeps): EditorConnection {
  const { sessions, options } = deps;
  const log = deps.log.child({ editor: randomUUID().slice(0, 8) });
  const state = { client: null as ClientInfo | null, notices: false, isClosed: false, openRequests: 0 };
  let out: AgentContext | null = null;
  /** Loads and resumes on their way, by session: what concerns the session waits for them. */
  const opening = new Map<string, Promise<unknown>>();

  const editor: Editor = {
    id: randomUUID(),
    principal,
    get client() {
      return state.client;
    },
    get showsNotices() {
      return state.notices;
    },
    get isClosed() {
      return state.isClosed;
    },
    async update(sessionId: string, update: SessionUpdate) {
      try {
        await out?.notify(methods.client.session.update, { sessionId, update });
      } catch {
        // The connection is gone; its end is handled where it is noticed.
      }
    },
  };
  const tap = tapStream(stream, deps.next, {
    onCancel(sessionId, seq) {
      sessions.find(editor, sessionId)?.session.cancel(seq);
    },
  });

  /** Every answer passes here: known refusals keep their words, anything else becomes a reference. */
  const door =
    <P, R>(handle: (context: AgentRequestContext<P>) => R | Promise<R>) =>
    async (context: AgentRequestContext<P>): Promise<R> => {
      state.openRequests += 1;
      try {
        return await handle(context);
      } catch (error) {
        throw toRequestError(error, log);
      } finally {
        state.openRequests -= 1;
      }
    };
  const settled = async (sessionId: string): Promise<void> => {
    for (let before = opening.get(sessionId); before; before = opening.get(sessionId)) await before;
  };
  const introduce = <T>(opened: Introduced<T>): T => {
    // The SDK queues the answer in a microtask after this handler; what runs later comes later on the wire.
    setImmediate(() => {
      if (!state.isClosed) opened.afterAnswer();
    });
    return opened.response;
  };
  const reopen = async (context: AgentRequestContext<OpenParams & { sessionId: string }>, replay: boolean) => {
    const { sessionId } = context.params;
    const before = opening.get(sessionId) ?? Promise.resolve();
    const work = before.then(() => {
      // Only a load's replay can be called off by the editor; the end of the connection ends both.
      const signal = replay ? context.signal : connection.signal;
      return sessions.reopen(editor, sessionId, context.params, signal, replay);
    });
    const done = work.then(
      () => undefined,
      () => undefined,
    );
    opening.set(sessionId, done);
    try {
      return introduce(await work);
    } catch (error) {
      if (context.signal.aborted) throw new AcpFault('request_cancelled', {}, { cause: error });
      throw error;
    } finally {
      if (opening.get(sessionId) === done) opening.delete(sessionId);
    }
  };
  const prompt = async ({ params, signal, requestId }: AgentRequestContext<PromptRequest>): Promise<PromptResponse> => {
    const seq = tap.seqOf(requestId);
    // A prompt may wait for hours; at the end of input nobody waits for it.
    state.openRequests -= 1;
    try {
      await settled(params.sessionId);
      const { session, attachment } = sessions.attached(editor, params.sessionId);
      const job = newJob(seq, attachment, flattenPrompt(params.prompt, options));
      using both = childSignal(signal);
      const onAbort = () => {
        job.cancel.abort(new TurnCancelled());
      };
      if (both.signal.aborted) onAbort();
      both.signal.addEventListener('abort', onAbort, { once: true });
      return await session.enqueue(job);
    } finally {
      state.openRequests += 1;
    }
  };

  const { agent: on } = methods;
  const app: AgentApp = agent({ name: 'band-gateway' })
    .onRequest(
      on.initialize,
      door(({ params }) => {
        remember(params, state);
        return initializeResponse(deps);
      }),
    )
    .onRequest(
      on.authenticate,
      door(async ({ params }) => {
        if (!AUTH_ALIASES.has(params.methodId))
          throw new AcpFault('unknown_auth_method', { methodId: params.methodId });
        await deps.authentication.check(connection.signal);
        return {};
      }),
    )
    .onRequest(
      on.session.new,
      door(async ({ params }) => introduce(await sessions.create(editor, params, connection.signal))),
    )
    .onRequest(
      on.session.load,
      door((context) => reopen(context, true)),
    )
    .onRequest(
      on.session.resume,
      door(({ params, ...context }) =>
        reopen({ ...context, params: { ...params, mcpServers: params.mcpServers ?? [] } }, false),
      ),
    )
    .onRequest(
      on.session.list,
      door(({ params }) =>
        sessions.list(editor, { cwd: params.cwd ?? null, cursor: params.cursor ?? null }, connection.signal),
      ),
    )
    .onRequest(
      on.session.close,
      door(async ({ params }) => {
        await settled(params.sessionId);
        sessions.close(editor, params.sessionId);
        return {};
      }),
    )
    .onRequest(
      on.session.delete,
      door(async ({ params }) => {
        await settled(params.sessionId);
        await sessions.delete(editor, params.sessionId, connection.signal);
        return {};
      }),
    )
    .onRequest(
      on.session.setMode,
      door(async ({ params }) => {
        await settled(params.sessionId);
        const { session } = sessions.attached(editor, params.sessionId);
        session.choices = withMode(options, session.choices, params.modeId);
        session.markers.due();
        setImmediate(() => {
          session.broadcast({ sessionUpdate: 'config_option_update', configOptions: session.configOptions() });
        });
        return {};
      }),
    )
    .onRequest(
      on.session.setConfigOption,
      door(async ({ params }) => {
        await settled(params.sessionId);
        const { session } = sessions.attached(editor, params.sessionId);
        const before = session.choices;
        session.choices = withOption(options, before, session.people.reachable, params);
        session.markers.due();
        const configOptions = session.configOptions();
        setImmediate(() => {
          if (before.modeId !== session.choices.modeId) {
            session.broadcast({ sessionUpdate: 'current_mode_update', currentModeId: session.choices.modeId });
          }
          for (const other of session.attachments) {
            if (other.editor !== editor) other.send({ sessionUpdate: 'config_option_update', configOptions });
          }
        });
        return { configOptions };
      }),
    )
    .onRequest(on.session.prompt, door(prompt))
    // Heard at the tap already, in the order of arrival.
    .onNotification(on.session.cancel, () => undefined);

  const connection: AgentConnection = app.connect(tap.stream);
  out = connection.client;
  const closed = connection.closed.then(() => {
    state.isClosed = true;
    sessions.detach(editor);
    log.info('editor disconnected');
  });
  log.info('editor connected');
  return {
    closed,
    get openRequests() {
      return state.openRequests;
    },
    close() {
      connection.close();
    },
  };
}

function remember(params: InitializeRequest, state: { client: ClientInfo | null; notices: boolean }): void {
  const info = params.clientInfo;
  state.client = info ? { name: info.name, version: info.version, ...(info.title ? { title: info.title } : {}) } : null;
  state.notices = params.clientCapabilities?.session?.notices != null;
}

/** Answered from local knowledge only. Nothing is offered that is not served. */
function initializeResponse(deps: ConnectionDeps): InitializeResponse {
  const name = deps.agentName();
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: false, audio: false, embeddedContext: true },
      mcpCapabilities: { http: false, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      _meta: meta({ promptQueueing: true, outOfTurnUpdates: deps.options.push !== 'never', observer: false }),
    },
    agentInfo: { name: 'band-gateway', title: name ? `Band: ${name}` : 'Band', version: deps.version },
    authMethods: deps.authentication.isGood
      ? []
      : [
          {
            id: AUTH_METHOD,
            name: 'Band agent key',
            description:
              'Set BAND_AGENT_ID and BAND_API_KEY (or BAND_API_KEY_FILE) for this command, then sign in again.',
          },
        ],
  };
}
