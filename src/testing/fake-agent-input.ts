import { createAgentInput, type AgentInput } from '../core/agent-input.js';
import { HistoryProvider, type RawHistoryMessage } from '../core/history.js';
import { PlatformMessage, type PlatformMessageFields } from '../core/platform-message.js';
import type { AgentToolsProtocol } from '../core/tools.js';
import { FakeAgentTools } from './fake-agent-tools.js';

export interface FakeAgentInputOptions extends Partial<Omit<PlatformMessageFields, 'roomId'>> {
  /** Default {@link FakeAgentTools} of its own; the message's room is the tools' room. */
  readonly tools?: AgentToolsProtocol;
  readonly history?: readonly RawHistoryMessage[];
  readonly participantsMsg?: string | null;
  readonly contactsMsg?: string | null;
  readonly isSessionBootstrap?: boolean;
  readonly commitContext?: () => void;
  readonly signal?: AbortSignal;
}

/** A turn's input for tests: a text of `User` in the tools' room, unless said otherwise. */
export function fakeAgentInput(options: FakeAgentInputOptions = {}): AgentInput {
  const tools = options.tools ?? new FakeAgentTools();
  return createAgentInput({
    msg: new PlatformMessage({
      id: options.id ?? 'message-1',
      roomId: tools.roomId,
      content: options.content ?? 'hello',
      senderId: options.senderId ?? 'user-1',
      senderType: options.senderType ?? 'User',
      senderName: options.senderName === undefined ? 'User' : options.senderName,
      messageType: options.messageType ?? 'text',
      metadata: options.metadata ?? {},
      createdAt: options.createdAt ?? new Date(Date.UTC(2026, 0, 1)),
    }),
    tools,
    history: new HistoryProvider(options.history ?? []),
    participantsMsg: options.participantsMsg ?? null,
    contactsMsg: options.contactsMsg ?? null,
    isSessionBootstrap: options.isSessionBootstrap ?? false,
    roomId: tools.roomId,
    commitContext: options.commitContext ?? null,
    signal: options.signal ?? new AbortController().signal,
  });
}
