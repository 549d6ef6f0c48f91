import type { Tier } from './rates.js';

export interface MethodRule {
  tier: Tier;
  /** One of these is enough; empty: none needed. */
  scopes: readonly string[];
  token: 'bot' | 'app' | 'none';
}

const rule = (tier: Tier, ...scopes: string[]): MethodRule => ({ tier, scopes, token: 'bot' });
const HISTORY = ['channels:history', 'groups:history', 'im:history', 'mpim:history'];
const READ = ['channels:read', 'groups:read', 'im:read', 'mpim:read'];

/** The methods this double knows, with Slack's tiers and the scopes Slack asks for. */
export const METHODS: Readonly<Record<string, MethodRule>> = {
  'api.test': { tier: 4, scopes: [], token: 'none' },
  'auth.test': rule('free'),
  'auth.revoke': rule(3),
  'oauth.v2.access': { tier: 'free', scopes: [], token: 'none' },
  'apps.connections.open': { tier: 3, scopes: [], token: 'app' },
  'apps.uninstall': rule(1),
  'apps.event.authorizations.list': { tier: 4, scopes: [], token: 'app' },
  'chat.postMessage': rule('post', 'chat:write'),
  'chat.postEphemeral': rule(4, 'chat:write'),
  'chat.update': rule(3, 'chat:write'),
  'chat.delete': rule(3, 'chat:write'),
  'chat.getPermalink': rule('free'),
  'chat.startStream': rule(2, 'chat:write'),
  'chat.appendStream': rule(4, 'chat:write'),
  'chat.stopStream': rule(2, 'chat:write'),
  'conversations.info': rule(3, ...READ),
  'conversations.history': rule(3, ...HISTORY),
  'conversations.replies': rule(3, ...HISTORY),
  'conversations.list': rule(2, ...READ),
  'conversations.members': rule(4, ...READ),
  'conversations.open': rule(3, 'im:write', 'mpim:write'),
  'conversations.join': rule(3, 'channels:join'),
  'users.info': rule(4, 'users:read'),
  'users.list': rule(2, 'users:read'),
  'users.lookupByEmail': rule(3, 'users:read.email'),
  'bots.info': rule(3, 'users:read'),
  'team.info': rule(3, 'team:read'),
  'usergroups.list': rule(2, 'usergroups:read'),
  'emoji.list': rule(2, 'emoji:read'),
  'reactions.add': rule(3, 'reactions:write'),
  'reactions.remove': rule(2, 'reactions:write'),
  'reactions.get': rule(3, 'reactions:read'),
  'files.getUploadURLExternal': rule(4, 'files:write'),
  'files.completeUploadExternal': rule(4, 'files:write'),
  'files.info': rule(4, 'files:read'),
  'files.delete': rule(3, 'files:write'),
  'assistant.threads.setStatus': rule('free', 'assistant:write', 'chat:write'),
  'assistant.threads.setTitle': rule(4, 'assistant:write'),
  'assistant.threads.setSuggestedPrompts': rule(4, 'assistant:write'),
  'agents.sessions.setStatus': rule(3, 'assistant:write'),
  'agents.sessions.rename': rule(3, 'assistant:write'),
  'views.open': rule(4),
  'views.update': rule(4),
  'views.push': rule(4),
  'views.publish': rule(4),
  'blocks.validate': rule(4),
};
