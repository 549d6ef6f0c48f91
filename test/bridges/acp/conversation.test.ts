import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../src/platform/wire/objects.js';
import {
  checkCwd,
  markerEvent,
  normalizeCwd,
  parseMarker,
  roomIdOf,
  summarizeMcp,
  type Marker,
} from '../../../bridges/acp/conversation.js';

const ROOM = '6f0e7a52-8d0c-4f6e-9a51-3f2b7f1d20c1';
const SELF = 'aaaaaaaa-0000-4000-8000-000000000001';
const marker: Marker = {
  sessionId: ROOM,
  roomId: ROOM,
  cwd: '/home/ana/shop',
  mcpServers: [{ name: 'files', type: 'stdio', command: '/usr/bin/mcp-files' }],
  client: { name: 'zed', version: '1.19.2' },
  mode: 'default',
  target: 'auto',
  principal: null,
  deleted: false,
};
const rowOf = (metadata: Record<string, unknown>, more: Partial<ChatMessage> = {}): ChatMessage => ({
  id: 'e',
  content: 'ACP session context',
  message_type: 'task',
  sender_id: SELF,
  sender_type: 'Agent',
  metadata,
  ...more,
});

describe('markers', () => {
  it('P-032 carry the keys of the reference and ours, and come back as they were', () => {
    const { metadata } = markerEvent(marker);
    expect(metadata).toEqual({
      acp_v: 1,
      acp_session_id: ROOM,
      acp_room_id: ROOM,
      acp_cwd: '/home/ana/shop',
      acp_mcp_servers: [{ name: 'files', type: 'stdio', command: '/usr/bin/mcp-files' }],
      acp_client: { name: 'zed', version: '1.19.2' },
      acp_mode: 'default',
      acp_target: 'auto',
    });
    expect(parseMarker(rowOf(metadata), ROOM, SELF)).toEqual(marker);
    const gone = { ...marker, principal: 'bob', deleted: true };
    expect(parseMarker(rowOf(markerEvent(gone).metadata), ROOM, SELF)).toEqual(gone);
  });

  it('P-140 of somebody else, of another type or of another room do not count', () => {
    const { metadata } = markerEvent(marker);
    expect(parseMarker(rowOf(metadata, { sender_id: 'other' }), ROOM, SELF)).toBeNull();
    expect(parseMarker(rowOf(metadata, { message_type: 'thought' }), ROOM, SELF)).toBeNull();
    expect(parseMarker(rowOf({ ...metadata, acp_room_id: 'elsewhere' }), ROOM, SELF)).toBeNull();
    expect(parseMarker(rowOf({}), ROOM, SELF)).toBeNull();
  });

  it('P-139 of the reference bridges are read', () => {
    const metadata = { acp_session_id: 'f'.repeat(32), acp_room_id: ROOM, acp_cwd: '/x', acp_mcp_servers: [] };
    expect(parseMarker(rowOf(metadata), ROOM, SELF)).toMatchObject({
      sessionId: 'f'.repeat(32),
      mode: null,
      cwd: '/x',
    });
  });

  it('P-032 keep arguments, environment, headers, user info and query of MCP servers out', () => {
    const summary = summarizeMcp([
      { name: 'files', command: '/bin/f', args: ['CANARY-1'], env: [{ name: 'T', value: 'CANARY-2' }] },
      {
        type: 'http',
        name: 'web',
        url: 'https://u:CANARY-3@h.example:1/p?k=CANARY-4#CANARY-5',
        headers: [{ name: 'A', value: 'CANARY-6' }],
      },
      { type: 'sse', name: 'odd', url: 'not a url CANARY-7' },
    ]);
    expect(summary).toEqual([
      { name: 'files', type: 'stdio', command: '/bin/f' },
      { name: 'web', type: 'http', url: 'https://h.example:1/p' },
      { name: 'odd', type: 'sse', url: '' },
    ]);
  });
});

describe('folders and ids', () => {
  it('P-033 takes absolute folders of any system and refuses the rest', () => {
    for (const cwd of ['/', '/a/b', 'C:\\x', 'c:/x', '\\\\srv\\x']) expect(checkCwd(cwd)).toBe(cwd);
    for (const cwd of ['', '.', 'a/b', 'C:x', '~', null, undefined, 4]) {
      expect(() => checkCwd(cwd)).toThrow(expect.objectContaining({ reason: 'invalid_cwd' }));
    }
  });

  it('P-136 compares folders by meaning', () => {
    expect(normalizeCwd('/a//b/')).toBe(normalizeCwd('/a/b'));
    expect(normalizeCwd('/')).toBe('/');
    expect(normalizeCwd('C:\\X\\y\\')).toBe(normalizeCwd('c:/x/Y'));
    expect(normalizeCwd('/A')).not.toBe(normalizeCwd('/a'));
  });

  it('P-031 takes the id of a room in either case', () => {
    expect(roomIdOf(ROOM.toUpperCase())).toBe(ROOM);
    expect(roomIdOf('f'.repeat(32))).toBeNull();
  });
});
