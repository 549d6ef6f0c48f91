import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BandConfigError, BandToolError } from '../../src/base/band-errors.js';
import { customTool, withCustomTools, type CustomTool } from '../../src/core/custom-tools.js';
import { FakeAgentTools } from '../../src/testing/index.js';

const weather = (over: Partial<CustomTool> = {}): CustomTool => ({
  name: 'get_weather',
  description: 'Tells the weather of a town.',
  parameters: z.object({ town: z.string(), days: z.int().min(1).max(7).default(1) }),
  run: (args) => Promise.resolve(`sunny for ${String(args['days'])} in ${String(args['town'])}`),
  ...over,
});

describe('withCustomTools', () => {
  it('offers the tools after Band’s own, in every format, without bounds', () => {
    const own = new FakeAgentTools();
    const tools = withCustomTools(own, [weather()]);
    const openai = tools.getToolSchemas('openai');
    expect(openai).toHaveLength(own.getToolSchemas('openai').length + 1);
    const parameters = {
      type: 'object',
      properties: { town: { type: 'string' }, days: { type: 'integer', default: 1 } },
      required: ['town'],
    };
    const description = 'Tells the weather of a town.';
    expect(openai.at(-1)).toEqual({ type: 'function', function: { name: 'get_weather', description, parameters } });
    expect(tools.getToolSchemas('anthropic').at(-1)).toEqual({
      name: 'get_weather',
      description,
      input_schema: parameters,
    });
  });

  it('customTool gives run the types of its parameters', async () => {
    const add = customTool({
      name: 'add',
      description: 'Adds two numbers.',
      parameters: z.object({ a: z.number(), b: z.number().default(1) }),
      run: ({ a, b }) => Promise.resolve(a + b),
    });
    expect(await withCustomTools(new FakeAgentTools(), [add]).executeToolCall('add', { a: 2 })).toBe(3);
  });

  it('runs them with checked arguments and leaves the rest of the tools as they are', async () => {
    const own = new FakeAgentTools();
    const tools = withCustomTools(own, [weather()]);
    expect(await tools.executeToolCall('get_weather', { town: 'Oslo' })).toBe('sunny for 1 in Oslo');
    expect(await tools.executeToolCallStructured('get_weather', { town: 'Oslo', days: 9 })).toMatchObject({
      ok: false,
      errorMessage: expect.stringMatching(/^Invalid arguments for get_weather: days: /) as string,
    });
    await tools.sendMessage('hi', ['@user']);
    expect(own.messages).toHaveLength(1);
    expect([tools.roomId, tools.turn, tools.participants.length]).toEqual([own.roomId, own.turn, 2]);
    expect(await tools.executeToolCallStructured('band_no_reply', {})).toMatchObject({ ok: true });
  });

  it('R-277 a call observes unless the tool declares another effect', async () => {
    for (const effect of [undefined, 'observe', 'act', 'reply', 'decline'] as const) {
      const tools = withCustomTools(new FakeAgentTools(), [weather(effect === undefined ? {} : { effect })]);
      await tools.executeToolCall('get_weather', { town: 'Oslo' });
      expect([effect, tools.turn.complete]).toEqual([effect, effect !== undefined && effect !== 'observe']);
    }
  });

  it.each<[string, CustomTool['run']]>([
    ['a throw', () => Promise.reject(new Error('no network'))],
    ['ok: false', () => Promise.resolve({ ok: false, error: 'no network' })],
    ['a text that opens with Error:', () => Promise.resolve('Error: no network')],
    ['the same in another case', () => Promise.resolve('ERROR EXECUTING get_weather')],
  ])('R-278 %s is a failure and records nothing', async (_what, run) => {
    const tools = withCustomTools(new FakeAgentTools(), [weather({ run, effect: 'reply' })]);
    const outcome = await tools.executeToolCallStructured('get_weather', { town: 'Oslo' });
    expect(outcome.ok).toBe(false);
    expect(outcome.errorMessage).not.toBeNull();
    expect(tools.turn.complete).toBe(false);
  });

  it('a text that merely speaks of errors is no failure', async () => {
    const tools = withCustomTools(new FakeAgentTools(), [weather({ run: () => Promise.resolve('errors: none') })]);
    expect(await tools.executeToolCallStructured('get_weather', { town: 'x' })).toMatchObject({ ok: true });
  });

  it('R-271 a BandToolError of a custom tool propagates', async () => {
    const run = () => Promise.reject(new BandToolError('stop here'));
    const tools = withCustomTools(new FakeAgentTools(), [weather({ run })]);
    await expect(tools.executeToolCall('get_weather', { town: 'x' })).rejects.toThrow('stop here');
  });

  it.each(['band_send_message', 'band-band_send_message', 'BAND_new', 'band_anything'])(
    'a tool named %s is refused',
    (name) => {
      expect(() => withCustomTools(new FakeAgentTools(), [weather({ name })])).toThrow(BandConfigError);
    },
  );

  it('two tools of one name are refused', () => {
    expect(() => withCustomTools(new FakeAgentTools(), [weather(), weather()])).toThrow(BandConfigError);
  });

  it('R-273 a tool that changes something is refused once the turn has ended', async () => {
    let ran = 0;
    const run = () => Promise.resolve(void (ran += 1));
    const tools = withCustomTools(new FakeAgentTools(), [weather({ run, effect: 'act' })]);
    tools.turn.end();
    expect(await tools.executeToolCallStructured('get_weather', { town: 'x' })).toMatchObject({ ok: false });
    expect(ran).toBe(0);
  });

  it('tools may be added twice over', async () => {
    const once = withCustomTools(new FakeAgentTools(), [weather()]);
    const twice = withCustomTools(once, [weather({ name: 'get_tide' })]);
    expect(await twice.executeToolCall('get_weather', { town: 'a' })).toBe('sunny for 1 in a');
    expect(await twice.executeToolCall('get_tide', { town: 'b' })).toBe('sunny for 1 in b');
  });
});
