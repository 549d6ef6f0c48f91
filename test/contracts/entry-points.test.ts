import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { exportedNames } from '../support/exported-names.js';

const root = new URL('../../', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { exports: Record<string, string> };

/** The source behind an entry point: `./core` → `src/core/index.ts`. */
function sourceOf(entry: string): string {
  const built = manifest.exports[entry];
  if (built === undefined) throw new Error(`package.json has no entry point ${entry}`);
  return new URL(built.replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts'), root).pathname;
}

interface EntryPoint {
  /** Documented names that exist at run time. */
  readonly values: readonly string[];
  /** Documented names that are types. */
  readonly types?: readonly string[];
  /** Types of options, results and members of the documented ones, so that callers can name them. */
  readonly helperTypes?: readonly string[];
}

const ENTRY_POINTS: Readonly<Record<string, EntryPoint>> = {
  '.': {
    values: [
      ...['Agent', 'AgentConfig', 'ConflictPolicy', 'SessionConfig', 'PlatformMessage', 'PlatformRuntime'],
      ...['AgentRuntime', 'RoomPresence', 'ExecutionContext', 'AgentTools', 'loadAgentConfig', 'BandError'],
      ...['BandConfigError', 'BandConnectionError', 'BandToolError', 'AgentAlreadyRunningError'],
      ...['CleanupIncompleteError', 'RoomExecutionStoppedError', 'ApiError', 'ValidationError', 'ValueError'],
      ...['RuntimeError', 'configureLogging', 'LogSettings', 'GracefulShutdown', 'runWithGracefulShutdown'],
      ...['BAND_SDK_VERSION', 'PROXY_MANAGED_API_KEY'],
    ],
    helperTypes: [
      ...['AgentCreateOptions', 'AgentFromConfigOptions', 'AgentParts', 'RunOptions', 'AgentConfigInit'],
      ...['PlatformRuntimeOptions', 'AgentCredentials', 'LogSettingsInit', 'GracefulShutdownOptions'],
    ],
  },
  './core': {
    values: [
      ...['SimpleAdapter', 'HistoryProvider', 'PlatformMessage', 'InputNotAccepted', 'TurnResultAlreadyReported'],
      // The helpers of a turn.
      ...[
        'Turn',
        'relayReply',
        'deliverReply',
        'DeliveryFailedError',
        'judgeDetachedTurn',
        'customTool',
        'withCustomTools',
      ],
    ],
    types: ['FrameworkAdapter', 'Preprocessor', 'HistoryConverter', 'AgentToolsProtocol', 'AgentInput'],
    helperTypes: [
      ...['MessageContext', 'RestClientPorts', 'SimpleAdapterOptions', 'ExecutionContext', 'PlatformEvent'],
      ...['RawHistoryMessage', 'Participant', 'AdapterFeatures', 'FeatureOptions', 'TurnEffect', 'CustomTool'],
      ...['AgentFailure', 'AnthropicToolSchema', 'ChatMessage', 'ContactAction', 'ContactPages', 'ContactTools'],
      ...[
        'CursorPage',
        'EventCreated',
        'EventType',
        'JsonSchema',
        'MemoryFilters',
        'MemoryType',
        'Mention',
        'MessageSent',
      ],
      ...['NewMemory', 'OpenAiToolSchema', 'Page', 'ParticipantChange', 'ParticipantRole', 'Peer', 'SentStatus'],
      ...['ToolCallOutcome', 'ToolFormat', 'ToolSchema', 'ToolSchemaByFormat', 'WireRecord'],
    ],
  },
  './core/types': {
    values: ['PlatformMessage', 'HistoryProvider', 'ConflictPolicy', 'Emit', 'Capability'],
    types: ['AgentInput', 'PlatformConnection'],
  },
  './runtime/contacts': { values: ['ContactEventConfig', 'ContactEventStrategy'] },
  './runtime/callbacks': {
    values: [],
    types: ['ContactEventCallback', 'ParticipantAddedCallback', 'ParticipantRemovedCallback'],
  },
  './runtime/sessionconfig': { values: ['SessionConfig'] },
  './adapters': {
    values: ['GenericAdapter', 'RelayAdapter'],
    helperTypes: ['GenericCallback', 'GenericTurn', 'RelayPorts', 'RelayOptions', 'RelayOptionsInput'],
  },
};

const sorted = (names: Iterable<string>) => [...names].sort();

describe('entry points', () => {
  it.each(Object.entries(ENTRY_POINTS))(
    '%s hands out exactly the documented names',
    async (entry, { values, types = [], helperTypes = [] }) => {
      const names = exportedNames(sourceOf(entry));
      expect(sorted(names.values)).toEqual(sorted(values));
      expect(sorted(names.types)).toEqual(sorted([...types, ...helperTypes]));
      const loaded = (await import(sourceOf(entry))) as Record<string, unknown>;
      expect(sorted(Object.keys(loaded))).toEqual(sorted(values));
    },
  );

  it('package.json names no other entry point, and each has a source', () => {
    const bridges = ['./adapters/slack', './adapters/a2a', './adapters/acp'];
    expect(sorted(Object.keys(manifest.exports))).toEqual(
      sorted([...Object.keys(ENTRY_POINTS), ...bridges, './testing', './package.json']),
    );
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json');
    expect(entries.filter((entry) => !existsSync(sourceOf(entry)))).toEqual([]);
  });

  it.each([
    ['./adapters/slack', 'SlackAdapter'],
    ['./adapters/a2a', 'A2AGatewayAdapter'],
    ['./adapters/acp', 'BandACPServerAdapter'],
    ['./testing', 'FakeAgentTools'],
    ['./testing', 'createManualClock'],
    ['./testing', 'startSandbox'],
  ])('%s hands out %s', (entry, name) => {
    expect(exportedNames(sourceOf(entry)).values).toContain(name);
  });
});

describe('where names come from', () => {
  it('R-104 SessionConfig comes from its own entry and the root, the same one, and from no types module', async () => {
    const own = await import('../../src/config/session-config.js');
    const main = await import('../../src/index.js');
    expect(main.SessionConfig).toBe(own.SessionConfig);
    expect(Object.keys(manifest.exports).filter((entry) => entry.includes('runtime/types'))).toEqual([]);
    expect(readdirSync(new URL('src/runtime', root)).filter((file) => /^types\.ts$/.test(file))).toEqual([]);
  });

  it('R-088 ConflictPolicy is on the root, with its two values', async () => {
    const { ConflictPolicy } = await import('../../src/index.js');
    expect(ConflictPolicy).toEqual({ SUPERSEDE: 'supersede', REJECT: 'reject' });
  });

  it('R-134 names of contacts and callbacks come from their entries and are not on the root', () => {
    expect(exportedNames(sourceOf('./runtime/contacts')).values).toEqual(
      new Set(['ContactEventConfig', 'ContactEventStrategy']),
    );
    expect(exportedNames(sourceOf('./runtime/callbacks')).types).toContain('ContactEventCallback');
    const main = exportedNames(sourceOf('.'));
    for (const name of ['ContactEventConfig', 'ContactEventStrategy', 'ContactEventCallback']) {
      expect([main.values.has(name), main.types.has(name)]).toEqual([false, false]);
    }
  });

  it('R-138 the root’s PlatformMessage is a mutable type of its own', async () => {
    const { PlatformMessage: Mutable } = await import('../../src/index.js');
    const { PlatformMessage: Frozen } = await import('../../src/core/types.js');
    expect(Mutable).not.toBe(Frozen);
    const message = new Mutable({
      id: 'm',
      roomId: 'r',
      content: 'before',
      senderId: 'u',
      senderType: 'User',
      senderName: null,
      messageType: 'text',
      metadata: {},
      createdAt: new Date(0),
    });
    message.content = 'after';
    expect(message.formatForLlm()).toBe('[User]: after');
  });

  it('R-146 PlatformConnection comes from core/types and is not on the root', () => {
    expect(exportedNames(sourceOf('./core/types')).types).toContain('PlatformConnection');
    const main = exportedNames(sourceOf('.'));
    expect([main.values.has('PlatformConnection'), main.types.has('PlatformConnection')]).toEqual([false, false]);
  });

  it('R-290 the adapter types come from core/types and core', () => {
    const types = exportedNames(sourceOf('./core/types'));
    const core = exportedNames(sourceOf('./core'));
    expect([...types.values]).toEqual(expect.arrayContaining(['PlatformMessage', 'HistoryProvider']));
    expect(core.values).toContain('SimpleAdapter');
    expect([...core.types]).toEqual(expect.arrayContaining(['AgentToolsProtocol', 'HistoryConverter']));
  });
});
