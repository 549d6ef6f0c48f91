const LONGEST_CHARS = 120;
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;

/**
 * A file name that is one on every system and reads as what it is: no folders, no control or direction characters, no
 * marks that Slack or a shell would read (S-146).
 */
export function safeFileName(name: string): string {
  const last = name.normalize('NFC').split(/[/\\]/).at(-1) ?? '';
  const clean = last
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .replace(/[<>:"|?*&`$;!]/g, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  const short = shorten(clean);
  if (short === '') return 'file';
  return RESERVED.test(short) ? `_${short}` : short;
}

/** Cuts in the stem, so that the ending stays. */
function shorten(name: string): string {
  if (name.length <= LONGEST_CHARS) return name;
  const [ending = ''] = /\.[A-Za-z0-9]{1,10}$/.exec(name) ?? [];
  return name.slice(0, LONGEST_CHARS - ending.length).replace(/[\ud800-\udbff]$/, '') + ending;
}
