import { z } from 'zod';
import { secret, setting, settingsGroup, type OptionsInputOf, type OptionsOf } from '../../src/config/setting.js';

const positiveInt = z.int().min(1);
const count = z.int().min(0);
const patterns = z.array(z.string().min(1));
const mediaTypes = z.array(z.string().regex(/^[^\s/;]+\/[^\s/;]+$/, 'Input should be a media type')).min(1);

/** What decides how one peer's answers become tasks; a peer may have values of its own. */
const conversation = {
  response_timeout_ms: z.number().positive('response_timeout_ms must be positive or null').nullable(),
  on_timeout: z.enum(['fail', 'park']),
  completion: z.enum(['first', 'settle', 'auto']),
  settle_ms: count,
  hold_max_ms: positiveInt,
  others: z.enum(['ignore', 'update', 'answer']),
  cancel_notice: z.enum(['event', 'message', 'both', 'none']),
  followup: z.enum(['append', 'reject']),
  directives: z.boolean(),
  result_in: z.enum(['artifact', 'status', 'both']),
  max_message_chars: positiveInt,
} as const;

const skill = z.strictObject({
  id: z.string().min(1),
  name: z.string().min(1),
  description: z.string().min(1),
  tags: z.array(z.string()).default([]),
  examples: z.array(z.string()).optional(),
});

const override = z
  .strictObject({
    name: z.string().min(1),
    description: z.string().min(1),
    skills: z.array(skill).min(1),
    tags: z.array(z.string()),
    input_modes: mediaTypes,
    output_modes: mediaTypes,
    ...conversation,
  })
  .partial();

const apiKey = z
  .strictObject({
    name: z.string().min(1).max(128),
    key: secret(z.string().min(1)).optional(),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/i, 'Input should be 64 hex digits')
      .optional(),
    scopes: z.array(z.enum(['a2a.read', 'a2a.send', 'a2a.cancel', 'a2a.push', 'a2a.card'])).optional(),
    peers: patterns.optional(),
    expires: z.iso.datetime({ offset: true }).optional(),
  })
  .refine((one) => (one.key === undefined) !== (one.sha256 === undefined), 'Give either key or sha256');

const jwtIssuer = z.strictObject({
  issuer: z.string().min(1),
  audience: z.string().min(1),
  jwks_url: z.url(),
  algorithms: z
    .array(z.enum(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']))
    .min(1)
    .default(['RS256', 'ES256']),
  clock_skew_seconds: count.default(30),
  principal_claim: z.string().min(1).default('sub'),
  scopes_claim: z.string().min(1).default('scope'),
  peers_claim: z.string().min(1).optional(),
});

/** Everything an A2A entry may set. Names end in their unit; defaults are those a public gateway can run with. */
export const a2aSettings = settingsGroup('a2a', {
  host: setting(z.string().min(1).default('127.0.0.1'), { help: 'Address an own listener binds to.' }),
  port: setting(z.union([z.literal('shared'), z.coerce.number().int().min(0).max(65_535)]).optional(), {
    help: 'Port of an own listener, 0 for any free one; `shared` mounts on the common HTTP server. Default 10000, in the service `shared`.',
    aliases: ['GATEWAY_PORT'],
  }),
  public_url: setting(z.url().optional(), {
    help: 'Origin and path prefix that cards show. Default: the common `http.public_url`, else `http://localhost:<port>`.',
    aliases: ['GATEWAY_URL'],
  }),
  allow_http_public: setting(z.boolean().default(false), {
    help: 'Accept a `public_url` without TLS for a host that is not loopback.',
  }),
  trust_proxy: setting(z.array(z.string().min(1)).default([]), {
    help: 'Addresses or networks whose X-Forwarded headers and request ids are believed.',
  }),
  peers: {
    include: setting(patterns.default(['*']), { help: 'Patterns over slug, handle and id of the peers to publish.' }),
    exclude: setting(patterns.default([]), { help: 'Patterns of peers not to publish; wins over include.' }),
    types: setting(z.array(z.enum(['Agent', 'User'])).default(['Agent']), {
      help: 'Kinds of peers to publish; `User` adds people.',
    }),
    refresh_seconds: setting(z.number().min(5).default(60), { help: 'Seconds between full reads of the directory.' }),
    slugs: setting(z.record(z.string(), z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/)).default({}), {
      help: 'Fixed slug by peer id or handle.',
    }),
    overrides: setting(z.record(z.string(), override).default({}), {
      help: 'Card fields and conversation settings of single peers, by slug, handle or id.',
    }),
  },
  response_timeout_ms: setting(conversation.response_timeout_ms.default(300_000), {
    help: 'Longest silence of a peer in milliseconds; null waits without end.',
  }),
  on_timeout: setting(conversation.on_timeout.optional(), {
    help: 'What silence does: `fail` the task or `park` it as input-required. Default `fail`, for people `park`.',
  }),
  completion: setting(conversation.completion.default('auto'), {
    help: 'When an answer is complete: at the `first` reply, after `settle_ms` of quiet, or `auto` by delivery state.',
  }),
  settle_ms: setting(conversation.settle_ms.default(300), { help: 'Quiet time in milliseconds that ends an answer.' }),
  hold_max_ms: setting(conversation.hold_max_ms.default(60_000), {
    help: "Longest wait in milliseconds for the end of a peer's turn after its last reply.",
  }),
  others: setting(conversation.others.default('update'), {
    help: 'Remarks of others in the room: `ignore` them, show them as an `update`, or take them as the `answer`.',
  }),
  cancel_notice: setting(conversation.cancel_notice.default('event'), {
    help: 'How a room learns of a cancelled request: `event`, `message`, `both` or `none`.',
  }),
  followup: setting(conversation.followup.default('append'), {
    help: 'A message to a running task: `append` it or `reject` it.',
  }),
  lane_queue: setting(positiveInt.default(8), {
    help: 'Tasks that may wait behind the running one of a conversation.',
  }),
  directives: setting(conversation.directives.default(true), {
    help: "Honour a peer's closing `a2a` block (`state`, `final`).",
  }),
  result_in: setting(conversation.result_in.default('artifact'), {
    help: 'Where the result stands: `artifact`, `status` message, or `both`.',
  }),
  expose_band_ids: setting(z.boolean().default(false), { help: 'Put room and message ids into task metadata.' }),
  max_message_chars: setting(conversation.max_message_chars.default(200_000), {
    help: 'Characters that one request may post into a room.',
  }),
  room_title: setting(z.string().min(1).max(500).optional(), {
    help: 'Title of new rooms; `{peer}` and `{context}` stand for the names of both, cut to 120 characters.',
  }),
  files: {
    inline_chars: setting(positiveInt.default(20_000), { help: 'Characters of a text file that are inlined.' }),
  },
  input_modes: setting(mediaTypes.default(['text/plain', 'application/json']), {
    help: 'Media types that cards accept; wildcards allowed.',
  }),
  output_modes: setting(mediaTypes.default(['text/plain', 'application/json']), {
    help: 'Media types that cards offer.',
  }),
  strict_output_modes: setting(z.boolean().default(false), {
    help: 'Refuse a client that accepts none of the output modes.',
  }),
  versions: setting(
    z
      .array(z.enum(['1.0', '0.3']))
      .min(1)
      .default(['1.0', '0.3']),
    {
      help: 'Protocol versions served.',
    },
  ),
  missing_version: setting(z.enum(['0.3', 'sniff']).default('0.3'), {
    help: 'A request without a version: `0.3`, or `sniff` it from the method name.',
  }),
  auth: {
    api_keys: setting(z.array(apiKey).default([]), {
      help: 'Keys by name, as text or SHA-256; optional scopes, peers and expiry.',
    }),
    api_key_header: setting(
      z
        .string()
        .regex(/^[A-Za-z0-9-]+$/)
        .default('X-API-Key'),
      {
        help: 'Header that carries a key; a bearer token is accepted as well.',
      },
    ),
    jwt: setting(z.array(jwtIssuer).default([]), { help: 'Issuers whose tokens are accepted.' }),
    anonymous: setting(z.enum(['never', 'loopback', 'always']).default('never'), {
      help: 'Callers without credentials: `never`, on `loopback` only, or `always`.',
    }),
  },
  cards_public: setting(z.boolean().default(true), { help: 'Cards are readable without credentials.' }),
  peers_public: setting(z.boolean().default(false), { help: 'The list of peers is readable without credentials.' }),
  extended_card: setting(z.enum(['auto', 'always', 'off']).default('auto'), {
    help: 'Extended card: `auto` with authentication, `always`, or `off`.',
  }),
  idempotency: {
    window_seconds: setting(positiveInt.default(86_400), {
      help: 'Seconds for which a repeated messageId finds its first task.',
    }),
  },
  limits: {
    body_bytes: setting(positiveInt.default(1_048_576), { help: 'Bytes of a request body.' }),
    parts: setting(positiveInt.default(64), { help: 'Parts of a message.' }),
    json_depth: setting(positiveInt.default(32), { help: 'Nesting of a request body.' }),
    id_chars: setting(positiveInt.default(256), { help: 'Characters of a client-chosen id.' }),
    metadata_bytes: setting(positiveInt.default(65_536), { help: 'Bytes of a metadata object.' }),
    rate_per_min: setting(count.default(120), { help: 'Requests a minute per principal; 0 switches it off.' }),
    burst: setting(positiveInt.default(60), { help: 'Requests a principal may send at once.' }),
    ip_rate_per_min: setting(count.default(600), {
      help: 'Requests a minute per address before authentication; 0 switches it off.',
    }),
    streams: setting(positiveInt.default(1_000), { help: 'Open streams.' }),
    streams_per_principal: setting(positiveInt.default(100), { help: 'Open streams of one principal.' }),
    open_tasks: setting(positiveInt.default(1_000), { help: 'Open tasks.' }),
    open_tasks_per_principal: setting(positiveInt.default(200), { help: 'Open tasks of one principal.' }),
  },
  tasks: {
    ttl_seconds: setting(positiveInt.default(86_400), { help: 'Seconds an open task may stay without an event.' }),
    retention_seconds: setting(positiveInt.default(604_800), { help: 'Seconds for which ended tasks are kept.' }),
  },
  stream: {
    keepalive_ms: setting(positiveInt.default(15_000), {
      help: 'Milliseconds between comment lines on a quiet stream.',
    }),
    buffer_bytes: setting(positiveInt.default(1_048_576), { help: 'Bytes a slow reader may fall behind.' }),
    max_age_seconds: setting(positiveInt.default(3_600), { help: 'Seconds after which a stream is ended.' }),
  },
  cors: {
    origins: setting(z.array(z.string().min(1)).default([]), { help: 'Origins that browsers may call from, or `*`.' }),
  },
  store: setting(z.string().min(1).optional(), {
    help: 'As a library: folder of the store, or `memory`. In the service the common store is used.',
  }),
  dispatch_deadline_ms: setting(positiveInt.default(30_000), {
    help: 'Milliseconds for the room, participant and post calls of one request.',
  }),
  shutdown_ms: setting(positiveInt.default(10_000), { help: 'Milliseconds an orderly stop may take.' }),
});

/** Parsed options, defaults filled in. */
export type A2AOptions = OptionsOf<typeof a2aSettings>;
/** What a caller may pass. */
export type A2AOptionsInput = OptionsInputOf<typeof a2aSettings>;
export type PeerOverride = A2AOptions['peers']['overrides'][string];

/** How one peer's answers become tasks. */
export interface ConversationSettings {
  readonly responseTimeoutMs: number | null;
  readonly onTimeout: 'fail' | 'park';
  readonly completion: 'first' | 'settle' | 'auto';
  readonly settleMs: number;
  readonly holdMaxMs: number;
  readonly others: 'ignore' | 'update' | 'answer';
  readonly cancelNotice: 'event' | 'message' | 'both' | 'none';
  readonly followup: 'append' | 'reject';
  readonly directives: boolean;
  readonly resultIn: 'artifact' | 'status' | 'both';
  readonly maxMessageChars: number;
}

const given = <T>(own: T | undefined, general: T): T => (own === undefined ? general : own);

/** The settings that count for a peer: its override, else the entry's; silence parks a person's task. */
export function conversationOf(
  options: A2AOptions,
  override: PeerOverride | undefined,
  peerType: string,
): ConversationSettings {
  return {
    responseTimeoutMs: given(override?.responseTimeoutMs, options.responseTimeoutMs),
    onTimeout: override?.onTimeout ?? options.onTimeout ?? (peerType === 'User' ? 'park' : 'fail'),
    completion: override?.completion ?? options.completion,
    settleMs: override?.settleMs ?? options.settleMs,
    holdMaxMs: override?.holdMaxMs ?? options.holdMaxMs,
    others: override?.others ?? options.others,
    cancelNotice: override?.cancelNotice ?? options.cancelNotice,
    followup: override?.followup ?? options.followup,
    directives: override?.directives ?? options.directives,
    resultIn: override?.resultIn ?? options.resultIn,
    maxMessageChars: override?.maxMessageChars ?? options.maxMessageChars,
  };
}
