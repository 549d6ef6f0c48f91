import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { claimStdout, drained, guardStdout } from '../../src/cli/acp-stdout.js';

function fakeStream(): { stream: NodeJS.WriteStream; text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: stream as unknown as NodeJS.WriteStream, text: () => Buffer.concat(chunks).toString() };
}

describe('standard output of the acp command', () => {
  it('P-006 belongs to the protocol; what others write there goes to standard error', async () => {
    const [out, err] = [fakeStream(), fakeStream()];
    const protocol = claimStdout({ stdout: out.stream, stderr: err.stream });
    out.stream.write('a stray line\n');
    protocol.write('{"jsonrpc":"2.0"}\n');
    await drained(protocol, 1_000);
    expect(out.text()).toBe('{"jsonrpc":"2.0"}\n');
    expect(err.text()).toBe('a stray line\n');
  });

  it('P-006 is guarded before it is claimed, and the way to it is kept', async () => {
    const [out, err] = [fakeStream(), fakeStream()];
    guardStdout({ stdout: out.stream, stderr: err.stream });
    guardStdout({ stdout: out.stream, stderr: err.stream });
    out.stream.write('printed while loading\n');
    const protocol = claimStdout({ stdout: out.stream, stderr: err.stream });
    out.stream.write('printed later\n');
    protocol.write('{"jsonrpc":"2.0"}\n');
    await drained(protocol, 1_000);
    expect(out.text()).toBe('{"jsonrpc":"2.0"}\n');
    expect(err.text()).toBe('printed while loading\nprinted later\n');
  });

  it('P-010 tells when nobody reads any more', async () => {
    const [out, err] = [fakeStream(), fakeStream()];
    const protocol = claimStdout({ stdout: out.stream, stderr: err.stream });
    const told = new Promise((resolve) => protocol.on('error', resolve));
    out.stream.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    expect(await told).toMatchObject({ code: 'EPIPE' });
    await drained(protocol, 1_000);
    err.stream.emit('error', new Error('nobody reads the log'));
  });
});
