/** Markup that is safe to send; made by {@link markup} only. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | null | readonly (Html | string)[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text as markup, whatever it contains. Quotes are escaped too, so it may stand in an attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
}

/** A template whose inserted values are escaped unless they are markup themselves; null inserts nothing. */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const text = strings.reduce(
    (out, string, index) => out + string + (index < parts.length ? render(parts[index] ?? null) : ''),
    '',
  );
  return new Html(text);
}

function render(part: Part): string {
  if (part === null) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map((one) => render(one)).join('');
  return escapeHtml(String(part));
}
