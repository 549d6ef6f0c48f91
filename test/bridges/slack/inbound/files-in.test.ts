import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.js';
import { silentLogger } from '../../../../src/base/log.js';
import { createSlackClient } from '../../../../bridges/slack/client.js';
import { slackMessageSchema } from '../../../../bridges/slack/messages.js';
import { mayCarryToken } from '../../../../bridges/slack/inbound/file-download.js';
import { createFilesIn, safeFileName, type FilesInDeps } from '../../../../bridges/slack/inbound/files-in.js';
import { startAcme } from '../../../support/slack/acme.js';
import type { UploadSpec } from '../../../support/slack/people.js';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setUp(limits: Partial<FilesInDeps['limits']> = {}, options: Parameters<typeof startAcme>[0] = {}) {
  const acme = await startAcme(options);
  const folder = await mkdtemp(join(tmpdir(), 'slack-files-'));
  cleanups.push(
    () => acme.slack.stop(),
    () => rm(folder, { recursive: true }),
  );
  const { slack, botToken, alice, general } = acme;
  const files = createFilesIn({
    client: createSlackClient({ token: botToken, slackApiUrl: slack.apiUrl }),
    team: acme.team.id,
    token: botToken,
    slackApiUrl: slack.apiUrl,
    dispatcher: undefined,
    folder: join(folder, 'files'),
    limits: { maxCount: 10, maxBytes: 1_000_000, maxTotalBytes: 2_000_000, inlineBytes: 1_000, ...limits },
    clock: systemClock,
    log: silentLogger,
  });
  const never = new AbortController().signal;
  const take = (specs: UploadSpec[]) => {
    const said = alice.uploads('#general', specs);
    return files.take(slackMessageSchema.parse(slack.raw(general, said.ts)), never);
  };
  return { ...acme, files, take, folder: join(folder, 'files'), never };
}

describe('files that people send', () => {
  it('S-140 a text file is stored, listed and quoted, a larger or binary one stored and listed', async () => {
    const { take, slack } = await setUp();
    const { listed, inline } = await take([
      { name: 'notes.md', bytes: '# hi\n```x```\n' },
      { name: 'big.txt', bytes: 'x'.repeat(2_000) },
      { name: 'pic.png', bytes: Buffer.from([0x89, 0, 1, 2]), mimetype: 'image/png' },
    ]);
    expect(listed.map(({ name, size, status }) => [name, size, status])).toEqual([
      ['notes.md', 13, 'ok'],
      ['big.txt', 2_000, 'ok'],
      ['pic.png', 4, 'ok'],
    ]);
    expect(await readFile(listed[0]!.path!, 'utf8')).toBe('# hi\n```x```\n');
    expect(inline).toBe(
      '[file: notes.md, text/plain, 13 bytes]\n````\n# hi\n```x```\n````\n\n[file: big.txt, text/plain, 2000 bytes]\n\n[file: pic.png, image/png, 4 bytes]',
    );
    slack.check();
  });

  it('S-140 limits hold on the bytes read, whatever size is declared, and nothing is left of what was too large', async () => {
    const { take, folder } = await setUp({ maxBytes: 100, maxTotalBytes: 150, maxCount: 4 });
    const { listed } = await take([
      { name: 'liar.txt', bytes: 'x'.repeat(500), declaredSize: 0 },
      { name: 'a.txt', bytes: 'y'.repeat(100), declaredSize: 999_999 },
      { name: 'b.txt', bytes: 'z'.repeat(60) },
      { name: 'c.txt', bytes: 'w'.repeat(40) },
      { name: 'd.txt', bytes: 'v' },
    ]);
    expect(listed.map(({ status }) => status)).toEqual(['too_large', 'ok', 'too_large', 'ok', 'too_many']);
    expect(listed[1]).toMatchObject({ size: 100 });
    expect(await readdir(folder)).toHaveLength(2);
  });

  it('S-141 Slack’s sign-in page is not taken for the file, and the scope is named', async () => {
    const { take } = await setUp({}, { install: { scopes: ['chat:write'] } });
    const { listed, inline } = await take([{ name: 'a.txt', bytes: 'x' }]);
    expect(listed[0]).toMatchObject({ status: 'missing_scope', path: null });
    expect(inline).toContain('files:read');
  });

  it('takes a file that really is HTML', async () => {
    const { take } = await setUp();
    const { listed } = await take([{ name: 'page.html', bytes: '<!DOCTYPE html><p>hi', mimetype: 'text/html' }]);
    expect(listed[0]).toMatchObject({ status: 'ok', size: 20 });
  });

  it('S-142 the token goes to Slack’s hosts and the configured API host only', () => {
    const may = (url: string, api?: string) => mayCarryToken(new URL(url), api);
    expect(may('https://files.slack.com/x')).toBe(true);
    expect(may('https://acme.enterprise.slack.com/x')).toBe(true);
    expect(may('https://a.slack-edge.com/x')).toBe(true);
    expect(may('http://127.0.0.1:99/x', 'http://127.0.0.1:99/api/')).toBe(true);
    for (const url of [
      'http://files.slack.com/x',
      'https://files.slack.com.evil.test/x',
      'https://evilslack.com/x',
      'https://slack-edge.com.evil.test/x',
      'https://user@files.slack.com/x',
      'https://files.slack.com:444/x',
      'http://127.0.0.1:98/x',
      'ftp://files.slack.com/x',
    ]) {
      expect(may(url, 'http://127.0.0.1:99/api/'), url).toBe(false);
    }
  });

  it('S-142 a redirect to another host is not followed, so the token never reaches it', async () => {
    const seen: (string | undefined)[] = [];
    const listen = async (answer: Parameters<typeof createServer>[1]) => {
      const server = createServer(answer);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      cleanups.push(() => new Promise((resolve) => server.close(resolve)));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    };
    const outside = await listen((request, response) => {
      seen.push(request.headers.authorization);
      response.end('stolen');
    });
    const { files, slack, never } = await setUp();
    const hop = await listen((_request, response) => {
      response.writeHead(302, { location: `${outside}/x` }).end();
    });
    const message = {
      files: [
        { id: 'F1', name: 'a.txt', mode: 'hosted', url_private: `${outside}/x` },
        { id: 'F2', name: 'b.txt', url_private: `${hop}/x` },
      ],
    };
    const { listed } = await files.take(message, never);
    expect(listed.map(({ status }) => status)).toEqual(['refused_host', 'refused_host']);
    expect(seen).toEqual([]);
    // Within the list a redirect is followed, but not to the outside.
    const api = slack.apiUrl;
    const inside = createFilesIn({
      client: createSlackClient({ token: 'xoxb-test-team-one', slackApiUrl: api }),
      team: 'T',
      token: 'xoxb-test-team-one',
      slackApiUrl: hop,
      dispatcher: undefined,
      folder: tmpdir(),
      limits: { maxCount: 1, maxBytes: 10, maxTotalBytes: 10, inlineBytes: 1 },
      clock: systemClock,
      log: silentLogger,
    });
    expect((await inside.take({ files: [{ id: 'F3', url_private: `${hop}/x` }] }, never)).listed[0]).toMatchObject({
      status: 'refused_host',
    });
    expect(seen).toEqual([]);
  });

  it('S-143 shared-channel files are looked up, tombstones and hidden ones named, external ones only linked', async () => {
    const { take, slack } = await setUp();
    const { listed, inline } = await take([
      { name: 'shared.txt', bytes: 'from the partner', checkFileInfo: true },
      { name: 'gone.txt', bytes: 'x', mode: 'tombstone' },
      { name: 'old.txt', bytes: 'x', mode: 'hidden_by_limit' },
      { name: 'drive.doc', bytes: '', mode: 'external', externalUrl: 'https://drive.example.test/d' },
    ]);
    expect(listed.map(({ status }) => status)).toEqual(['ok', 'deleted', 'hidden_by_limit', 'external']);
    expect(inline).toContain('from the partner');
    expect(listed[3]!.permalink).toContain('drive.doc');
    expect(slack.calls('files.info')).toHaveLength(1);
  });

  it('a download that fails names its cause, and the rest is taken', async () => {
    const { files, slack, never } = await setUp();
    const url = (path: string) => `${slack.origin}${path}`;
    const { listed } = await files.take(
      {
        files: [
          { id: 'F1', url_private: url('/files-pri/T-FNOPE/x') },
          { id: 'F2', url_private: 'not a url' },
          { id: 'F3' },
        ],
      },
      never,
    );
    expect(listed.map(({ status }) => status)).toEqual(['not_found', 'refused_host', 'not_found']);
  });

  it('S-146 file names are opaque on disk and harmless in messages', async () => {
    expect(safeFileName('../../etc/passwd')).toBe('passwd');
    expect(safeFileName('a`b\u202e<!here>|\n.txt')).toBe('ab!here.txt');
    expect(safeFileName('...')).toBe('file');
    expect(safeFileName('x'.repeat(500))).toHaveLength(120);
    const { take, folder } = await setUp();
    const { listed, inline } = await take([{ name: '../../<!channel> evil`.txt', bytes: 'x' }]);
    expect(listed[0]!.name).toBe('!channel evil.txt');
    expect(inline).not.toContain('<!');
    expect((await readdir(folder))[0]).toMatch(/^[0-9a-f]{40}$/);
  });

  it('reads a taken file by pieces, and describes one that is no text', async () => {
    const { take, files } = await setUp({ inlineBytes: 10 });
    const text = 'äöü '.repeat(60_000);
    const { listed } = await take([
      { name: 'long.txt', bytes: text },
      { name: 'b.bin', bytes: Buffer.from([0, 1, 2]), mimetype: 'application/octet-stream' },
    ]);
    let read = '';
    for (let offset: number | null = 0; offset !== null;) {
      const excerpt: { text: string; nextOffset: number | null } = (await files.read(listed[0]!.id, offset))!;
      read += excerpt.text;
      offset = excerpt.nextOffset;
    }
    expect(read).toBe(text);
    expect(await files.read(listed[1]!.id, 0)).toEqual({ text: 'A binary file of 3 bytes.', nextOffset: null });
    expect(await files.read('FNONE', 0)).toBeNull();
  });

  it('sweeps what is older than seven days', async () => {
    const { files, take, folder } = await setUp();
    await take([{ name: 'new.txt', bytes: 'x' }]);
    const old = join(folder, 'old');
    await writeFile(old, 'x');
    const eightDaysAgo = Date.now() / 1_000 - 8 * 86_400;
    await utimes(old, eightDaysAgo, eightDaysAgo);
    await files.sweep();
    expect(await readdir(folder)).toHaveLength(1);
  });
});
