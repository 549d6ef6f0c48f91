import { z } from 'zod';

/** What a slash command can be told to do, in the order of its help. */
export const COMMAND_WORDS = {
  ask: 'ask a question here; the answer comes in a thread of its own',
  new: 'begin a conversation here',
  status: 'show your conversations of the last day here',
  link: 'list links to them',
  stop: 'stop one; what is written there waits',
  play: 'let a stopped one go on',
  interrupt: 'cut what is being answered, and go on with what comes next',
  mute: 'answer in one only where I am mentioned',
  unmute: 'answer in it without a mention again',
  help: 'show this',
} as const;
export type CommandWord = keyof typeof COMMAND_WORDS;

/** A slash command as it was typed. */
export interface CommandLine {
  /** Null for a word that means nothing here. */
  readonly word: CommandWord | null;
  /** The word as typed. */
  readonly typed: string;
  /** What follows it, in mrkdwn. */
  readonly rest: string;
}

/** Nothing typed asks for help; words are taken in any case. */
export function readCommandLine(text: string): CommandLine {
  const [, typed = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(text.trim()) ?? [];
  const word = typed === '' ? 'help' : typed.toLowerCase();
  return { word: Object.hasOwn(COMMAND_WORDS, word) ? (word as CommandWord) : null, typed, rest: rest.trim() };
}

const USAGE: Readonly<Partial<Record<CommandWord, string>>> = { ask: ' QUESTION' };

/** What the command can do, in mrkdwn. */
export function commandHelp(command: string): string {
  const lines = Object.entries(COMMAND_WORDS).map(
    ([word, about]) => `• \`${command} ${word}${USAGE[word as CommandWord] ?? ''}\`: ${about}`,
  );
  return ['You can also mention me in a channel, or write to me directly.', ...lines].join('\n');
}

const commandSchema = z.looseObject({ command: z.string(), text: z.string().catch('') });

/**
 * What a slash command is answered with at once, from nothing but its own words (S-169): Slack waits three seconds, so
 * everything else comes later, by the address that the command carries.
 *
 * @param served - false where the settings switch commands off
 * @returns null for what is no command
 */
export function commandAnswer(payload: unknown, served: boolean): Readonly<Record<string, unknown>> | null {
  const parsed = commandSchema.safeParse(payload);
  return parsed.success ? { response_type: 'ephemeral', text: answerTo(parsed.data, served) } : null;
}

function answerTo({ command, text }: { command: string; text: string }, served: boolean): string {
  const name = /^\/[\w-]{1,31}$/.test(command) ? command : '/';
  if (!served) return 'Commands are switched off here. Mention me, or write to me directly.';
  const { word, typed, rest } = readCommandLine(text);
  switch (word) {
    case null:
      return `I do not know \`${plainWord(typed)}\`.\n${commandHelp(name)}`;
    case 'help':
      return commandHelp(name);
    case 'ask':
      return rest === ''
        ? `What do you want to ask? Write it behind the word: \`${name} ask QUESTION\``
        : 'I pass your question on. The answer comes in a thread here.';
    case 'new':
      return 'I open a thread here for a new conversation.';
    case 'status':
    case 'link':
    case 'stop':
    case 'play':
    case 'interrupt':
    case 'mute':
    case 'unmute':
      return 'I look for your conversations here…';
  }
}

/** A word that somebody typed, shown back without anything that Slack would read as more than characters. */
const plainWord = (typed: string): string =>
  typed
    .replace(/[<>&`|]/g, '')
    .replace(/\p{Cc}/gu, '')
    .slice(0, 40);
