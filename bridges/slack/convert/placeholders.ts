import { CONTROL_SEQUENCE, mentionOf, type Mention } from './mentions.js';

/** What was lifted out of a Markdown source so that the parser cannot take it for something else. */
export type Lifted =
  | { readonly kind: 'mention'; readonly raw: string; readonly mention: Mention }
  /** Slack's own spelling of a link. */
  | { readonly kind: 'link'; readonly raw: string; readonly url: string; readonly label: string }
  /** Text that is not to be parsed; may hold marks of what was lifted before it. */
  | { readonly kind: 'plain'; readonly raw: string };

const OPEN = '\uf8ff';
const CLOSE = '\uf8fe';
const MARK = /\uf8ff(\d+)\uf8fe/g;
const SLACK_LINK = /(?<!\]\(|\]: )<(https?:[^\s<>|]+)\|([^<>\n]*)>/g;

/** Lifts things out of a text and puts them back. Private-use characters of the text itself are lifted as well. */
export class Placeholders {
  readonly #lifted: Lifted[] = [];

  /** The source with every control sequence and Slack link replaced by a mark. */
  lift(source: string): string {
    return source
      .replace(/[\uf8ff\uf8fe]/g, (raw) => this.mark({ kind: 'plain', raw }))
      .replace(CONTROL_SEQUENCE, (...args: unknown[]) => {
        const groups = this.#restoredLabel(args.at(-1) as Record<string, string | undefined>);
        return this.mark({ kind: 'mention', raw: args[0] as string, mention: mentionOf(groups) });
      })
      .replace(SLACK_LINK, (raw, url: string, label: string) =>
        this.mark({ kind: 'link', raw, url: this.restore(url), label: this.restore(label) }),
      );
  }

  #restoredLabel(groups: Record<string, string | undefined>): Record<string, string | undefined> {
    return { ...groups, label: groups['label'] === undefined ? undefined : this.restore(groups['label']) };
  }

  mark(lifted: Lifted): string {
    this.#lifted.push(lifted);
    return `${OPEN}${this.#lifted.length - 1}${CLOSE}`;
  }

  /** The text as it was before {@link lift}. */
  restore(text: string): string {
    return text.replace(MARK, (mark, index: string) => {
      const lifted = this.#lifted[Number(index)];
      return lifted ? this.restore(lifted.raw) : mark;
    });
  }

  /** Text and lifted parts in turn. */
  *parts(text: string): Generator<string | Lifted> {
    let at = 0;
    for (const match of text.matchAll(MARK)) {
      const lifted = this.#lifted[Number(match[1])];
      if (!lifted) continue;
      if (match.index > at) yield text.slice(at, match.index);
      yield lifted;
      at = match.index + match[0].length;
    }
    if (at < text.length) yield text.slice(at);
  }
}
