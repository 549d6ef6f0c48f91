/** Short forms that the `acp` command takes beside the names that follow from its settings. */
const ALIASES: Readonly<Record<string, string>> = {
  peer: 'peers',
  context: 'context-preamble',
  fallback: 'fallback-routing',
};

const SHORT_HELP = [
  '  --peer PEER            a peer to invite to each session; may be repeated',
  '  --slash NAME=PEER      a slash command of its own for a peer; may be repeated',
  '  --mode ID=PEER[:NAME]  a session mode that speaks to a peer; may be repeated',
  '  --context first|always|never, --fallback all|none, --turn-timeout SECONDS',
];

export const shortFlagHelp: readonly string[] = SHORT_HELP;

/**
 * Spells short flags out: `--peer`, `--slash name=peer`, `--mode id=peer[:Name]`, `--context`, `--fallback`,
 * `--turn-timeout` in seconds.
 *
 * @returns the flags that settings know, and a sentence for each one that is malformed
 */
export function expandShortFlags(args: readonly string[]): { readonly args: string[]; readonly problems: string[] } {
  const out: string[] = [];
  const problems: string[] = [];
  const slash: Record<string, string> = {};
  const modes: { id: string; peer?: string; name?: string }[] = [];
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i] ?? '';
    if (arg === '--') {
      out.push(...args.slice(i));
      break;
    }
    const [, name = '', joined] = /^--([a-z-]+)(?:=([\s\S]*))?$/.exec(arg) ?? [];
    const isShort = Object.hasOwn(ALIASES, name) || ['slash', 'mode', 'turn-timeout'].includes(name);
    if (!isShort) {
      out.push(arg);
      continue;
    }
    const value = joined ?? args[(i += 1)];
    if (value === undefined) {
      problems.push(`--${name} needs a value`);
      continue;
    }
    switch (name) {
      case 'slash': {
        const found = /^([A-Za-z0-9][A-Za-z0-9_-]*)=(.*\S.*)$/.exec(value);
        if (found?.[1] && found[2]) slash[found[1]] = found[2].trim();
        else problems.push(`--slash ${value} is malformed: write NAME=PEER`);
        break;
      }
      case 'mode': {
        const found = /^([A-Za-z0-9][A-Za-z0-9_-]*)=([^:]*)(?::(.*\S.*))?$/.exec(value);
        if (!found?.[1]) {
          problems.push(`--mode ${value} is malformed: write ID=PEER or ID=PEER:NAME`);
          break;
        }
        const [peer, shown] = [found[2]?.trim(), found[3]?.trim()];
        modes.push({ id: found[1], ...(peer ? { peer } : {}), ...(shown ? { name: shown } : {}) });
        break;
      }
      case 'turn-timeout': {
        const seconds = Number(value);
        if (value.trim() !== '' && Number.isFinite(seconds) && seconds > 0) {
          out.push('--turn-idle-timeout-ms', String(Math.ceil(seconds * 1_000)));
        } else problems.push(`--turn-timeout ${value} is malformed: write a number of seconds`);
        break;
      }
      default:
        out.push(`--${ALIASES[name] ?? name}`, value);
    }
  }
  if (Object.keys(slash).length > 0) out.unshift('--slash-commands', JSON.stringify(slash));
  if (modes.length > 0) out.unshift('--modes', JSON.stringify(modes));
  return { args: out, problems };
}
