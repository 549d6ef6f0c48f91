/** Someone who can be mentioned. */
export interface Mentionable {
  readonly id: string;
  readonly name: string;
  readonly handle?: string | null;
}

/** The `@word` that the caret stands in, while somebody is typing it. */
export interface OpenMention {
  /** Where its `@` stands. */
  readonly start: number;
  readonly query: string;
}

/** @returns null when the caret stands in no `@word` */
export function openMention(text: string, caret: number): OpenMention | null {
  const found = /(?:^|[\s(])@([\p{L}\p{N}._/-]*)$/u.exec(text.slice(0, caret));
  if (!found) return null;
  const query = found[1] ?? '';
  return { start: caret - query.length - 1, query };
}

/** Those whose name or handle begins with what was typed, or has a part that does. */
export function matching<T extends Mentionable>(people: readonly T[], query: string): T[] {
  const wanted = query.toLowerCase();
  return people.filter(({ name, handle }) =>
    [name, handle ?? '', ...(handle?.split('/') ?? []), ...name.split(' ')].some((part) =>
      part.toLowerCase().startsWith(wanted),
    ),
  );
}

/** How a person is written into a message. */
export function spelling({ name, handle }: Mentionable): string {
  return `@${handle ?? name}`;
}

/** The text with the open mention completed, and where the caret goes. */
export function complete(
  text: string,
  caret: number,
  mention: OpenMention,
  who: Mentionable,
): { text: string; caret: number } {
  const head = `${text.slice(0, mention.start)}${spelling(who)} `;
  return { text: head + text.slice(caret).replace(/^ /, ''), caret: head.length };
}

/** Ids of everyone whom a finished text mentions, each once, in the order of the people. */
export function mentionedIn(text: string, people: readonly Mentionable[]): string[] {
  const lower = text.toLowerCase();
  return people
    .filter((who) =>
      [who.handle, who.name].some((word) => word != null && word !== '' && hasWord(lower, `@${word.toLowerCase()}`)),
    )
    .map(({ id }) => id);
}

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const next = text.charAt(at + word.length);
    if (!/[\p{L}\p{N}_/-]/u.test(next)) return true;
  }
  return false;
}

/** A stored text in pieces: plain text, and mentions by id (`@[[id]]`). */
export function pieces(content: string): readonly ({ readonly text: string } | { readonly mention: string })[] {
  return content
    .split(/(@\[\[[0-9a-f-]{36}\]\])/i)
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('@[[') && part.endsWith(']]') ? { mention: part.slice(3, -2) } : { text: part }));
}
