import type { ChatMessage } from '../../src/platform/wire/objects.js';
import { isUuid } from '../../src/base/ids.js';
import { AcpFault } from './errors.js';

/**
 * A session mirrors one room, and its id is the room's id in lower case, so that a restart needs no table. Other ids
 * come from rooms that another bridge marked; they are kept beside the room.
 */
export function sessionIdOf(roomId: string): string {
  return roomId.toLowerCase();
}

/** The room a session id names by itself, or null for an id that only a marker can explain. */
export function roomIdOf(sessionId: string): string | null {
  return isUuid(sessionId) ? sessionId.toLowerCase() : null;
}

/**
 * A working folder as told by an editor: POSIX, Windows drive or UNC. The gateway may run elsewhere, so it is not
 * looked up.
 *
 * @throws {AcpFault} `invalid_cwd` when it is not absolute
 */
export function checkCwd(cwd: unknown): string {
  if (typeof cwd === 'string' && /^(?:\/|\\\\|[A-Za-z]:[\\/])/.test(cwd) && !cwd.includes('\0')) return cwd;
  throw new AcpFault('invalid_cwd');
}

/** Two spellings of one folder compare equal: no trailing slash, no doubled one, `\` and `/` alike on Windows. */
export function normalizeCwd(cwd: string): string {
  const windows = /^[A-Za-z]:[\\/]/.test(cwd) || cwd.startsWith('\\\\');
  const slashes = windows ? cwd.replaceAll('\\', '/').toLowerCase() : cwd;
  const single = slashes.replace(/(?<!^)\/{2,}/g, '/');
  return single.length > 1 ? single.replace(/\/$/, '') || '/' : single;
}

/** What may be told of an MCP server: never its arguments, environment or headers. */
export interface McpSummary {
  readonly name: string;
  readonly type: string;
  readonly command?: string;
  readonly url?: string;
}

/** Reduces MCP server entries of a request to what the room may know. */
export function summarizeMcp(servers: readonly unknown[]): readonly McpSummary[] {
  return servers.flatMap((server) => {
    if (typeof server !== 'object' || server === null) return [];
    const { name, type, command, url } = server as Record<string, unknown>;
    if (typeof name !== 'string') return [];
    const summary: McpSummary = { name, type: typeof type === 'string' ? type : 'stdio' };
    if (typeof url === 'string') return [{ ...summary, url: bareUrl(url) }];
    return [typeof command === 'string' ? { ...summary, command } : summary];
  });
}

/** A URL without user information, query and fragment: all of them may carry keys. */
function bareUrl(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    // Not a URL: nothing in it can be trusted to be harmless.
    return '';
  }
}

export interface ClientInfo {
  readonly name: string;
  readonly title?: string;
  readonly version: string;
}

/** What makes a room a session, as kept in the newest marker of the room. */
export interface Marker {
  readonly sessionId: string;
  readonly roomId: string;
  readonly cwd: string | null;
  readonly mcpServers: readonly McpSummary[];
  readonly client: { readonly name: string; readonly version: string } | null;
  readonly mode: string | null;
  readonly target: string | null;
  /** Whose session it is; null is the person at this host's editor. */
  readonly principal: string | null;
  readonly deleted: boolean;
}

const MARKER_TEXT = 'ACP session context';
const MARKER_VERSION = 1;

/** The event that marks a room. The first four keys are those of the Python and TypeScript bridges. */
export function markerEvent(marker: Marker): {
  content: string;
  messageType: 'task';
  metadata: Record<string, unknown>;
} {
  return {
    content: MARKER_TEXT,
    messageType: 'task',
    metadata: {
      acp_v: MARKER_VERSION,
      acp_session_id: marker.sessionId,
      acp_room_id: marker.roomId,
      acp_cwd: marker.cwd,
      acp_mcp_servers: marker.mcpServers,
      ...(marker.client ? { acp_client: marker.client } : {}),
      ...(marker.mode === null ? {} : { acp_mode: marker.mode }),
      ...(marker.target === null ? {} : { acp_target: marker.target }),
      ...(marker.principal === null ? {} : { acp_principal: marker.principal }),
      ...(marker.deleted ? { acp_deleted: true } : {}),
    },
  };
}

/** The marker a row carries, or null: only the bridge's own `task` row that names the room it stands in counts. */
export function parseMarker(row: ChatMessage, roomId: string, selfId: string): Marker | null {
  const metadata = row.metadata ?? {};
  const sessionId = text(metadata['acp_session_id']);
  const named = text(metadata['acp_room_id']);
  if (row.message_type !== 'task' || sessionId === null || named === null) return null;
  if (row.sender_id.toLowerCase() !== selfId.toLowerCase() || named.toLowerCase() !== roomId.toLowerCase()) return null;
  const mcp = metadata['acp_mcp_servers'];
  const client = metadata['acp_client'] as Record<string, unknown> | null | undefined;
  const name = text(client?.['name']);
  return {
    sessionId,
    roomId,
    cwd: text(metadata['acp_cwd']),
    mcpServers: Array.isArray(mcp) ? summarizeMcp(mcp) : [],
    client: name === null ? null : { name, version: text(client?.['version']) ?? '' },
    mode: text(metadata['acp_mode']),
    target: text(metadata['acp_target']),
    principal: text(metadata['acp_principal']),
    deleted: metadata['acp_deleted'] === true,
  };
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
