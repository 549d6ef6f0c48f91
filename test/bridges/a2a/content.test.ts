import { afterEach, describe, expect, it } from 'vitest';
import { fenced, safeFileName, toBandText } from '../../../bridges/a2a/convert/to-band.js';
import { acceptsType } from '../../../bridges/a2a/convert/media-types.js';
import type { Part } from '../../../bridges/a2a/wire.js';
import { legacyMessage, message } from '../../support/a2a/client.js';
import { a2aLab, type A2ALab } from '../../support/a2a/lab.js';

const NOW = { returnImmediately: true };
const OPTIONS = { inputModes: ['*/*'], inlineChars: 20_000, maxChars: 200_000 };
const base64 = (text: string) => Buffer.from(text).toString('base64');
const text = (...parts: Part[]) => toBandText(parts, OPTIONS);

describe('parts as the text of a room', () => {
  it.each<[string, Part, string]>([
    ['text', { text: 'Hi' }, 'Hi'],
    ['data', { data: { city: 'Riga' } }, '```json\n{\n  "city": "Riga"\n}\n```'],
    ['falsy data', { data: false }, '```json\nfalse\n```'],
    [
      'a link',
      { url: 'https://x.example/a.pdf', filename: 'a.pdf', mediaType: 'application/pdf' },
      '[a.pdf](https://x.example/a.pdf) (application/pdf)',
    ],
    ['a link without a name', { url: 'https://x.example/docs/b.pdf?v=1' }, '[b.pdf](https://x.example/docs/b.pdf?v=1)'],
    ['a link without a path', { url: 'https://x.example' }, '[x.example](https://x.example)'],
    [
      'a link that would break out',
      { url: 'https://x.example/a)b', filename: '](evil)[' },
      '[(evil)](https://x.example/a%29b)',
    ],
    [
      'a text file',
      { raw: 'YSxiCjEsMg==', filename: 't.csv', mediaType: 'text/csv' },
      't.csv (text/csv)\n```\na,b\n1,2\n```',
    ],
    ['a file whose type its name tells', { raw: base64('x'), filename: 'a.md' }, 'a.md (text/markdown)\n```\nx\n```'],
    [
      'url-safe base64',
      { raw: Buffer.from('??>').toString('base64url'), mediaType: 'text/plain' },
      'file (text/plain)\n```\n??>\n```',
    ],
  ])('A-300 %s', (_name, part, wanted) => {
    expect(text(part)).toBe(wanted);
  });

  it('A-300 the order of mixed parts is kept, and fences are longer than what they hold', () => {
    expect(text({ text: 'a' }, { data: 1 }, { text: 'b' })).toBe('a\n\n```json\n1\n```\n\nb');
    expect(fenced('``` and ````', '')).toBe('`````\n``` and ````\n`````');
  });

  it.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\a.txt', 'a.txt'],
    ['a\u0000b\u202Egpj.exe', 'abgpj.exe'],
    ['..', ''],
    [undefined, ''],
  ])('A-301 the file name %j is shown as %j', (name, shown) => {
    expect(safeFileName(name)).toBe(shown);
  });

  it('A-301 a long file name is cut', () => {
    expect(safeFileName(`${'x'.repeat(300)}.txt`)).toHaveLength(255);
  });

  it('A-302 media types fit exactly, by range and without their parameters', () => {
    expect(acceptsType(['text/plain'], 'text/plain; charset=utf-8')).toBe(true);
    expect(acceptsType(['text/*'], 'TEXT/CSV')).toBe(true);
    expect(acceptsType(['*/*'], 'image/png')).toBe(true);
    expect(acceptsType(['text/plain', 'application/json'], 'text/csv')).toBe(false);
  });

  it.each<[string, Part]>([
    ['an image', { raw: 'iVBORw0KGgo=', filename: 'p.png', mediaType: 'image/png' }],
    ['bytes that are no text', { raw: Buffer.from([0xff, 0xfe]).toString('base64'), mediaType: 'text/plain' }],
    ['text with a NUL', { raw: base64('a\u0000b'), mediaType: 'text/plain' }],
    ['a text file that is too long', { raw: base64('x'.repeat(20_001)), mediaType: 'text/plain' }],
  ])('A-303 %s is refused, not left out', (_name, part) => {
    expect(() => text({ text: 'see' }, part)).toThrow('does not take this kind of content');
  });

  it('A-306 the limit counts characters, and the limit itself passes', () => {
    const limited = { ...OPTIONS, maxChars: 3 };
    expect(toBandText([{ text: '👋👋👋' }], limited)).toBe('👋👋👋');
    expect(() => toBandText([{ text: 'abcd' }], limited)).toThrow('invalid fields');
  });
});

describe('content on the wire', () => {
  let lab: A2ALab;
  afterEach(() => lab.close());

  it('A-300 both dialects put the same text into the room', async () => {
    lab = await a2aLab({ options: { inputModes: ['*/*'] } });
    const parts = [
      { text: 'see' },
      { raw: 'YSxiCjEsMg==', filename: 't.csv', mediaType: 'text/csv' },
      { url: 'https://x.example/a.pdf', filename: 'a.pdf', mediaType: 'application/pdf' },
      { data: { city: 'Riga' } },
    ];
    const legacyParts = [
      { kind: 'text', text: 'see' },
      { kind: 'file', file: { bytes: 'YSxiCjEsMg==', name: 't.csv', mimeType: 'text/csv' } },
      { kind: 'file', file: { uri: 'https://x.example/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' } },
      { kind: 'data', data: { city: 'Riga' } },
    ];
    await lab.client.rpc('helper', 'SendMessage', message('', { parts }, NOW));
    await lab.client.rpc('helper', 'message/send', legacyMessage('', { parts: legacyParts }, { blocking: false }), {
      version: null,
    });
    await lab.posted(2);
    const [newer, older] = lab.rooms.posted.map(({ content }) => content);
    expect(older).toBe(newer);
    expect(newer).toMatch(/^@Helper see\n\nt\.csv \(text\/csv\)\n```\na,b\n1,2\n```\n\n\[a\.pdf\]/);
  });

  it('A-302 A-303 a kind that is not taken is refused before any call of Band, and names itself', async () => {
    lab = await a2aLab();
    const image = { raw: 'iVBORw0KGgo=', filename: 'p.png', mediaType: 'image/png' };
    const before = lab.rooms.calls.length;
    const rpc = await lab.client.rpc('helper', 'SendMessage', message('', { parts: [{ text: 'x' }, image] }, NOW));
    expect(rpc.body.error).toMatchObject({
      code: -32005,
      data: [
        { reason: 'CONTENT_TYPE_NOT_SUPPORTED', domain: 'a2a-protocol.org', metadata: { mediaType: 'image/png' } },
      ],
    });
    const rest = await lab.client.request('POST', '/agents/helper/message:send', message('', { parts: [image] }, NOW));
    expect(rest.status).toBe(400);
    const csv = await lab.client.rpc(
      'helper',
      'SendMessage',
      message('', { parts: [{ raw: 'YQ==', mediaType: 'text/csv' }] }, NOW),
    );
    expect(csv.body.error.code).toBe(-32005);
    expect(lab.rooms.calls.length).toBe(before);
    expect(lab.engine.held.tasks).toBe(0);
  });

  it('A-304 a link is passed on and never fetched', async () => {
    lab = await a2aLab();
    await lab.submit('', { parts: [{ url: 'http://127.0.0.1:9/secret' }] });
    await lab.posted(1);
    expect(lab.rooms.posted[0]?.content).toBe('@Helper [secret](http://127.0.0.1:9/secret)');
  });

  it('strict output modes refuse a client that takes none of them', async () => {
    lab = await a2aLab({ options: { strictOutputModes: true } });
    const send = (acceptedOutputModes: string[]) =>
      lab.client.rpc('helper', 'SendMessage', message('x', {}, { ...NOW, acceptedOutputModes }));
    expect((await send(['image/png'])).body.error.code).toBe(-32005);
    expect((await send(['text/*'])).body.error).toBeUndefined();
    expect((await send([])).body.error).toBeUndefined();
  });
});
