const text = (maxLength: number, minLength = 1) => ({ type: 'string', minLength, maxLength });
const flag = { type: 'boolean' };
const object = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const names = (maxItems: number) => ({ type: 'array', maxItems, uniqueItems: true, items: text(50) });
const url = { type: 'string', pattern: '^https?:\\/\\/', maxLength: 3_500 };

/** The parts of Slack's manifest format that an app like ours uses, with Slack's figures; anything else is refused. */
export const MANIFEST_SCHEMA = object(
  {
    _metadata: object({ major_version: { type: 'integer' }, minor_version: { type: 'integer' } }),
    display_information: object({ name: text(35), description: text(140), long_description: text(4_000, 175) }, [
      'name',
    ]),
    features: object({
      app_home: object({ home_tab_enabled: flag, messages_tab_enabled: flag, messages_tab_read_only_enabled: flag }),
      bot_user: object({ display_name: { ...text(80), pattern: '^[a-z0-9-_.]+$' }, always_online: flag }, [
        'display_name',
      ]),
      slash_commands: {
        type: 'array',
        minItems: 1,
        maxItems: 50,
        items: object(
          {
            command: { ...text(32, 2), pattern: '^\\/' },
            url: { ...url, maxLength: 3_000 },
            description: text(2_000),
            usage_hint: text(1_000),
            should_escape: flag,
          },
          ['command', 'description'],
        ),
      },
      shortcuts: {
        type: 'array',
        minItems: 1,
        maxItems: 10,
        items: object(
          { name: text(24), type: { enum: ['message', 'global'] }, callback_id: text(255), description: text(150) },
          ['name', 'type', 'callback_id', 'description'],
        ),
      },
      agent_view: object({ agent_description: { type: 'string', maxLength: 300 } }),
      assistant_view: object({ assistant_description: { type: 'string' } }, ['assistant_description']),
    }),
    oauth_config: object({ redirect_urls: { type: 'array', maxItems: 1_000 }, scopes: object({ bot: names(255) }) }),
    settings: object({
      event_subscriptions: object({ request_url: url, bot_events: names(100) }),
      interactivity: object({ is_enabled: flag, request_url: url }, ['is_enabled']),
      org_deploy_enabled: flag,
      socket_mode_enabled: flag,
      token_rotation_enabled: flag,
    }),
  },
  ['display_information'],
);
