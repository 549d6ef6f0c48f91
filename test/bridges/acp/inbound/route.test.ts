import { describe, expect, it } from 'vitest';
import { commandTable, parseCommand, availableCommands } from '../../../../bridges/acp/inbound/commands.js';
import { findMentions, routePrompt, type RouteInput } from '../../../../bridges/acp/inbound/route.js';
import { flattenPrompt } from '../../../../bridges/acp/parse.js';
import { toPerson, type Person } from '../../../../bridges/acp/roster.js';
import { person } from '../../../support/acp/fake-band.js';

const asPerson = (one: ReturnType<typeof person>): Person => toPerson({ ...one, role: 'member' });
const codex = asPerson(person('codex', 'Agent', 'writes and fixes code'));
const reviewer = asPerson(person('reviewer'));
const tester = asPerson(person('tester'));
const bob: Person = { ...asPerson(person('bob', 'User')), name: 'Bob Builder' };

const options = { unsupportedContent: 'reject', maxEmbeddedBytes: 65_536, maxPromptChars: 200_000 } as const;
function route(text: string, more: Partial<RouteInput> & { resource?: string } = {}) {
  const { resource, ...rest } = more;
  const prompt = flattenPrompt(
    [
      { type: 'text', text },
      ...(resource === undefined
        ? []
        : [{ type: 'resource' as const, resource: { uri: 'file:///r', text: resource } }]),
    ],
    options,
  );
  const roster = rest.roster ?? [codex, reviewer, tester];
  return routePrompt({
    prompt,
    commands: commandTable({ ship: 'tester' }, roster),
    participants: [codex, reviewer],
    roster,
    target: 'auto',
    modePeer: null,
    peers: [],
    fallback: 'all',
    ...rest,
  });
}
const handles = (found: ReturnType<typeof route>) =>
  found.kind === 'post' ? found.recipients.map(({ handle }) => handle) : found;

describe('routePrompt', () => {
  it('P-053 a slash command at the very start chooses the peer, in any case, and its body is kept verbatim', () => {
    expect(route('/CODEX  why\n\n  does it?')).toMatchObject({
      kind: 'post',
      recipients: [codex],
      text: ' why\n\n  does it?',
    });
    expect(route('/ship it')).toMatchObject({ kind: 'post', recipients: [tester], text: 'it' });
    expect(route('/codex\nfirst line')).toMatchObject({ recipients: [codex], text: 'first line' });
  });

  it('P-053 an unknown command, or one that is not at the start, is text', () => {
    expect(route('/etc/passwd is long')).toMatchObject({ kind: 'post', text: '/etc/passwd is long' });
    expect(route('/unknown thing')).toMatchObject({
      kind: 'post',
      text: '/unknown thing',
      recipients: [codex, reviewer],
    });
    expect(route(' /codex thing')).toMatchObject({ text: ' /codex thing', recipients: [codex, reviewer] });
    expect(parseCommand('text')).toBeNull();
  });

  it('P-053 slash beats mention, mention beats target, target beats mode, mode beats configured peers', () => {
    const all = { target: 'ana/tester', modePeer: 'tester', peers: ['codex'] };
    expect(handles(route('/codex ask @reviewer', all))).toEqual(['ana/codex']);
    expect(handles(route('ask @reviewer', all))).toEqual(['ana/reviewer']);
    expect(handles(route('ask', all))).toEqual(['ana/tester']);
    expect(handles(route('ask', { ...all, target: 'auto' }))).toEqual(['ana/tester']);
    expect(handles(route('ask', { ...all, target: 'auto', modePeer: null }))).toEqual(['ana/codex']);
    expect(handles(route('ask', { target: 'all' }))).toEqual(['ana/codex', 'ana/reviewer']);
  });

  it('P-053 falls back to the only agent, then to everybody, then to the people in the room', () => {
    expect(handles(route('hi', { participants: [codex, bob] }))).toEqual(['ana/codex']);
    expect(handles(route('hi', { participants: [codex, reviewer, bob] }))).toEqual(['ana/codex', 'ana/reviewer']);
    expect(handles(route('hi', { participants: [bob], roster: [] }))).toEqual(['bob']);
    expect(route('hi', { fallback: 'none' })).toMatchObject({ kind: 'local', reason: 'no_recipient' });
  });

  it('P-040 asks a roster of one by itself, and lists a roster of many', () => {
    expect(handles(route('hi', { participants: [], roster: [codex] }))).toEqual(['ana/codex']);
    const many = route('hi', { participants: [] });
    expect(many).toMatchObject({ kind: 'local', reason: 'no_recipient' });
    expect(many.kind === 'local' && many.text).toContain('@ana/tester');
    expect(route('hi', { participants: [], roster: [] })).toMatchObject({ kind: 'local', reason: 'no_recipient' });
  });

  it('P-059 a peer command without a message is answered with its use', () => {
    expect(route('/codex  ')).toMatchObject({ kind: 'local', reason: 'command' });
    expect(route('/peers')).toMatchObject({ kind: 'built-in', name: 'peers' });
    expect(route('/invite @tester ')).toMatchObject({ kind: 'built-in', name: 'invite', args: '@tester' });
  });

  it('P-055 a target that nobody knows is answered here', () => {
    expect(route('hi', { target: 'ana/gone' })).toMatchObject({ kind: 'local', reason: 'peer_not_found' });
    expect(route('hi', { modePeer: 'nobody' })).toMatchObject({ kind: 'local', reason: 'peer_not_found' });
  });
});

describe('findMentions', () => {
  const people = [codex, reviewer, bob, asPerson({ ...person('x'), name: 'Bob', handle: 'zoe/bob-2' })];
  const found = (text: string) => {
    const mentions = findMentions([text], people);
    return mentions.kind === 'people' ? mentions.people.map(({ handle }) => handle) : mentions.token;
  };

  it('P-054 finds handles, slugs and names, the longest first, in any case', () => {
    expect(found('@ana/codex and @Reviewer: safe?')).toEqual(['ana/codex', 'ana/reviewer']);
    expect(found('@CODEX.')).toEqual(['ana/codex']);
    expect(found('ask @bob builder please')).toEqual(['bob']);
    expect(found('(@codex)')).toEqual(['ana/codex']);
  });

  it('P-054 leaves e-mail addresses, decorators and longer words alone', () => {
    for (const text of ['mail x@codex', 'ana@codex.dev', '@Override', '@codex-2', '@codex/sub', '@@codex']) {
      expect(found(text)).toEqual([]);
    }
  });

  it('P-054 looks into neither code nor links', () => {
    for (const text of [
      '`@codex`',
      '```\n@codex\n```',
      '~~~js\n@codex',
      '[@codex](http://x)',
      '<https://x/@codex>',
      'https://x.dev/@codex',
    ]) {
      expect(found(text)).toEqual([]);
    }
    expect(found('`code` then @codex')).toEqual(['ana/codex']);
  });

  it('P-054 does not look into resources', () => {
    expect(handles(route('look', { resource: '@tester run', participants: [codex] }))).toEqual(['ana/codex']);
  });

  it('P-053 a token that could be several peers is answered here with the list', () => {
    const twin = { ...reviewer, id: 'other', handle: 'eva/reviewer' };
    const answer = route('@reviewer go', { roster: [reviewer, twin], participants: [reviewer] });
    expect(answer).toMatchObject({ kind: 'local', reason: 'peer_ambiguous' });
    expect(answer.kind === 'local' && answer.text).toContain('@eva/reviewer');
    expect(handles(route('@eva/reviewer go', { roster: [reviewer, twin] }))).toEqual(['eva/reviewer']);
  });
});

describe('commands', () => {
  it('P-036 offer built-in ones, configured ones and slugs; slugs that collide get their owner in front', () => {
    const twin = { ...codex, id: 'twin', handle: 'eva/codex' };
    const table = commandTable({ Fix: 'ana/reviewer', help: 'codex' }, [codex, twin, reviewer]);
    expect([...table.keys()]).toEqual(['peers', 'invite', 'room', 'help', 'fix', 'ana-codex', 'eva-codex', 'reviewer']);
    const shown = availableCommands(table, [codex, twin, reviewer]);
    expect(shown.find(({ name }) => name === 'ana-codex')?.description).toBe('Ask Codex: writes and fixes code');
    expect(shown.find(({ name }) => name === 'Fix')?.description).toBe('Ask Reviewer');
  });

  it('P-036 offer at most 50 of the roster, descriptions cut to 120 characters', () => {
    const many = Array.from({ length: 80 }, (_, i) => asPerson(person(`peer${i}`, 'Agent', 'd'.repeat(300))));
    const shown = availableCommands(commandTable({}, many), many);
    expect(shown).toHaveLength(54);
    expect(Math.max(...shown.map(({ description }) => Array.from(description).length))).toBe(120);
  });
});
