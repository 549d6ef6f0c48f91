/** The gateway agent as rooms name it. */
export interface Self {
  readonly id: string;
  readonly handle: string | null;
}

export interface MentionName {
  readonly id: string;
  readonly handle?: string | null | undefined;
}

const HANDLE_CHAR = /[\p{L}\p{N}_\-/]/u;
const TOKEN = /@\[\[([0-9a-f-]{36})\]\]/gi;

/**
 * A reply as the client sees it: the leading run of mentions that address the gateway agent is taken off, other mention
 * tokens become `@handle`, and nothing else changes.
 *
 * @param mentions - the message's own list, from which handles are known
 */
export function fromBandText(content: string, self: Self, mentions: readonly MentionName[]): string {
  const handles = new Map<string, string>();
  for (const { id, handle } of mentions) if (handle) handles.set(id.toLowerCase(), handle.replace(/^@/, ''));
  if (self.handle) handles.set(self.id.toLowerCase(), self.handle);
  return withoutAddress(content, self).replace(TOKEN, (token, id: string) => {
    const handle = handles.get(id.toLowerCase());
    return handle === undefined ? token : `@${handle}`;
  });
}

function withoutAddress(content: string, self: Self): string {
  const token = `@[[${self.id}]]`.toLowerCase();
  const handle = self.handle === null ? null : `@${self.handle}`.toLowerCase();
  let rest = content;
  for (;;) {
    const head = rest.trimStart();
    const lower = head.slice(0, Math.max(token.length, handle?.length ?? 0)).toLowerCase();
    if (lower.startsWith(token)) {
      rest = head.slice(token.length).trimStart();
    } else if (handle !== null && lower.startsWith(handle) && !HANDLE_CHAR.test(head.charAt(handle.length))) {
      rest = head.slice(handle.length).trimStart();
    } else {
      return rest;
    }
  }
}
