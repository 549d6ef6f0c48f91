import { get } from 'node-emoji';

/** Names of Slack's that differ from everybody else's. */
const SLACK_ONLY: Readonly<Record<string, string>> = {
  simple_smile: '🙂',
  slightly_smiling_face: '🙂',
  thumbsup: '👍',
  thumbsdown: '👎',
  '-1': '👎',
  '+1': '👍',
  hankey: '💩',
  shit: '💩',
  knife: '🔪',
  hocho: '🔪',
  email: '✉️',
  telephone: '☎️',
  phone: '☎️',
  flag_us: '🇺🇸',
  'flag-us': '🇺🇸',
  'flag-gb': '🇬🇧',
  'flag-de': '🇩🇪',
  'flag-fr': '🇫🇷',
  'flag-jp': '🇯🇵',
  white_check_mark: '✅',
  heavy_check_mark: '✔️',
  x: '❌',
  no_entry_sign: '🚫',
  octagonal_sign: '🛑',
  arrow_forward: '▶️',
  arrows_counterclockwise: '🔄',
  tada: '🎉',
  raised_hands: '🙌',
  pray: '🙏',
  eyes: '👀',
};

const SKIN_TONES = ['\u{1f3fb}', '\u{1f3fc}', '\u{1f3fd}', '\u{1f3fe}', '\u{1f3ff}'] as const;
const NAMED = /:([a-z0-9_+'-]{1,100}):(?::skin-tone-([2-6]):)?/g;

/** `:name:` as Unicode where the name is known; unknown names and times of day stay as they are. */
export function unicodeEmoji(text: string): string {
  if (!text.includes(':')) return text;
  return text.replace(NAMED, (whole, name: string, tone: string | undefined) => {
    const known = emojiNamed(name);
    if (known === null) return whole;
    return tone === undefined ? known : withTone(known, Number(tone));
  });
}

export function emojiNamed(name: string): string | null {
  if (Object.hasOwn(SLACK_ONLY, name)) return SLACK_ONLY[name] ?? null;
  return get(name) ?? null;
}

function withTone(emoji: string, tone: number): string {
  return emoji.replace(/\ufe0f/g, '') + (SKIN_TONES[tone - 2] ?? '');
}

/** Code points in hex, joined by `-`, as rich text gives them; null when they are none. */
export function fromCodePoints(unicode: string): string | null {
  const points = unicode.split('-').map((hex) => (/^[0-9a-fA-F]{1,6}$/.test(hex) ? Number.parseInt(hex, 16) : -1));
  return points.every((point) => point > 0 && point <= 0x10ffff) ? String.fromCodePoint(...points) : null;
}
