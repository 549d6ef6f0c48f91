import { describe, expect, it } from 'vitest';
import { ValidationError } from '../../../src/base/band-errors.js';
import { parseOptions } from '../../../src/config/setting.js';
import { resolveApps } from '../../../bridges/slack/apps.js';
import { slackSettings, type SlackOptionsInput } from '../../../bridges/slack/settings.js';

const resolve = (input: SlackOptionsInput) => resolveApps(parseOptions(slackSettings, input));
const http = { botToken: 'xoxb-1', signingSecret: 's3cret' };
const socket = { botToken: 'xoxb-1', appToken: 'xapp-1' };

describe('the apps of the settings', () => {
  it('S-001 an empty list is refused with a sentence that asks for at least one app', () => {
    expect(() => resolve({ apps: [] })).toThrow('at least one SlackApp is required');
    expect(() => resolve({})).toThrow('at least one SlackApp is required');
  });

  it('S-002 HTTP without a signing secret or a bot token names both fields and every slug that lacks one', () => {
    const apps = [
      { slug: 'fine', ...http },
      { slug: 'one', ...socket },
      { slug: 'two', ...socket },
    ];
    expect(() => resolve({ transport: 'http', apps })).toThrow(/signing_secret and bot_token.*one, two$/);
    expect(() => resolve({ transport: 'http', signingSecret: 'only' })).toThrow(/signing_secret and bot_token.*main/);
  });

  it('S-003 the socket needs an app token and no signing secret', () => {
    expect(resolve({ transport: 'socket', ...socket })).toMatchObject([
      { slug: 'main', transport: 'socket', signingSecrets: [] },
    ]);
    const apps = [
      { slug: 'fine', ...socket },
      { slug: 'bare', ...http },
    ];
    expect(() => resolve({ transport: 'socket', apps })).toThrow(/app_token and bot_token.*bare$/);
  });

  it('S-004 an unknown transport is refused by name', () => {
    expect(() => resolve({ transport: 'pigeon', ...http })).toThrow(/^Unknown transport: pigeon/);
    expect(() => resolve({ transport: 'both', ...http, appToken: 'xapp-1' })).toThrow(/^Unknown transport: both/);
  });

  it('S-005 two apps of one slug are refused', () => {
    expect(() =>
      resolve({
        apps: [
          { slug: 'a', ...http },
          { slug: 'a', ...http },
        ],
      }),
    ).toThrow('Duplicate SlackApp slug: a');
  });

  it.each([
    [{ slug: 'Not Safe' }, 'slug'],
    [{ slug: '-a' }, 'slug'],
    [{ botToken: 'xoxp-1' }, 'bot_token'],
    [{ appToken: 'xoxb-1' }, 'app_token'],
    [{ socket: { connections: 11 } }, 'socket.connections'],
    [{ apps: [{ slug: 'a', ...http, botToken: 'xoxp-1' }] }, 'apps.0.bot_token'],
    [{ files: { maxSize: 1 } }, 'files.max_size'],
  ] as [SlackOptionsInput, string][])('S-006 %j is refused with the path %s', (input, path) => {
    let thrown: unknown;
    try {
      parseOptions(slackSettings, input);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ValidationError);
    expect((thrown as ValidationError).issues.map((issue) => issue.path.join('.'))).toContain(path);
  });

  it('S-016 a bot token and an app token are enough, and mean the socket', () => {
    expect(resolve(socket)).toMatchObject([{ slug: 'main', transport: 'socket', appToken: 'xapp-1' }]);
    expect(resolve({ ...socket, signingSecret: 's' })).toMatchObject([{ transport: 'http' }]);
  });

  it('takes several signing secrets, a transport of its own per app, and joins the lists of who is denied', () => {
    const apps = resolve({
      deny: ['U1'],
      allow: ['C1'],
      apps: [
        { slug: 'a', botToken: 'xoxb-1', signingSecret: ['old', 'new'], deny: ['U2'] },
        { slug: 'b', ...socket, transport: 'socket', allow: ['C2'] },
      ],
    });
    expect(apps).toMatchObject([
      { slug: 'a', transport: 'http', signingSecrets: ['old', 'new'], deny: ['U1', 'U2'], allow: ['C1'] },
      { slug: 'b', transport: 'socket', deny: ['U1'], allow: ['C2'] },
    ]);
  });
});
