import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFrameReader, encodeFrame, type Frame } from '../../../../bridges/acp/stdio/frames.js';
import { createLineSplitter, idInHead } from '../../../../bridges/acp/stdio/lines.js';

const utf8 = new TextEncoder();
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function split(chunks: Iterable<Uint8Array>, maxBytes = 1_000_000) {
  const lines: string[] = [];
  const heads: string[] = [];
  const splitter = createLineSplitter(maxBytes, {
    onLine: (line) => lines.push(decode(line)),
    onTooLong: (head) => heads.push(decode(head)),
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return { lines, heads };
}
function read(chunks: Iterable<Uint8Array>, maxBytes = 1_000_000) {
  const frames: Frame[] = [];
  const faults: unknown[] = [];
  const reader = createFrameReader(maxBytes, {
    onFrame: (frame) => frames.push(frame),
    onFault: (answer) => faults.push(answer),
  });
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return { frames, faults };
}

describe('lines', () => {
  it('P-007 ACP-07 come whole however the bytes are cut, with LF, CRLF, blank lines and none at the end', () => {
    const text = '{"a":"Zażółć 漢字 🧭"}\r\n\n \t\n{"b":1}\n{"last":true}';
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (sizes) => {
        const bytes = utf8.encode(text);
        const chunks: Uint8Array[] = [];
        for (let at = 0, i = 0; at < bytes.length; at += sizes[i++ % sizes.length]!) {
          chunks.push(bytes.subarray(at, at + sizes[i % sizes.length]!));
        }
        expect(split(chunks).lines).toEqual(['{"a":"Zażółć 漢字 🧭"}', '{"b":1}', '{"last":true}']);
      }),
    );
  });

  it('P-008 a line over the limit is skipped to its end and the next one is read', () => {
    const chunks = [`{"id":7,"x":"`, 'y'.repeat(500), 'z'.repeat(500), '"}\n{"ok":1}\n'].map((part) =>
      utf8.encode(part),
    );
    const { lines, heads } = split(chunks, 100);
    expect(lines).toEqual(['{"ok":1}']);
    expect(heads).toHaveLength(1);
    expect(split([utf8.encode(`${'x'.repeat(100)}\r\n${'y'.repeat(101)}\n`)], 100)).toMatchObject({
      lines: ['x'.repeat(100)],
      heads: ['y'.repeat(101)],
    });
  });

  it('P-008 the id of a frame that is too long is found at its top, not deeper', () => {
    const cases: [string, string | number | null][] = [
      ['{"jsonrpc":"2.0","id":7,"method":"x"', 7],
      ['{"id":"a\\"b","x":{', 'a"b'],
      ['{"params":{"id":1},"id":2,', 2],
      ['{"params":{"id":1', null],
      ['{"x":"id","id":-3.5}', -3.5],
      ['[{"id":1}]', null],
      ['{"id":{"id":1}', null],
      ['', null],
    ];
    for (const [head, id] of cases) expect(idInHead(utf8.encode(head)), head).toBe(id);
  });
});

describe('frames', () => {
  it('P-007 broken JSON, arrays and bare values are answered with id null, broken UTF-8 too', () => {
    const { frames, faults } = read([
      utf8.encode('this is not json\n42\n[{"jsonrpc":"2.0"}]\nnull\n{"jsonrpc":"2.0","method":"ok"}\n'),
      new Uint8Array([0x22, 0xff, 0xfe, 0x22, 0x0a]),
    ]);
    expect(frames).toHaveLength(1);
    expect(faults).toMatchObject([
      { id: null, error: { code: -32_700, data: { reason: 'parse_error' } } },
      { id: null, error: { code: -32_600 } },
      { id: null, error: { code: -32_600 } },
      { id: null, error: { code: -32_600 } },
      { id: null, error: { code: -32_700 } },
    ]);
  });

  it('P-008 a frame over the limit is refused with its id', () => {
    const { faults } = read(
      [utf8.encode(`{"jsonrpc":"2.0","id":"big","method":"x","params":"${'x'.repeat(2_000)}"}\n`)],
      1_024,
    );
    expect(faults).toEqual([
      {
        jsonrpc: '2.0',
        id: 'big',
        error: {
          code: -32_600,
          message: 'Invalid request: the frame is larger than allowed',
          data: { reason: 'frame_too_large', retryable: false, maxBytes: 1_024 },
        },
      },
    ]);
  });

  it('ACP-07 a frame with line separators inside text stays one line for every reader', () => {
    const message = { jsonrpc: '2.0', method: 'x', params: { text: 'a\u2028b\u2029c\u0085d\ne' } } as const;
    const line = encodeFrame(message);
    expect(line.slice(0, -1)).not.toMatch(/[\n\r\u2028\u2029\u0085]/);
    expect(JSON.parse(line)).toEqual(message);
  });
});
