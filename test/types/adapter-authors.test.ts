import { describe, expectTypeOf, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/index.js';
import { SessionConfig } from '../../src/config/session-config.js';
import {
  SimpleAdapter,
  type AgentInput,
  type AgentToolsProtocol,
  type FrameworkAdapter,
  type HistoryConverter,
  type HistoryProvider,
  type MessageContext,
  type MessageSent,
  type PlatformMessage,
  type Preprocessor,
  type RawHistoryMessage,
} from '../../src/core/index.js';
import { Emit, type Capability, type ConflictPolicy, type PlatformConnection } from '../../src/core/types.js';
import type { ContactEventCallback, ParticipantAddedCallback } from '../../src/runtime/callbacks.js';
import { ContactEventConfig } from '../../src/runtime/contacts.js';
import type { AgentTools } from '../../src/runtime/tools/agent-tools.js';
import type { FakeAgentTools } from '../../src/testing/index.js';

/**
 * What callers may write, and what the compiler must refuse. These are checked by the type check of the tests, not at
 * run time: each line under `@ts-expect-error` has to be an error.
 */
describe('types that adapter authors rely on', () => {
  it('an adapter gets the history its converter makes, or the provider', () => {
    class Plain extends SimpleAdapter {
      onMessage(
        msg: PlatformMessage,
        tools: AgentToolsProtocol,
        history: HistoryProvider,
        participantsMsg: string | null,
        contactsMsg: string | null,
        ctx: MessageContext,
      ): Promise<void> {
        expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(history.raw).toEqualTypeOf<readonly RawHistoryMessage[]>();
        return tools.sendMessage(msg.content + String(participantsMsg) + String(contactsMsg)).then(() => undefined);
      }
    }
    class Converted extends SimpleAdapter<string[]> {
      constructor(historyConverter: HistoryConverter<string[]>) {
        super({ historyConverter, emit: Emit.THOUGHTS });
      }
      async onMessage(_msg: PlatformMessage, _tools: AgentToolsProtocol, history: string[]): Promise<void> {
        await Promise.resolve(history.join());
      }
    }
    expectTypeOf<Plain>().toExtend<FrameworkAdapter>();
    expectTypeOf<Converted>().toExtend<FrameworkAdapter>();
    expectTypeOf<Converted>().toExtend<SimpleAdapter<unknown>>();
    expectTypeOf<Plain['requirePlatform']>().returns.toEqualTypeOf<PlatformConnection>();

    // @ts-expect-error -- an adapter has to say what it does with a message
    class Empty extends SimpleAdapter {}
    // @ts-expect-error -- the converter has to make what onMessage takes
    const wrong = () => new Converted({ convert: () => 7 });
    expectTypeOf(wrong).toBeFunction();
    expectTypeOf<Empty>().toBeObject();
  });

  it('any object with the three hooks is an adapter', () => {
    expectTypeOf<{
      onEvent(input: AgentInput): Promise<void>;
      onCleanup(roomId: string): Promise<void>;
      onStarted(name: string, description: string): Promise<void>;
    }>().toExtend<FrameworkAdapter>();
    expectTypeOf<{ onEvent(input: AgentInput): Promise<void> }>().not.toExtend<FrameworkAdapter>();
  });

  it('what adapters receive is read-only', () => {
    const change = (input: AgentInput, connection: PlatformConnection) => {
      // @ts-expect-error -- it is frozen
      input.roomId = 'other';
      // @ts-expect-error -- it is frozen
      input.msg.content = 'other';
      // @ts-expect-error -- it is frozen
      input.history.raw.length = 0;
      // @ts-expect-error -- it is frozen
      connection.apiKey = 'other';
    };
    expectTypeOf(change).toBeFunction();
    expectTypeOf<AgentInput['commitContext']>().toEqualTypeOf<(() => void) | null | undefined>();
    expectTypeOf<AgentInput['participantsMsg']>().toEqualTypeOf<string | null>();
    expectTypeOf<PlatformMessage['metadata']>().toBeUnknown();
    expectTypeOf<PlatformMessage['senderName']>().toEqualTypeOf<string | null>();
    expectTypeOf<PlatformMessage['createdAt']>().toEqualTypeOf<Date>();
  });

  it('the tools speak the documented types', () => {
    expectTypeOf<AgentTools>().toExtend<AgentToolsProtocol>();
    expectTypeOf<FakeAgentTools>().toExtend<AgentToolsProtocol>();
    expectTypeOf<AgentToolsProtocol['sendMessage']>().returns.resolves.toEqualTypeOf<MessageSent | null>();
    expectTypeOf<AgentToolsProtocol['createChatroom']>().returns.resolves.toEqualTypeOf<string>();
    expectTypeOf<AgentToolsProtocol['noReply']>().returns.resolves.toEqualTypeOf<{ status: 'no_reply' }>();
    const use = (tools: AgentToolsProtocol) => {
      expectTypeOf(tools.getToolSchemas('openai')[0]!.function.name).toBeString();
      expectTypeOf(tools.getToolSchemas('anthropic')[0]!.input_schema).toBeObject();
      void tools.sendMessage('hi', ['@user', { id: 'u' }, { id: 'u', handle: 'user' }]);
      void tools.sendEvent('hm', 'tool_call', { id: 'c' });
      // @ts-expect-error -- a text is no event
      void tools.sendEvent('hm', 'text');
      // @ts-expect-error -- no such format
      tools.getToolSchemas('gemini');
      // @ts-expect-error -- a mention without an id
      void tools.sendMessage('hi', [{ handle: 'user' }]);
      // @ts-expect-error -- no such role
      void tools.addParticipant('@x', 'king');
      // @ts-expect-error -- bound to one room
      tools.roomId = 'other';
    };
    expectTypeOf(use).toBeFunction();
  });

  it('settings are given by name; unknown ones are allowed, wrong ones are not', () => {
    expectTypeOf(SessionConfig).toBeConstructibleWith();
    expectTypeOf(SessionConfig).toBeConstructibleWith({ idleResyncSeconds: 30, maxCycleSeconds: null, unknown: true });
    const wrong = () => {
      // @ts-expect-error -- a number of seconds
      new SessionConfig({ idleResyncSeconds: 'soon' });
      // @ts-expect-error -- may not be null
      new SessionConfig({ maxMessageRetries: null });
      // @ts-expect-error -- by name only
      new SessionConfig(30);
      // @ts-expect-error -- it is frozen
      new SessionConfig().maxMessageRetries = 2;
    };
    expectTypeOf(wrong).toBeFunction();
    expectTypeOf<SessionConfig['stoppedResyncSeconds']>().toEqualTypeOf<number | null>();
  });

  it('callbacks and features take what is documented', () => {
    const contact: ContactEventCallback = async (event, tools) => {
      if (event.kind === 'contact_request_received') {
        expectTypeOf(event.request.id).toBeString();
        await tools.respondContactRequest('approve', { requestId: event.request.id });
      }
    };
    const added: ParticipantAddedCallback = (roomId, event) => {
      expectTypeOf(roomId).toBeString();
      expectTypeOf(event.participant.name).toBeString();
    };
    expectTypeOf(added).toBeFunction();
    expectTypeOf(ContactEventConfig).toBeConstructibleWith({ strategy: 'callback', onEvent: contact });
    expectTypeOf<Emit>().toEqualTypeOf<'tool_calls' | 'thoughts' | 'task_events' | 'usage'>();
    expectTypeOf<Capability>().toEqualTypeOf<'memory' | 'contacts'>();
    expectTypeOf<ConflictPolicy>().toEqualTypeOf<'supersede' | 'reject'>();
    const wrong = () => {
      // @ts-expect-error -- no such strategy
      new ContactEventConfig({ strategy: 'sometimes' });
      // @ts-expect-error -- no such capability
      new GenericAdapter(() => Promise.resolve(), { capabilities: ['flying'] });
      // @ts-expect-error -- an adapter's own settings are no features
      new GenericAdapter(() => Promise.resolve(), { model: 'x' });
    };
    expectTypeOf(wrong).toBeFunction();
  });

  it('a preprocessor may leave events out or change them', () => {
    const only: Preprocessor = {
      process: (ctx, event) =>
        event.kind === 'message_created' ? ctx.createInput(ctx.toMessage(event)) : Promise.resolve(null),
    };
    expectTypeOf(only).toExtend<Preprocessor>();
    expectTypeOf<Preprocessor['process']>().returns.resolves.toEqualTypeOf<AgentInput | null>();
  });
});
