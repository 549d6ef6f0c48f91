import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { ValidationError } from '../../src/base/band-errors.js';
import {
  isSecretSchema,
  optionsFromSnake,
  parseOptions,
  secret,
  setting,
  settingsGroup,
  type OptionsInputOf,
  type OptionsOf,
} from '../../src/config/setting.js';

const group = settingsGroup('demo', {
  bot_token: setting(z.string(), { help: 'The token.', secret: true }),
  turn_timeout_seconds: setting(z.number().positive().default(900), { help: 'Seconds.', aliases: ['DEMO_TIMEOUT'] }),
  proxy: setting(z.url().optional(), { help: 'A proxy.' }),
  apps: setting(
    z
      .array(
        z.strictObject({
          slug: z.string().default('main'),
          signing_secret: secret(z.string()).optional(),
          nested_list: z.array(z.union([z.string(), z.strictObject({ user_id: z.string() })])).default([]),
        }),
      )
      .default([]),
    { help: 'Apps.' },
  ),
  slash_commands: setting(z.record(z.string(), z.strictObject({ peer_id: z.string() })).default({}), { help: 'Map.' }),
  socket: { ping_timeout_ms: setting(z.number().default(15_000), { help: 'Milliseconds.' }) },
});

type Options = OptionsOf<typeof group>;
type Input = OptionsInputOf<typeof group>;

/** The issues that a call fails with. */
function issuesOf(call: () => unknown): { path: string; message: string }[] {
  try {
    call();
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    return error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  }
  throw new Error('nothing was refused');
}

describe('parseOptions', () => {
  it('fills in defaults at every level', () => {
    expect(parseOptions(group, { botToken: 't' })).toEqual({
      botToken: 't',
      turnTimeoutSeconds: 900,
      apps: [],
      slashCommands: {},
      socket: { pingTimeoutMs: 15_000 },
    });
  });

  it('reads camelCase inside lists and maps, and leaves the keys of maps alone', () => {
    const options = parseOptions(group, {
      botToken: 't',
      apps: [{ slug: 'one', signingSecret: 's', nestedList: ['a', { userId: 'U1' }] }],
      slashCommands: { my_command: { peerId: 'p' } },
      socket: { pingTimeoutMs: 5 },
    });
    expect(options.apps).toEqual([{ slug: 'one', signingSecret: 's', nestedList: ['a', { userId: 'U1' }] }]);
    expect(options.slashCommands).toEqual({ my_command: { peerId: 'p' } });
    expect(options.socket.pingTimeoutMs).toBe(5);
  });

  it('treats undefined as not given', () => {
    expect(parseOptions(group, { botToken: 't', proxy: undefined, turnTimeoutSeconds: undefined })).toMatchObject({
      turnTimeoutSeconds: 900,
    });
  });

  it.each([
    ['an unknown key', { botToken: 't', nope: 1 }, 'nope'],
    ['an unknown key in a group', { botToken: 't', socket: { pingTimeout: 1 } }, 'socket.ping_timeout'],
    ['an unknown key in a list', { botToken: 't', apps: [{ oops: 1 }] }, 'apps.0.oops'],
    ['the file spelling', { bot_token: 't', botToken: 't' }, 'bot_token'],
  ])('R-153 %s in an options object is an extra input that is not permitted', (_, input, path) => {
    expect(issuesOf(() => parseOptions(group, input as unknown as Input))).toContainEqual({
      path,
      message: 'Extra inputs are not permitted',
    });
  });

  it('reports every problem at once, with snake_case paths', () => {
    const bad = { turnTimeoutSeconds: -1, socket: { pingTimeoutMs: 'x' } } as unknown as Input;
    expect(issuesOf(() => parseOptions(group, bad)).map(({ path }) => path)).toEqual([
      'bot_token',
      'turn_timeout_seconds',
      'socket.ping_timeout_ms',
    ]);
  });

  it('refuses what is no object', () => {
    expect(issuesOf(() => parseOptions(group, 'x' as unknown as Input))).toEqual([
      { path: '', message: 'Input should be an object' },
    ]);
  });

  it('never shows the value of a refused option', () => {
    const call = () => parseOptions(group, { botToken: 12_345_678 } as unknown as Input);
    expect(call).toThrow(expect.not.stringContaining('12345678') as unknown);
  });
});

describe('optionsFromSnake', () => {
  it('hands out camelCase', () => {
    expect(
      optionsFromSnake(group, {
        bot_token: 't',
        apps: [{ signing_secret: 's' }],
        slash_commands: { a_b: { peer_id: 'p' } },
      }),
    ).toMatchObject({
      botToken: 't',
      apps: [{ slug: 'main', signingSecret: 's', nestedList: [] }],
      slashCommands: { a_b: { peerId: 'p' } },
    });
  });

  it('refuses the class spelling', () => {
    expect(issuesOf(() => optionsFromSnake(group, { bot_token: 't', turnTimeoutSeconds: 3 }))).toEqual([
      { path: 'turnTimeoutSeconds', message: 'Extra inputs are not permitted' },
    ]);
  });
});

describe('types', () => {
  it('follow from the declaration', () => {
    expectTypeOf<Options['botToken']>().toEqualTypeOf<string>();
    expectTypeOf<Options['turnTimeoutSeconds']>().toEqualTypeOf<number>();
    expectTypeOf<Options['proxy']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Options['socket']['pingTimeoutMs']>().toEqualTypeOf<number>();
    expectTypeOf<Options['apps'][number]['signingSecret']>().toEqualTypeOf<string | undefined>();
    expectTypeOf<Options['slashCommands'][string]['peerId']>().toEqualTypeOf<string>();
    expectTypeOf<{ botToken: string }>().toExtend<Input>();
    expectTypeOf<{ turnTimeoutSeconds: number }>().not.toExtend<Input>();
    expectTypeOf<{ botToken: string; socket: { pingTimeoutMs: number } }>().toExtend<Input>();
    expectTypeOf<{ botToken: string; apps: { signingSecret: string }[] }>().toExtend<Input>();
  });

  it('a mark of secrecy stays with the schema it was put on', () => {
    const marked = secret(z.string());
    expect(isSecretSchema(marked)).toBe(true);
    expect(isSecretSchema(z.string())).toBe(false);
  });
});
