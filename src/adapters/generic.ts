import { Capability, type FeatureOptions } from '../core/features.js';
import type { HistoryProvider } from '../core/history.js';
import type { PlatformMessage } from '../core/platform-message.js';
import { SimpleAdapter, type MessageContext } from '../core/simple-adapter.js';
import type { AgentToolsProtocol } from '../core/tools.js';

/** One turn, as a {@link GenericAdapter} hands it over. */
export interface GenericTurn {
  readonly message: PlatformMessage;
  readonly tools: AgentToolsProtocol;
  /** What was said before, on a room session's first turn; afterwards empty. */
  readonly history: HistoryProvider;
  /** Who is in the room, when that changed; else null. */
  readonly participantsMsg: string | null;
  /** Contact notices that wait to be shown; else null. */
  readonly contactsMsg: string | null;
  readonly roomId: string;
  readonly isSessionBootstrap: boolean;
  /** Aborts on interrupt, stop, cycle timeout and shutdown. */
  readonly signal: AbortSignal;
}

/** Answers one message. Resolving means done; throwing means that the attempt failed. */
export type GenericCallback = (turn: GenericTurn) => Promise<void>;

/**
 * An adapter of one function:
 *
 * ```ts
 * new GenericAdapter(async ({ message, tools }) => {
 *   await tools.sendMessage(`echo: ${message.content}`, [{ id: message.senderId }]);
 * });
 * ```
 */
export class GenericAdapter extends SimpleAdapter {
  static override readonly SUPPORTED_CAPABILITIES: ReadonlySet<Capability> = new Set(Object.values(Capability));

  readonly #callback: GenericCallback;

  /**
   * @param options - features; this adapter supports no emit kinds, and both capabilities
   * @throws {TypeError} when the callback is no function, or for an unknown option
   * @throws {BandConfigError} for an unsupported emit kind or capability
   */
  constructor(callback: GenericCallback, options: FeatureOptions = {}) {
    super(options);
    if (typeof callback !== 'function') throw new TypeError('GenericAdapter takes a function that answers one message');
    this.#callback = callback;
  }

  async onMessage(
    message: PlatformMessage,
    tools: AgentToolsProtocol,
    history: HistoryProvider,
    participantsMsg: string | null,
    contactsMsg: string | null,
    { roomId, isSessionBootstrap, signal }: MessageContext,
  ): Promise<void> {
    await this.#callback({
      message,
      tools,
      history,
      participantsMsg,
      contactsMsg,
      roomId,
      isSessionBootstrap,
      signal,
    });
  }
}
