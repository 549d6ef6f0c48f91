import type { LoadSessionResponse } from '@agentclientprotocol/sdk';
import { isGatewayError } from '../../../src/base/errors.js';
import type { ChatRoom } from '../../../src/platform/wire/objects.js';
import type { BandAccess } from '../band.js';
import type { Editor } from '../client/editor.js';
import { normalizeCwd, roomIdOf, summarizeMcp } from '../conversation.js';
import { AcpFault } from '../errors.js';
import type { Attachment } from './attachment.js';
import { restoredChoices } from './options.js';
import { readRoom, replayUpdates, type RoomHistory } from './replay.js';
import { entryOf, titleOf, type SessionIndex } from './session-index.js';
import type { Session } from './session.js';
import type { Introduced, OpenParams, SessionDeps } from './sessions.js';
import { meta } from './updates.js';

/** A `session/load` or `session/resume` on its way. */
export interface Reopening {
  readonly cwd: string;
  readonly params: OpenParams;
  readonly signal: AbortSignal;
  /** Show what was said before. */
  readonly replay: boolean;
}

/** Band does not show this room to the agent: it is gone, or never was the agent's. */
export const isHidden = (error: unknown): boolean =>
  isGatewayError(error, 'BAND_NOT_FOUND') || isGatewayError(error, 'BAND_FORBIDDEN');

/** The room behind a session id. @throws {AcpFault} `unknown_session` */
export async function locateRoom(
  { rest, self }: BandAccess,
  sessionId: string,
  principal: string | null,
  index: SessionIndex,
  signal: AbortSignal,
): Promise<{ roomId: string; room: ChatRoom }> {
  const unknown = () => new AcpFault('unknown_session', { sessionId });
  const look = async (roomId: string) => {
    try {
      return { roomId, room: await rest.getChat(roomId, { signal }) };
    } catch (error) {
      if (isHidden(error)) return null;
      throw error;
    }
  };
  const own = roomIdOf(sessionId);
  if (own !== null) {
    const found = await look(own);
    if (found) return found;
  }
  // Other bridges gave ids of their own; the markers in the rooms know them.
  let alias = index.findAlias(sessionId);
  if (!alias) {
    await index.scan(rest, self.id, signal);
    alias = index.findAlias(sessionId);
  }
  if (alias?.principal !== principal) throw unknown();
  const found = await look(alias.roomId);
  if (!found) throw unknown();
  return found;
}

/** Brings a session up to date from its room and, for a load, shows the editor all that was said. */
export async function refill(
  session: Session,
  attachment: Attachment,
  room: ChatRoom,
  access: BandAccess,
  ask: Reopening,
  deps: SessionDeps,
): Promise<Introduced<LoadSessionResponse>> {
  const { signal } = ask;
  const unknown = () => new AcpFault('unknown_session', { sessionId: attachment.sessionId });
  // Live messages wait from here on, so nothing falls between what is read and what comes after.
  const keep = ask.replay ? deps.options.replayMaxMessages : 0;
  const [history] = await Promise.all([
    readRoom(access.rest, session.roomId, access.self.id, { keep, signal }).catch((error: unknown) => {
      throw isHidden(error) ? unknown() : error;
    }),
    deps.roster.list(access.rest, signal).catch(() => undefined),
    session.people.read(access, signal, true),
  ]);
  const { marker } = history;
  if (!marker || marker.deleted || marker.principal !== attachment.editor.principal) throw unknown();
  adopt(session, history, ask, attachment.editor, deps);
  session.tail.cursor = history.cursor;
  if (ask.replay) {
    const updates = replayUpdates(history, {
      self: access.self,
      handleOf: (id) => session.people.handleOf(id),
      attribute:
        deps.options.attribution === 'always' ||
        (deps.options.attribution === 'auto' && session.people.here.length > 1),
    });
    for (const update of updates) {
      signal.throwIfAborted();
      attachment.replay(update);
      await attachment.drained(signal);
    }
    for (const { id } of history.texts) attachment.replayed(id);
  }
  signal.throwIfAborted();
  const title = titleOf(room);
  deps.index.put(entryOf(session.marker(), title, history.lastAt ?? room.updated_at ?? null));
  return {
    response: {
      modes: session.modeState(),
      configOptions: session.configOptions(),
      _meta: meta({ roomId: session.roomId }),
    },
    afterAnswer: () => {
      session.announceCommands(attachment);
      if (title !== null) attachment.send({ sessionUpdate: 'session_info_update', title, updatedAt: history.lastAt });
      attachment.open();
    },
  };
}

/** Takes over what the marker says, and what the editor says now; the context is due again when that changed. */
function adopt(
  session: Session,
  { marker, hasPrompt }: RoomHistory,
  { cwd, params }: Reopening,
  editor: Editor,
  deps: SessionDeps,
): void {
  if (!marker) return;
  const mcpServers = summarizeMcp(params.mcpServers);
  const isNew = session.cwd === null;
  if (isNew) {
    session.sessionId = marker.sessionId;
    session.choices = restoredChoices(deps.options, marker);
    session.contextDue = !hasPrompt;
    session.titleDue = !hasPrompt;
  }
  const known = isNew ? marker : { cwd: session.cwd, mcpServers: session.mcpServers };
  const changed =
    known.cwd === null ||
    normalizeCwd(known.cwd) !== normalizeCwd(cwd) ||
    JSON.stringify(known.mcpServers) !== JSON.stringify(mcpServers);
  session.cwd = cwd;
  session.mcpServers = mcpServers;
  session.client = editor.client ?? session.client;
  if (changed) {
    session.contextDue = true;
    session.markers.due();
  }
}
