import { z } from 'zod';
import { setting, settingsGroup, type OptionsInputOf, type OptionsOf } from '../../src/config/setting.js';

const peerName = z.string().trim().min(1);
const commandName = z
  .string()
  .trim()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]*$/, 'Command names are letters, digits, "-" and "_"');
const positiveMs = z.int().min(1);

/** Settings of the ACP bridge: the group `acp` of an agent's entry, and the options of BandACPServerAdapter. */
export const acpSettings = settingsGroup('acp', {
  peers: setting(z.array(peerName).default([]), {
    help: 'Peers (handle, slug, name or id) invited to each new session; also the default target.',
  }),
  auto_invite: setting(z.boolean().default(true), {
    help: 'Invite a peer that a prompt is routed to and that is not yet in the room.',
  }),
  invite_owner: setting(z.boolean().default(false), { help: "Add the agent's human owner to each session's room." }),
  slash_commands: setting(z.record(commandName, peerName).default({}), {
    help: 'Extra slash commands, command name to peer.',
  }),
  roster_commands: setting(z.boolean().default(true), {
    help: 'Offer every peer agent as a slash command (at most 50).',
  }),
  modes: setting(
    z
      .array(z.strictObject({ id: commandName, peer: peerName.optional(), name: z.string().trim().min(1).optional() }))
      .default([]),
    { help: 'Session modes, each with an id, a peer it speaks to, and a name; without any there is one, "default".' },
  ),
  fallback_routing: setting(z.enum(['all', 'none']).default('all'), {
    help: 'Whom a prompt addresses when nothing else decides: every agent in the room, or nobody (the person is asked).',
  }),
  context_preamble: setting(z.enum(['first', 'always', 'never']).default('first'), {
    help: 'When the editor context (client, folder, MCP server names) is appended to a prompt.',
  }),
  attribution: setting(z.enum(['auto', 'always', 'never']).default('auto'), {
    help: "Put the sender's handle in front of replies: when several could have written them, always or never.",
  }),
  push: setting(z.enum(['always', 'next-turn', 'never']).default('always'), {
    help: 'What happens to room messages outside a turn: shown at once, before the next prompt, or only on load.',
  }),
  unsupported_content: setting(z.enum(['reject', 'placeholder']).default('reject'), {
    help: 'Image, audio and binary blocks: refuse the prompt, or post a visible placeholder line.',
  }),
  turn: {
    grace_ms: setting(positiveMs.default(250), { help: 'Quiet time after all recipients are known to have finished.' }),
    settle_ms: setting(positiveMs.default(300), {
      help: 'Quiet time after every recipient has replied, where delivery states cannot be read.',
    }),
    straggler_ms: setting(positiveMs.default(20_000), {
      help: 'Quiet time when some recipients replied and some did not.',
    }),
    idle_timeout_ms: setting(positiveMs.default(300_000), {
      help: 'A turn without any activity and reply fails after this.',
    }),
    max_ms: setting(z.int().min(0).default(3_600_000), { help: 'Longest turn; 0 for no limit.' }),
  },
  delivery_poll: setting(z.enum(['auto', 'off']).default('auto'), {
    help: 'Look at delivery states while a turn waits, as long as the platform shows them.',
  }),
  cancel_notice: setting(z.enum(['none', 'message']).default('none'), {
    help: 'Whether a cancelled turn posts a line to its recipients.',
  }),
  title_mode: setting(z.enum(['first-prompt', 'platform', 'none']).default('first-prompt'), {
    help: "Where a room's title comes from: the first prompt, the platform, or nowhere.",
  }),
  max_sessions: setting(z.int().min(1).default(100), { help: 'Sessions held in memory.' }),
  max_queued_prompts: setting(z.int().min(0).default(16), {
    help: 'Prompts that may wait in one session behind the running one.',
  }),
  max_prompt_chars: setting(z.int().min(1).default(200_000), { help: 'Longest prompt, after flattening.' }),
  max_embedded_bytes: setting(z.int().min(1).default(65_536), {
    help: 'Longest embedded text resource; what is longer is cut in the middle.',
  }),
  max_message_bytes: setting(z.int().min(1_024).default(33_554_432), { help: 'Longest frame on stdio.' }),
  replay_max_messages: setting(z.int().min(1).default(2_000), {
    help: 'Newest messages that loading a session replays.',
  }),
  ready_timeout_ms: setting(positiveMs.default(15_000), { help: 'How long a session call waits for Band.' }),
  shutdown_ms: setting(positiveMs.default(2_000), { help: 'Bound on a clean shutdown.' }),
});

/** Parsed settings, defaults filled in. */
export type AcpOptions = OptionsOf<typeof acpSettings>;
/** What `new BandACPServerAdapter(options)` takes. */
export type AcpServerOptions = OptionsInputOf<typeof acpSettings>;
