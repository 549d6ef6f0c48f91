import { addMessage, emptyMessage, type Core } from './core.js';
import type { Outgoing } from './events.js';
import { checkBlocks } from './message-rules.js';
import { SlackFailure, str, type Json } from './world.js';

/** What the body of an acknowledgement does: it answers a slash command, and it decides what becomes of a modal. */
export function takeAck(core: Core, { kind, body }: Outgoing, payload: unknown): void {
  if (kind === 'slash_commands') showAnswer(core, body, payload);
  else if (body['type'] === 'view_submission') settleView(core, body, payload);
}

function showAnswer(core: Core, body: Json, payload: unknown): void {
  const answer = asAnswer(payload);
  if (answer === null) return;
  const { world } = core;
  const channel = world.channels.get(str(body['channel_id']))!;
  const text = str(answer['text']);
  const blocks = (answer['blocks'] as Json[] | undefined) ?? null;
  if (text === '' && !blocks) {
    core.violations.push('the answer to a command shows nothing');
    return;
  }
  try {
    if (blocks) checkBlocks(blocks);
  } catch (error) {
    if (!(error instanceof SlackFailure)) throw error;
    core.violations.push(`the answer to a command: ${error.error}`);
    return;
  }
  const installation = world.installations.find((one) => one.app.id === body['api_app_id'])!;
  addMessage(core, channel, {
    ...emptyMessage(world.nextTs(channel), world.clock.now()),
    text,
    blocks,
    user: installation.botUserId,
    botId: installation.botId,
    appId: installation.app.id,
    ephemeralTo: answer['response_type'] === 'in_channel' ? null : str(body['user_id']),
  });
}

/** Plain text is shown as it is, JSON is read, nothing shows nothing. */
function asAnswer(payload: unknown): Json | null {
  if (payload === null || payload === '') return null;
  if (typeof payload === 'string') return { text: payload };
  const answer = payload as Json;
  return Object.keys(answer).length === 0 ? null : answer;
}

/** Nothing closes the modal; anything else must be one of Slack's response actions. */
function settleView(core: Core, body: Json, payload: unknown): void {
  const view = core.world.views.get(str((body['view'] as Json)['id']));
  const answer = asAnswer(payload);
  const action = answer === null ? 'clear' : answer['response_action'];
  if (!['clear', 'errors', 'update', 'push'].includes(String(action))) {
    core.violations.push('a view submission is answered with what Slack does not know');
    return;
  }
  if (view && action === 'clear') view.open = false;
}
