import type { IncomingMessage, ServerResponse } from 'node:http';
import { addMessage, emptyMessage, type Core } from './core.js';
import { checkBlocks } from './message-rules.js';
import { str, type Json, type Message, type SlackFileRecord } from './world.js';

type Reply = (status: number, text: string | Buffer, type?: string) => number;

/** Uploads, downloads and response URLs: what Slack serves beside its Web API. @returns the status sent */
export function answerOther(
  core: Core,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
  authorization: string | null,
): number {
  const reply = (status: number, text: string | Buffer, type = 'text/plain'): number => {
    response.writeHead(status, { 'content-type': type });
    response.end(text);
    return status;
  };
  const [, area = '', id = ''] = url.pathname.split('/');
  if (area === 'upload') {
    if (authorization !== null) core.leaks.push('Authorization header on an upload request');
    const file = core.world.files.get(id);
    if (!file) return reply(404, 'no such upload');
    const bytes = uploadedBytes(request.headers['content-type'] ?? '', body);
    if (bytes.byteLength !== file.expectedLength) {
      core.violations.push(`upload of ${bytes.byteLength} bytes where ${file.expectedLength} were announced`);
      return reply(400, 'length differs');
    }
    file.bytes = bytes;
    file.uploaded = true;
    return reply(200, `OK - ${bytes.byteLength}`);
  }
  if (area === 'files-pri') return download(core, id, authorization, reply);
  if (area === 'response') return respond(core, id, body, reply);
  return reply(404, 'nothing here');
}

function download(core: Core, id: string, authorization: string | null, reply: Reply): number {
  const fileId = id.split('-').slice(1).join('-');
  const file = core.world.files.get(fileId);
  const token = authorization?.replace(/^Bearer /, '');
  const installation = core.world.installations.find((one) =>
    one.tokens.some((held) => held.value === token && !held.revoked),
  );
  if (!file || file.deleted) return reply(404, '');
  const shown =
    installation &&
    installation.scopes.has('files:read') &&
    (installation.team.id === file.teamId || installation.orgWide || sharedWith(core, file, installation.team.id));
  if (!shown)
    return reply(
      200,
      '<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>',
      'text/html; charset=utf-8',
    );
  return reply(200, file.bytes, file.mimetype);
}

function sharedWith(core: Core, file: SlackFileRecord, teamId: string): boolean {
  return [...core.world.channels.values()].some(
    (channel) => channel.sharedWith.has(teamId) && channel.messages.some((message) => message.files.includes(file.id)),
  );
}

function respond(core: Core, id: string, body: Buffer, reply: Reply): number {
  const place = core.world.responseUrls.get(id);
  if (!place) return reply(404, JSON.stringify({ ok: false, error: 'used_url' }), 'application/json');
  if (place.uses >= 5 || core.world.clock.now() - place.at > 30 * 60_000) {
    core.violations.push('response_url used after its five uses or thirty minutes');
    return reply(404, JSON.stringify({ ok: false, error: 'expired_url' }), 'application/json');
  }
  place.uses += 1;
  const payload = JSON.parse(body.toString('utf8')) as Json;
  if (payload['markdown_text'] !== undefined) {
    core.violations.push('response_url with markdown_text');
    return reply(400, JSON.stringify({ ok: false, error: 'invalid_payload' }), 'application/json');
  }
  if (payload['blocks'] !== undefined) checkBlocks(payload['blocks'] as Json[]);
  if (str(payload['text']) === '' && payload['blocks'] === undefined && payload['delete_original'] !== true) {
    core.violations.push('response_url with nothing to show');
    return reply(400, JSON.stringify({ ok: false, error: 'no_text' }), 'application/json');
  }
  const channel = core.world.channels.get(place.channel)!;
  const installation =
    core.world.installations.find((one) => channel.members.has(one.botUserId)) ?? core.world.installations[0]!;
  const message: Message = {
    ...emptyMessage(core.world.nextTs(channel), core.world.clock.now()),
    text: str(payload['text']),
    blocks: (payload['blocks'] as Json[] | undefined) ?? null,
    threadTs: place.threadTs,
    user: installation.botUserId,
    botId: installation.botId,
    appId: installation.app.id,
    ephemeralTo: payload['response_type'] === 'in_channel' ? null : place.user,
  };
  const replaced = payload['replace_original'] === true || payload['delete_original'] === true;
  const original = channel.messages.find((one) => one.ts === place.messageTs);
  if (replaced && original) {
    if (payload['delete_original'] === true) original.deleted = true;
    else Object.assign(original, { text: message.text, blocks: message.blocks });
  } else addMessage(core, channel, message);
  return reply(200, 'ok');
}

function uploadedBytes(contentType: string, body: Buffer): Buffer {
  const boundary = /boundary="?([^";]+)"?/.exec(contentType)?.[1];
  if (!contentType.startsWith('multipart/') || boundary === undefined) return body;
  const start = body.indexOf('\r\n\r\n') + 4;
  return body.subarray(start, body.indexOf(`\r\n--${boundary}`, start));
}
