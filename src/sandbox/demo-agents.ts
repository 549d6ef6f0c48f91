/** The two demo brains, as functions: what is said to them, what they do. The service wraps them in agents. */

/** What a demo agent does with a message, in this order. */
export type DemoStep =
  | {
      readonly kind: 'event';
      readonly messageType: 'thought' | 'tool_call' | 'tool_result';
      readonly content: string;
      readonly metadata?: Readonly<Record<string, unknown>>;
    }
  | { readonly kind: 'reply'; readonly content: string };

/** Who a brain is in the room, so that it can tell its own mention from the text. */
export interface DemoSelf {
  readonly id: string;
  readonly handle: string;
  readonly name: string;
}

/** `echo: <text>`, without the mention that called for it. */
export function echo(content: string, self: DemoSelf): DemoStep[] {
  return [{ kind: 'reply', content: `echo: ${withoutMention(content, self)}` }];
}

const DICE = /(\d{0,3})[dw](\d{1,4})/i;
const MAX_DICE = 100;

/**
 * Rolls dice: a thought, a tool event with every die, then the sum.
 *
 * @param random - numbers in [0, 1)
 */
export function dice(content: string, self: DemoSelf, random: () => number): DemoStep[] {
  const found = DICE.exec(withoutMention(content, self));
  if (!found) return [{ kind: 'reply', content: 'Say what to roll, for example 2d6.' }];
  const count = found[1] === '' ? 1 : Number(found[1]);
  const sides = Number(found[2]);
  if (count < 1 || count > MAX_DICE || sides < 2) {
    return [{ kind: 'reply', content: `I roll 1 to ${MAX_DICE} dice with at least 2 sides each.` }];
  }
  const rolls = Array.from({ length: count }, () => 1 + Math.floor(random() * sides));
  const sum = rolls.reduce((total, roll) => total + roll, 0);
  const name = `${count}d${sides}`;
  return [
    { kind: 'event', messageType: 'thought', content: `Rolling ${name}` },
    {
      kind: 'event',
      messageType: 'tool_call',
      content: `roll(${name})`,
      metadata: { id: `roll_${name}`, type: 'function', function: { name: 'roll', arguments: { count, sides } } },
    },
    {
      kind: 'event',
      messageType: 'tool_result',
      content: rolls.join(', '),
      metadata: { success: true, message: rolls.join(', ') },
    },
    { kind: 'reply', content: `${name}: ${sum}` },
  ];
}

/** Text with every spelling of one's own mention taken out. */
export function withoutMention(content: string, { id, handle, name }: DemoSelf): string {
  let text = content.replaceAll(`@[[${id}]]`, '');
  for (const spelling of [handle, name]) {
    if (spelling !== '') text = text.replace(new RegExp(`@${escape(spelling)}(?![\\p{L}\\p{N}_/-])`, 'giu'), '');
  }
  return text.trim();
}

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
