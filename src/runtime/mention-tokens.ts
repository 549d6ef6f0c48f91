import type { Roster } from '../core/participants.js';

const TOKEN = /@\[\[([^[\]\s]+)\]\]/g;

/** Turns the platform's mention tokens into `@handle` for those who are known; others stay as they are. */
export function readableMentions(content: string, roster: Pick<Roster, 'get'>): string {
  if (!content.includes('@[[')) return content;
  return content.replace(TOKEN, (token, id: string) => {
    const handle = roster.get(id)?.handle;
    return handle ? `@${handle}` : token;
  });
}
