import { z } from 'zod';
import { setting, settingsGroup } from './setting.js';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
/** Names that other programs of Band use for the same. */
const LEVEL_NAMES: Readonly<Record<string, string>> = { warning: 'warn', critical: 'fatal' };

const logLevel = z.preprocess((value) => {
  const name = typeof value === 'string' ? value.trim().toLowerCase() : value;
  return typeof name === 'string' && Object.hasOwn(LEVEL_NAMES, name) ? LEVEL_NAMES[name] : name;
}, z.enum(LOG_LEVELS));

const port = z.int().min(0).max(65_535);

/** The service's own settings: the top of the file, beside `agents`. */
export const serviceSettings = settingsGroup('service', {
  platform: {
    rest_url: setting(z.url({ protocol: /^https?$/ }).default('https://app.band.ai'), {
      help: "Band's REST address.",
      env: 'BAND_REST_URL',
      flag: 'rest-url',
    }),
    ws_url: setting(z.url({ protocol: /^wss?$/ }).default('wss://app.band.ai/api/v1/socket/websocket'), {
      help: "Band's socket address; set it together with the REST address.",
      env: 'BAND_WS_URL',
      flag: 'ws-url',
    }),
  },
  http: {
    host: setting(z.string().min(1).default('127.0.0.1'), {
      help: 'Address the common HTTP server binds to; the image binds to all.',
      env: 'HOST',
      flag: 'host',
    }),
    port: setting(port.default(8080), {
      help: 'Port of the common HTTP server; 0 takes any free one.',
      env: 'PORT',
      flag: 'port',
    }),
    public_url: setting(z.url({ protocol: /^https?$/ }).optional(), {
      help: 'Origin, and path prefix if any, under which the outside reaches this server.',
    }),
    status_token: setting(z.string().min(8).optional(), {
      help: 'Token that opens the status page to visitors from other machines.',
      secret: true,
    }),
    max_connections: setting(z.int().positive().default(4_096), {
      help: 'Connections held at once; one more is closed at once.',
    }),
    header_timeout_ms: setting(z.int().positive().default(10_000), {
      help: 'Longest time a client may take to send its headers, in milliseconds.',
    }),
    request_timeout_ms: setting(z.int().positive().default(60_000), {
      help: 'Longest time a client may take to send a whole request, in milliseconds.',
    }),
    keep_alive_ms: setting(z.int().nonnegative().default(72_000), {
      help: 'How long an idle connection stays open, in milliseconds; longer than the load balancer keeps it.',
    }),
    max_header_bytes: setting(z.int().min(1_024).max(65_536).default(16_384), {
      help: 'Largest set of request headers, in bytes.',
    }),
  },
  data_dir: setting(z.string().min(1).default('.band-gateway'), {
    help: 'Folder of the durable state; one process owns it.',
  }),
  store: setting(z.enum(['leveldb', 'memory']).default('leveldb'), {
    help: 'Where the state is kept; memory forgets everything at exit.',
  }),
  log_level: setting(logLevel.default('info'), {
    help: 'Least severe log line that is written; message text appears at trace only.',
    aliases: ['BAND_LOG_LEVEL'],
  }),
  log_file: setting(z.string().min(1).optional(), { help: 'File that log lines are appended to instead of stderr.' }),
  shutdown: {
    delay_ms: setting(z.int().nonnegative().max(120_000).default(0), {
      help: 'Time between not being ready any more and refusing work, in milliseconds, for load balancers to notice.',
    }),
    timeout_seconds: setting(z.number().nonnegative().max(3_600).default(20), {
      help: 'How long running turns may take to finish at shutdown, in seconds.',
    }),
  },
  sandbox: {
    host: setting(z.string().min(1).default('127.0.0.1'), { help: 'Address the embedded sandbox binds to.' }),
    port: setting(port.default(4000), { help: 'Port of the embedded sandbox; 0 takes any free one.' }),
    data: setting(z.string().min(1).optional(), {
      help: 'Folder in which the sandbox keeps its rooms; without it they are forgotten at exit.',
    }),
  },
});

const finiteSeconds = z.number().positive();

/** What stands in each entry under `agents`, beside the groups of its bridge. */
export const agentSettings = settingsGroup('agent', {
  agent_id: setting(z.string().min(1), {
    help: "The agent's id on Band; here or under the entry's name in agent_config.yaml.",
    env: 'BAND_AGENT_ID',
  }),
  api_key: setting(z.string().min(1), {
    help: "The agent's API key; here or under the entry's name in agent_config.yaml.",
    secret: true,
    env: 'BAND_API_KEY',
  }),
  bridge: setting(z.enum(['slack', 'a2a', 'acp']), {
    help: 'What the agent is joined to.',
    env: 'BAND_BRIDGE',
  }),
  on_superseded: setting(z.enum(['stop', 'standby']).default('stop'), {
    help: 'When another connection takes the agent over: stop it here, or wait to take over when the other is gone.',
    env: 'BAND_ON_SUPERSEDED',
  }),
  conflict_policy: setting(z.enum(['supersede', 'reject']).default('supersede'), {
    help: 'When the agent is connected elsewhere at start: take it over, or refuse to start it here.',
    env: 'BAND_CONFLICT_POLICY',
  }),
  single_instance: setting(z.boolean().default(true), {
    help: 'Hold a lock on this host, so that no second process runs the same agent.',
    env: 'BAND_SINGLE_INSTANCE',
  }),
  session: {
    max_message_retries: setting(z.int().min(1).optional(), {
      help: 'Attempts per message before it has failed (1).',
      env: 'MAX_MESSAGE_RETRIES',
    }),
    enable_context_hydration: setting(z.boolean().optional(), {
      help: "Read a room's history before its first turn (true).",
      env: 'ENABLE_CONTEXT_HYDRATION',
    }),
    context_cache_ttl_seconds: setting(z.int().optional(), {
      help: 'Lifetime of a cached context in seconds (300).',
      env: 'CONTEXT_CACHE_TTL_SECONDS',
    }),
    enable_context_cache: setting(z.boolean().optional(), {
      help: 'Accepted for parity; not read.',
      env: 'ENABLE_CONTEXT_CACHE',
    }),
    max_context_messages: setting(z.int().optional(), {
      help: 'Accepted for parity; not read.',
      env: 'MAX_CONTEXT_MESSAGES',
    }),
    idle_resync_seconds: setting(finiteSeconds.optional(), {
      help: 'Shortest interval of the search for missed messages, in seconds (60).',
      env: 'IDLE_RESYNC_SECONDS',
    }),
    idle_resync_max_seconds: setting(finiteSeconds.optional(), {
      help: 'Longest interval of that search, in seconds (120).',
      env: 'IDLE_RESYNC_MAX_SECONDS',
    }),
    stopped_resync_seconds: setting(finiteSeconds.nullable().optional(), {
      help: 'Interval of that search while a room is stopped, in seconds (the shortest interval).',
      env: 'STOPPED_RESYNC_SECONDS',
    }),
    enable_working_state: setting(z.boolean().optional(), {
      help: 'Report that the agent is working (true).',
      env: 'ENABLE_WORKING_STATE',
    }),
    working_keep_alive_seconds: setting(z.number().optional(), {
      help: 'Interval of those reports in seconds (3).',
      env: 'WORKING_KEEP_ALIVE_SECONDS',
    }),
    working_request_timeout_seconds: setting(z.int().optional(), {
      help: 'Deadline of one such report in seconds (2).',
      env: 'WORKING_REQUEST_TIMEOUT_SECONDS',
    }),
    max_working_state_seconds: setting(z.number().nullable().optional(), {
      help: 'Stop reporting after this many seconds (never).',
      env: 'MAX_WORKING_STATE_SECONDS',
    }),
    max_cycle_seconds: setting(finiteSeconds.nullable().optional(), {
      help: 'Cancel one turn after this many seconds (never).',
      env: 'MAX_CYCLE_SECONDS',
    }),
    report_turn_failures_to_room: setting(z.boolean().optional(), {
      help: "Write an error event into the room when a message's last attempt failed (true).",
      env: 'REPORT_TURN_FAILURES_TO_ROOM',
    }),
  },
});
