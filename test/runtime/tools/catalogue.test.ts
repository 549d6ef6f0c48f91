import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { NO_FEATURES, type AdapterFeatures, type Capability } from '../../../src/core/features.js';
import { Turn } from '../../../src/core/turn.js';
import { CATALOGUE } from '../../../src/runtime/tools/catalogue.js';
import { FakeAgentTools, type FakeAgentToolsOptions } from '../../../src/testing/index.js';

const ALL = new Set<Capability>(['contacts', 'memory']);
const PEER = { id: 'peer-1', name: 'Planner', type: 'Agent', handle: 'acme/planner' };

const paging = { page: { type: 'integer', default: 1 }, page_size: { type: 'integer', default: 50 } };
const text = { type: 'string' };
const oneOf = (...values: string[]) => ({ type: 'string', enum: values });
const object = { type: 'object', propertyNames: text, additionalProperties: {} };
const identifier = { identifier: text };
const memoryId = { memory_id: text };
const system = oneOf('sensory', 'working', 'long_term');
const type = oneOf('iconic', 'echoic', 'haptic', 'episodic', 'semantic', 'procedural');
const segment = oneOf('user', 'agent', 'tool', 'guideline');

/** Tool, effect, parameters as advertised (without descriptions), the required ones, arguments that work. */
const TOOLS: [string, string, Record<string, unknown>, string[], Record<string, unknown>][] = [
  [
    'band_send_message',
    'reply',
    { content: text, mentions: { type: 'array', items: text } },
    ['content', 'mentions'],
    { content: 'hi', mentions: ['@user'] },
  ],
  [
    'band_send_event',
    'observe',
    { content: text, message_type: oneOf('thought', 'error', 'task'), metadata: object },
    ['content', 'message_type'],
    { content: 'hm', message_type: 'thought' },
  ],
  ['band_no_reply', 'decline', { reason: text }, [], {}],
  [
    'band_add_participant',
    'act',
    { ...identifier, role: { ...oneOf('owner', 'admin', 'member'), default: 'member' } },
    ['identifier'],
    { identifier: '@acme/planner' },
  ],
  ['band_remove_participant', 'act', identifier, ['identifier'], { identifier: '@user' }],
  ['band_get_participants', 'observe', {}, [], {}],
  ['band_lookup_peers', 'observe', paging, [], {}],
  ['band_create_chatroom', 'act', { task_id: text }, [], {}],
  ['band_list_contacts', 'observe', paging, [], {}],
  ['band_add_contact', 'act', { handle: text, message: text }, ['handle'], { handle: '@jane' }],
  ['band_remove_contact', 'act', { handle: text, contact_id: text }, [], { contact_id: 'c1' }],
  [
    'band_list_contact_requests',
    'observe',
    { ...paging, sent_status: { ...oneOf('pending', 'approved', 'rejected', 'cancelled', 'all'), default: 'pending' } },
    [],
    {},
  ],
  [
    'band_respond_contact_request',
    'act',
    { action: oneOf('approve', 'reject', 'cancel'), handle: text, request_id: text },
    ['action'],
    { action: 'approve', handle: '@jane' },
  ],
  [
    'band_list_memories',
    'observe',
    {
      subject_id: text,
      scope: oneOf('subject', 'organization', 'all'),
      system,
      type,
      segment,
      content_query: text,
      page_size: { type: 'integer', default: 50 },
      status: oneOf('active', 'superseded', 'archived', 'all'),
    },
    [],
    {},
  ],
  [
    'band_store_memory',
    'act',
    {
      content: text,
      system,
      type,
      segment,
      thought: text,
      scope: oneOf('subject', 'organization'),
      subject_id: text,
      metadata: object,
    },
    ['content', 'system', 'type', 'segment', 'thought', 'scope'],
    { content: 'c', system: 'working', type: 'semantic', segment: 'user', thought: 't', scope: 'organization' },
  ],
  ['band_get_memory', 'observe', memoryId, ['memory_id'], { memory_id: 'M' }],
  ['band_supersede_memory', 'act', memoryId, ['memory_id'], { memory_id: 'M' }],
  ['band_archive_memory', 'act', memoryId, ['memory_id'], { memory_id: 'M' }],
];

function toolsWith(
  options: FakeAgentToolsOptions &
    Partial<Omit<AdapterFeatures, 'capabilities'>> & { capabilities?: Iterable<Capability> } = {},
) {
  const { capabilities, includeTools, excludeTools, includeCategories, ...rest } = options;
  return new FakeAgentTools({
    peers: [PEER],
    features: {
      ...NO_FEATURES,
      capabilities: new Set(capabilities ?? []),
      includeTools: includeTools ?? null,
      excludeTools: excludeTools ?? null,
      includeCategories: includeCategories ?? null,
    },
    ...rest,
  });
}
const offered = (tools: FakeAgentTools) => tools.getToolSchemas('anthropic').map(({ name }) => name);
const named = (prefix: RegExp) => TOOLS.map(([name]) => name).filter((name) => prefix.test(name));
const CHAT = TOOLS.slice(0, 8).map(([name]) => name);
const CONTACTS = TOOLS.slice(8, 13).map(([name]) => name);
const MEMORY = TOOLS.slice(13).map(([name]) => name);

/** A schema without its descriptions, which are words and not promises. */
function bare(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(bare);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => !(key === 'description' && typeof value === 'string'))
      .map(([key, value]) => [key, bare(value)]),
  );
}

describe('tool catalogue', () => {
  it('R-263 holds exactly the documented tools, each with a description of its own', () => {
    expect(CATALOGUE.map(({ name }) => name)).toEqual(TOOLS.map(([name]) => name));
    expect(new Set(CATALOGUE.map(({ description }) => description)).size).toBe(TOOLS.length);
  });

  it.each(TOOLS)(
    'R-263 %s has the documented parameters in both formats, without number bounds',
    (name, _effect, properties, required) => {
      const tools = toolsWith({ capabilities: ALL });
      const parameters = { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
      const openai = tools.getToolSchemas('openai').find((schema) => schema.function.name === name);
      const anthropic = tools.getToolSchemas('anthropic').find((schema) => schema.name === name);
      expect(openai?.type).toBe('function');
      expect(bare(openai?.function.parameters)).toEqual(parameters);
      expect(anthropic).toEqual({
        name,
        description: openai?.function.description,
        input_schema: openai?.function.parameters,
      });
      expect(JSON.stringify(openai)).not.toMatch(/"(minimum|maximum|exclusiveM)/);
      expect(
        Object.values(anthropic?.input_schema['properties'] as object).every((one: object) => 'description' in one),
      ).toBe(true);
    },
  );

  it.each(TOOLS)(
    'R-277 %s has the effect %s when it succeeds, and none when it fails',
    async (name, effect, _properties, _required, args) => {
      const run = async (broken: boolean) => {
        const turn = new Turn();
        const tools = toolsWith({ turn, capabilities: ALL });
        const stored = (
          await tools.storeMemory({
            content: 'c',
            system: 'working',
            type: 'semantic',
            segment: 'user',
            thought: 't',
            scope: 'organization',
          })
        )['id'];
        const fresh = new Turn();
        Object.defineProperty(tools, 'turn', { value: fresh });
        const filled = Object.fromEntries(
          Object.entries(args).map(([key, value]) => [key, value === 'M' ? stored : value]),
        );
        if (broken) for (const method of CALLS) tools.failNext(method, new Error('broken'));
        const outcome = await tools.executeToolCallStructured(name, filled);
        return { outcome, turn: fresh };
      };
      const good = await run(false);
      expect(good.outcome).toMatchObject({ ok: true, errorMessage: null });
      expect([good.turn.complete, good.turn.replied]).toEqual([
        effect !== 'observe',
        effect === 'reply' || effect === 'decline',
      ]);
      expect(CATALOGUE.find((spec) => spec.name === name)?.effect).toBe(effect);
      if (name === 'band_no_reply') return;
      const bad = await run(true);
      expect(bad.outcome).toMatchObject({ ok: false, value: `Error executing ${name}: broken` });
      expect(bad.turn.complete).toBe(false);
    },
  );

  const CALLS = [
    'postMessage',
    'postEvent',
    'listParticipants',
    'listPeers',
    'createChat',
    'contacts.list',
    'contacts.add',
    'contacts.remove',
    'contacts.requests',
    'contacts.respond',
    'memories.list',
    'memories.store',
    'memories.get',
    'memories.supersede',
    'memories.archive',
  ];

  it.each([
    ['band_send_message', {}, 'Invalid arguments for band_send_message: content: '],
    ['band_send_message', { content: 'x' }, 'Invalid arguments for band_send_message: mentions: '],
    ['band_send_message', { content: 'x', mentions: [1] }, 'Invalid arguments for band_send_message: mentions.0: '],
    [
      'band_send_event',
      { content: 'x', message_type: 'text' },
      'Invalid arguments for band_send_event: message_type: ',
    ],
    ['band_lookup_peers', { page: 0 }, 'Invalid arguments for band_lookup_peers: page: '],
    ['band_lookup_peers', { page_size: 101 }, 'Invalid arguments for band_lookup_peers: page_size: '],
    ['band_lookup_peers', { page: 1.5 }, 'Invalid arguments for band_lookup_peers: page: '],
    ['band_list_contacts', { page_size: 0 }, 'Invalid arguments for band_list_contacts: page_size: '],
    ['band_list_memories', { page_size: 51 }, 'Invalid arguments for band_list_memories: page_size: '],
    ['band_add_participant', { identifier: 'x', role: 'king' }, 'Invalid arguments for band_add_participant: role: '],
  ])('R-263 %s with %j is refused in one line', async (name, args, start) => {
    const tools = toolsWith({ capabilities: ALL });
    const outcome = await tools.executeToolCallStructured(name, args);
    expect(outcome.ok).toBe(false);
    expect(outcome.errorMessage?.startsWith(start)).toBe(true);
    expect(outcome.errorMessage).not.toContain('\n');
    expect(outcome.value).toBe(outcome.errorMessage);
    expect(tools.calls).toEqual([]);
  });

  it.each([[null], ['{"content":"x"}'], [undefined], [7], [['content']]])(
    'R-263 arguments that are no object (%j) are refused in one line',
    async (args) => {
      const outcome = await toolsWith().executeToolCallStructured('band_no_reply', args as never);
      expect(outcome.ok).toBe(false);
      expect(outcome.errorMessage).toMatch(/^Invalid arguments for band_no_reply: .*expected object/);
    },
  );

  it('R-263 several bad arguments are named in the one line', async () => {
    const outcome = await toolsWith().executeToolCallStructured('band_send_message', { mentions: 'x' });
    expect(outcome.errorMessage).toMatch(/^Invalid arguments for band_send_message: content: .*, mentions: /);
  });

  it('R-263 an unknown tool is named', async () => {
    expect(await toolsWith().executeToolCallStructured('band_fly', {})).toEqual({
      value: 'Unknown tool: band_fly',
      ok: false,
      errorMessage: 'Unknown tool: band_fly',
    });
  });

  it('R-263 defaults are filled in at execution', async () => {
    const tools = toolsWith();
    await tools.executeToolCall('band_lookup_peers', {});
    expect(tools.calls).toEqual([{ method: 'listPeers', args: [{ page: 1, pageSize: 50, notInChat: 'room-1' }] }]);
  });

  it('R-263 null counts as not given, and name is taken for identifier', async () => {
    const tools = toolsWith();
    expect(await tools.executeToolCall('band_add_participant', { name: 'Planner', role: null })).toMatchObject({
      id: 'peer-1',
      role: 'member',
      status: 'added',
    });
    expect(await tools.executeToolCall('band_remove_participant', { identifier: null, name: 'Planner' })).toMatchObject(
      {
        status: 'removed',
      },
    );
  });

  it('R-263 Band’s tools also go by their MCP spelling, and by no other prefix', async () => {
    const call = async (name: string) => (await toolsWith().executeToolCallStructured(name, {})).errorMessage;
    expect(await call('band-band_no_reply')).toBeNull();
    const tools = toolsWith();
    await tools.executeToolCall('band-band_send_message', { content: 'hi', mentions: ['@user'] });
    expect(tools.turn.replied).toBe(true);
    for (const name of [
      'mcp-band_no_reply',
      'mcp__band__band_no_reply',
      'band_band_no_reply',
      'xband-band_no_reply',
      'no_reply',
    ]) {
      expect(await call(name)).toBe(`Unknown tool: ${name}`);
    }
  });

  it('R-263 names of object properties are no tools', async () => {
    for (const name of ['constructor', '__proto__', 'toString', 'band-']) {
      expect(await toolsWith().executeToolCallStructured(name, {})).toMatchObject({ ok: false });
    }
  });
});

describe('tools on offer', () => {
  it('the room’s tools always, contacts and memory with their capability', () => {
    expect(offered(toolsWith())).toEqual(CHAT);
    expect(offered(toolsWith({ capabilities: ['contacts'] }))).toEqual([...CHAT, ...CONTACTS]);
    expect(offered(toolsWith({ capabilities: ['memory'] }))).toEqual([...CHAT, ...MEMORY]);
    expect(toolsWith().getToolSchemas('openai', { capabilities: ALL })).toHaveLength(TOOLS.length);
  });

  it('R-261 contact tools are on offer in the hub room whatever the capabilities', () => {
    expect(offered(toolsWith({ isHubRoom: true }))).toEqual([...CHAT, ...CONTACTS]);
  });

  it('filters narrow in the order category, inclusion, exclusion', () => {
    const capabilities = ALL;
    expect(offered(toolsWith({ capabilities, includeCategories: new Set(['memory']) }))).toEqual(MEMORY);
    const includeTools = new Set(['band_no_reply', 'band_get_memory', 'band_list_contacts']);
    expect(offered(toolsWith({ capabilities, includeTools }))).toEqual(named(/no_reply|list_contacts|get_memory/));
    expect(
      offered(
        toolsWith({
          capabilities,
          includeCategories: new Set(['memory', 'chat']),
          includeTools,
          excludeTools: new Set(['band_no_reply']),
        }),
      ),
    ).toEqual(['band_get_memory']);
    // A filter cannot bring back what the capability does not allow.
    expect(offered(toolsWith({ includeTools: new Set(['band_get_memory']) }))).toEqual([]);
  });

  it('unknown filter names are warned about once and do no harm', () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const features = {
      ...NO_FEATURES,
      includeTools: new Set(['band_no_reply', 'band_fly']),
      excludeTools: new Set(['band_swim']),
      includeCategories: new Set(['chat', 'sports']),
    };
    for (let turn = 0; turn < 3; turn += 1) {
      expect(offered(new FakeAgentTools({ features, turn: new Turn({ log }) }))).toEqual(['band_no_reply']);
    }
    expect(lines.map((line) => (JSON.parse(line) as { name: string }).name).sort()).toEqual([
      'band_fly',
      'band_swim',
      'sports',
    ]);
  });

  it('a tool that the adapter left out cannot be called by guessing its name', async () => {
    const tools = toolsWith({ excludeTools: new Set(['band_create_chatroom']) });
    expect(await tools.executeToolCallStructured('band_create_chatroom', {})).toMatchObject({
      ok: false,
      errorMessage: 'Unknown tool: band_create_chatroom',
    });
    expect(tools.calls).toEqual([]);
  });

  it('a caller may change the schemas it got', () => {
    const tools = toolsWith();
    const [first] = tools.getToolSchemas('anthropic');
    (first?.input_schema['properties'] as Record<string, unknown>)['content'] = 'broken';
    expect(tools.getToolSchemas('anthropic')[0]?.input_schema['properties']).not.toMatchObject({ content: 'broken' });
  });
});
