import { addMessage, emptyMessage, type Call, type Method } from './core.js';
import { checkBlocks } from './message-rules.js';
import { channelOf, fullFileJson, SlackFailure, str, type Json, type Message, type SlackFileRecord } from './world.js';

const json = (value: unknown): unknown => (typeof value === 'string' && value !== '' ? JSON.parse(value) : value);
const STATUS_LIFETIME_MS = 120_000;

const authTest: Method = ({ world, installation, teamId }) => {
  const team = world.teams.get(teamId);
  return {
    url: `https://${team?.domain ?? 'unknown'}.slack.com/`,
    team: team?.name,
    user: world.users.get(installation.botUserId)?.name,
    team_id: teamId,
    user_id: installation.botUserId,
    bot_id: installation.botId,
    is_enterprise_install: installation.orgWide,
    ...(team?.enterpriseId ? { enterprise_id: team.enterpriseId } : {}),
  };
};

const revoke: Method = ({ installation }) => {
  for (const token of installation.tokens) token.revoked = true;
  return { revoked: true };
};

const uninstall: Method = ({ installation }) => {
  installation.active = false;
  return {};
};

const uploadUrl: Method = (call) => {
  const { world, args, installation, teamId } = call;
  const length = Number(args['length']);
  const name = str(args['filename']);
  if (name === '' || !Number.isInteger(length) || length <= 0) throw new SlackFailure('invalid_arguments');
  const id = world.nextId('F');
  world.files.set(id, {
    id,
    teamId,
    name,
    title: name,
    mimetype: 'application/octet-stream',
    bytes: Buffer.alloc(0),
    user: installation.botUserId,
    mode: 'hosted',
    checkFileInfo: false,
    externalUrl: null,
    declaredSize: null,
    uploaded: false,
    expectedLength: length,
    shares: [],
    deleted: false,
  });
  return { upload_url: `${world.baseUrl}/upload/${id}`, file_id: id };
};

const completeUpload: Method = (call) => {
  const { core, world, args, installation } = call;
  const wanted = (json(args['files']) ?? []) as { id: string; title?: string }[];
  const files = wanted.map(({ id, title }) => {
    const file = world.files.get(id);
    if (!file) throw new SlackFailure('file_not_found');
    if (!file.uploaded) throw new SlackFailure('file_not_found', { reason: 'nothing was uploaded' });
    if (title) file.title = title;
    return file;
  });
  const channelId = str(args['channel_id']);
  if (channelId !== '') {
    const channel = channelOf(world, channelId);
    if (channel.archived) throw new SlackFailure('is_archived');
    if (!channel.members.has(installation.botUserId)) throw new SlackFailure('not_in_channel');
    const message: Message = {
      ...emptyMessage(world.nextTs(channel), world.clock.now()),
      text: str(args['initial_comment']),
      threadTs: str(args['thread_ts']) || null,
      subtype: null,
      user: installation.botUserId,
      botId: installation.botId,
      appId: installation.app.id,
      files: files.map((file) => file.id),
    };
    addMessage(core, channel, message);
    for (const file of files) file.shares.push({ channel: channel.id, ts: message.ts });
  }
  return { files: files.map((file) => ({ id: file.id, title: file.title })) };
};

function fileOf(call: Call): SlackFileRecord {
  const file = call.world.files.get(str(call.args['file']));
  if (!file) throw new SlackFailure('file_not_found');
  if (file.deleted) throw new SlackFailure('file_deleted');
  return file;
}

const fileInfo: Method = (call) => {
  const file = fileOf(call);
  const shares: Record<string, { ts: string }[]> = {};
  for (const { channel, ts } of file.shares) (shares[channel] ??= []).push({ ts });
  return {
    file: {
      ...fullFileJson(call.world, file),
      channels: file.shares.map((share) => share.channel),
      shares: { public: shares },
    },
  };
};

const deleteFile: Method = (call) => {
  fileOf(call).deleted = true;
  return {};
};

const setStatus: Method = ({ world, args, installation }) => {
  const channel = channelOf(world, args['channel_id']);
  const threadTs = str(args['thread_ts']);
  if (!channel.members.has(installation.botUserId)) throw new SlackFailure('channel_not_found');
  if (threadTs === '') throw new SlackFailure('invalid_thread_ts');
  const loading = (json(args['loading_messages']) ?? []) as string[];
  if (loading.length > 10) throw new SlackFailure('invalid_arguments');
  const key = `${channel.id}:${threadTs}`;
  const status = str(args['status']);
  if (status === '') world.statuses.delete(key);
  else world.statuses.set(key, { status, loading, at: world.clock.now() });
  return {};
};

/** The status a person sees in a thread now. */
export function visibleStatus(world: Call['world'], channel: string, threadTs: string): string | null {
  const status = world.statuses.get(`${channel}:${threadTs}`);
  return status && world.clock.now() - status.at < STATUS_LIFETIME_MS ? status.status : null;
}

const setTitle: Method = () => ({});

const setPrompts: Method = ({ world, args, installation }) => {
  const prompts = (json(args['prompts']) ?? []) as Json[];
  if (prompts.length > 4 || prompts.length === 0) throw new SlackFailure('invalid_arguments');
  if (prompts.some((one) => str(one['title']) === '' || str(one['message']) === ''))
    throw new SlackFailure('invalid_arguments');
  channelOf(world, args['channel_id']);
  if (installation.app.surface === 'assistant' && str(args['thread_ts']) === '')
    throw new SlackFailure('invalid_arguments');
  const ignored = installation.app.surface === 'agent' && str(args['thread_ts']) !== '';
  if (!ignored) world.prompts.set(str(args['channel_id']), prompts);
  return {};
};

const sessionStatus: Method = ({ world, args, installation }) => {
  if (installation.app.surface !== 'agent') throw new SlackFailure('not_agent_app');
  const status = str(args['status']);
  if (!['processing', 'active', 'suspended', 'closed'].includes(status)) throw new SlackFailure('invalid_arguments');
  const title = str(args['title']);
  if (title.length > 200) throw new SlackFailure('invalid_arguments');
  const key = `${str(args['channel_id'])}:${str(args['thread_ts'])}`;
  const known = world.sessions.get(key);
  world.sessions.set(key, {
    state: status,
    title: title || (known?.title ?? null),
    initiator: str(args['initiator_user_id']) || (known?.initiator ?? null),
  });
  return {};
};

function useTrigger({ world, args }: Call): string {
  const trigger = world.triggers.get(str(args['trigger_id']));
  if (!trigger) throw new SlackFailure('invalid_trigger_id');
  if (trigger.used) throw new SlackFailure('exchanged_trigger_id');
  if (world.clock.now() - trigger.at > 3_000) throw new SlackFailure('expired_trigger_id');
  trigger.used = true;
  return trigger.user;
}

const plain = (value: unknown): string => {
  const text = (value ?? {}) as Json;
  if (text['type'] !== 'plain_text') throw new SlackFailure('invalid_arguments');
  return str(text['text']);
};

/** Slack's figures for modals. */
function checkModal(view: Json): void {
  const refuse = (message: string): never => {
    throw new SlackFailure('invalid_arguments', { response_metadata: { messages: [`[ERROR] ${message}`] } });
  };
  if (JSON.stringify(view).length > 250_000) throw new SlackFailure('view_too_large');
  if (view['type'] !== 'modal') refuse('type');
  const title = plain(view['title']);
  if (title === '' || title.length > 24) refuse('title');
  for (const name of ['submit', 'close']) if (view[name] !== undefined && plain(view[name]).length > 24) refuse(name);
  if (str(view['callback_id']).length > 255) refuse('callback_id');
  if (str(view['private_metadata']).length > 3_000) refuse('private_metadata');
  const blocks = (view['blocks'] ?? []) as Json[];
  if (blocks.length === 0 || blocks.length > 100) refuse('blocks');
  checkBlocks(blocks);
  for (const block of blocks.filter((one) => one['type'] === 'input')) {
    if (view['submit'] === undefined) refuse('input without submit');
    if (plain(block['label']).length > 2_000) refuse('label');
    const element = block['element'] as Json;
    if (str(element['action_id']) === '') refuse('action_id');
    if (element['placeholder'] !== undefined && plain(element['placeholder']).length > 150) refuse('placeholder');
  }
}

const openView: Method = (call) => {
  const user = useTrigger(call);
  const view = json(call.args['view']) as Json;
  checkModal(view);
  const id = call.world.nextId('V');
  const record = { id, hash: `${call.world.clock.now()}.h`, view, user, open: true };
  call.world.views.set(id, record);
  return { view: { ...view, id, hash: record.hash } };
};

const updateView: Method = ({ world, args }) => {
  const record = world.views.get(str(args['view_id']));
  if (!record) throw new SlackFailure('not_found');
  record.view = json(args['view']) as Json;
  record.hash = `${world.clock.now()}.u`;
  return { view: { ...record.view, id: record.id, hash: record.hash } };
};

const publishView: Method = ({ world, args }) => {
  const id = world.nextId('V');
  const view = json(args['view']) as Json;
  world.views.set(id, { id, hash: 'home', view, user: str(args['user_id']), open: true });
  return { view: { ...view, id } };
};

const validateBlocks: Method = ({ args }) => {
  checkBlocks((json(args['blocks']) ?? []) as Json[]);
  return {};
};

export const OTHER_METHODS: Readonly<Record<string, Method>> = {
  'auth.test': authTest,
  'auth.revoke': revoke,
  'apps.uninstall': uninstall,
  'files.getUploadURLExternal': uploadUrl,
  'files.completeUploadExternal': completeUpload,
  'files.info': fileInfo,
  'files.delete': deleteFile,
  'assistant.threads.setStatus': setStatus,
  'assistant.threads.setTitle': setTitle,
  'assistant.threads.setSuggestedPrompts': setPrompts,
  'agents.sessions.setStatus': sessionStatus,
  'agents.sessions.rename': setTitle,
  'views.open': openView,
  'views.push': openView,
  'views.update': updateView,
  'views.publish': publishView,
  'blocks.validate': validateBlocks,
};
