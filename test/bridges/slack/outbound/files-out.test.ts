import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { safeFileName } from '../../../../bridges/slack/outbound/file-name.js';
import { isSlackHost } from '../../../../bridges/slack/outbound/send-file.js';
import { readAllowedFile } from '../../../../bridges/slack/outbound/upload-source.js';
import { tempFolder } from '../../../support/temp-folder.js';
import { openOut, type OutLab } from './lab.js';

const shared = (lab: OutLab) =>
  lab.slack.botMessages(lab.general, lab.thread.threadTs).filter(({ files }) => files.length > 0);
const upload = (lab: OutLab, text: string, waitMs = 5_000) =>
  lab.out.upload(lab.thread, {
    id: 'file',
    filename: 'notes.txt',
    bytes: Buffer.from(text),
    comment: '**see**',
    waitMs,
  });
const error = (word: string) => ({ kind: 'error', error: word }) as const;

describe('a file to Slack', () => {
  it('S-144 goes into the thread in three steps, its bytes without the token', async () => {
    const lab = await openOut();
    const state = await upload(lab, 'hello');
    const [file] = lab.slack.files();
    expect(state).toEqual({
      state: 'sent',
      fileId: file!.id,
      permalink: `${lab.slack.origin}/files/${lab.bot.botUserId}/${file!.id}/notes.txt`,
    });
    expect(file!.bytes.toString()).toBe('hello');
    expect(shared(lab)).toMatchObject([{ files: ['notes.txt'], text: '*see*', threadTs: lab.thread.threadTs }]);
    expect(lab.slack.otherRequests).toMatchObject([{ authorization: null, status: 200 }]);
    expect(lab.slack.leaks()).toEqual([]);
  });

  it('S-144 is sent also where Slack does not say its address', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.info', times: 1, effect: error('file_not_found') });
    expect(await upload(lab, 'hello')).toMatchObject({ state: 'sent', permalink: null });
  });

  it.each([
    ['its answer is dropped', { kind: 'drop', applied: true }],
    ['its answer is cut short', { kind: 'truncate' }],
    ['it never arrived', { kind: 'drop', applied: false }],
    ['Slack failed inside', { kind: 'status', status: 500 }],
  ] as const)('S-144 is there once when the third step fails: %s', async (_name, effect) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.completeUploadExternal', effect });
    const state = upload(lab, 'hello', 30_000);
    await lab.pass(8_000);
    expect(shared(lab)).toHaveLength(1);
    expect(await state).toMatchObject({ state: 'sent', fileId: lab.slack.files()[0]!.id });
    expect(lab.slack.files()).toHaveLength(1);
  });

  it('S-144 is there once when the process ends in the third step', async () => {
    const lab = await openOut();
    const held = new Promise<void>(() => undefined);
    lab.slack.fault({ method: 'files.completeUploadExternal', effect: { kind: 'hold', until: held, apply: 'before' } });
    await upload(lab, 'hello', 0);
    await lab.slack.until(() => lab.slack.calls('files.completeUploadExternal').length === 1);
    const second = await lab.reopen();
    await second.start();
    await second.idle();
    expect(shared(lab)).toHaveLength(1);
    // Whether it was shared, then its address.
    expect(lab.slack.calls('files.info')).toHaveLength(2);
    expect(lab.slack.calls('files.getUploadURLExternal')).toHaveLength(1);
  });

  it('S-144 keeps its place among the replies of its channel', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.getUploadURLExternal', effect: { kind: 'status', status: 503 } });
    await lab.reply('before');
    await upload(lab, 'hello', 0);
    await lab.reply('after');
    await lab.pass(5_000);
    expect(lab.slack.botMessages(lab.general, lab.thread.threadTs).map(({ text }) => text)).toEqual([
      'before',
      '*see*',
      'after',
    ]);
  });

  it('keeps the bytes of a large file over a restart, and leaves none behind', async () => {
    const lab = await openOut();
    await lab.out.suspend('main', lab.team.id, 'app_uninstalled');
    const bytes = Buffer.alloc(3 * 1024 * 1024 + 17, 'x');
    await lab.out.upload(lab.thread, { id: 'big', filename: 'big.bin', bytes });
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await second.idle();
    expect(lab.slack.files()[0]!.bytes.equals(bytes)).toBe(true);
    expect(await lab.store.range({ from: 'slack/test/files/', to: 'slack/test/files0' })).toEqual([]);
    expect(await lab.store.range({ from: 'slack/test/notes/', to: 'slack/test/notes0' })).toEqual([]);
  });

  it('S-105 a picture that is refused has no preview', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.getUploadURLExternal', effect: error('file_uploads_disabled') });
    await lab.out.upload(lab.thread, { id: 'p', filename: 'p.png', bytes: Uint8Array.of(0x89, 0x50, 0, 0xff) });
    await lab.pass(2_000);
    expect(lab.shown()).toEqual([]);
  });

  it('refuses a file that is empty or larger than 20 MiB', async () => {
    const lab = await openOut();
    const of = (length: number) =>
      lab.out.upload(lab.thread, { id: 'x', filename: 'x', bytes: new Uint8Array(length) });
    await expect(of(0)).rejects.toMatchObject({ code: 'SLACK_FILE_SIZE' });
    await expect(of(20 * 1024 * 1024 + 1)).rejects.toMatchObject({ code: 'SLACK_FILE_SIZE' });
  });

  it('S-142 sends bytes to Slack’s hosts alone', () => {
    const at = (url: string, api?: string) => isSlackHost(new URL(url), api);
    expect(at('https://files.slack.com/upload/v1/x')).toBe(true);
    expect(at('https://slack.com/x')).toBe(true);
    expect(at('https://a.slack-edge.com/x')).toBe(true);
    for (const url of [
      'http://files.slack.com/x',
      'https://files.slack.com.example.com/x',
      'https://notslack.com/x',
      'https://127.0.0.1/x',
      'https://169.254.169.254/x',
    ]) {
      expect([url, at(url)]).toEqual([url, false]);
    }
    expect(at('http://127.0.0.1:9/x', 'http://127.0.0.1:9/api/')).toBe(true);
    expect(at('http://127.0.0.1:8/x', 'http://127.0.0.1:9/api/')).toBe(false);
  });

  it.each([
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\x.txt', 'x.txt'],
    ['.bashrc', 'bashrc'],
    ['a\u202egpj.exe', 'agpj.exe'],
    ['<!here>|<@U1>.txt', '__here___@U1_.txt'],
    ['a\u0000b\nc.txt', 'abc.txt'],
    ['', 'file'],
    ['...', 'file'],
    ['con.txt', '_con.txt'],
    ['日本語 レポート.pdf', '日本語 レポート.pdf'],
  ])('S-146 %j is called %j', (name, safe) => {
    expect(safeFileName(name)).toBe(safe);
  });

  it('S-146 a long name keeps its ending', () => {
    expect(safeFileName(`${'x'.repeat(300)}.tar.gz`)).toBe(`${'x'.repeat(117)}.gz`);
  });
});

describe('a file named by its path', () => {
  it('S-145 is read from the allowed directory, and from nowhere else', async () => {
    const folder = await tempFolder();
    const allowed = join(folder, 'out');
    await mkdir(join(allowed, 'sub'), { recursive: true });
    await writeFile(join(allowed, 'sub', 'a.txt'), 'hello');
    await writeFile(join(folder, 'secret.txt'), 'secret');
    await symlink(join(folder, 'secret.txt'), join(allowed, 'link.txt'));
    await symlink(folder, join(allowed, 'up'));
    await symlink('/dev/zero', join(allowed, 'zero'));
    const read = (path: string) => readAllowedFile(allowed, path, 1_000);
    expect(Buffer.from(await read('sub/a.txt')).toString()).toBe('hello');
    expect(Buffer.from(await read(join(allowed, 'sub', 'a.txt'))).toString()).toBe('hello');
    for (const path of [
      '../secret.txt',
      join(folder, 'secret.txt'),
      'sub/../../secret.txt',
      'link.txt',
      'up/secret.txt',
      'zero',
      '/dev/zero',
      'sub',
      '.',
      'missing.txt',
      'a\0b',
    ]) {
      await expect(read(path), path).rejects.toMatchObject({ code: 'SLACK_FILE_PATH' });
    }
    await writeFile(join(allowed, 'big.txt'), 'x'.repeat(1_001));
    await expect(read('big.txt')).rejects.toMatchObject({ code: 'SLACK_FILE_SIZE' });
  });

  it('S-145 is no pipe and no directory that waits for a writer', async () => {
    const allowed = await tempFolder();
    execFileSync('mkfifo', [join(allowed, 'pipe')]);
    await expect(readAllowedFile(allowed, 'pipe', 1_000)).rejects.toMatchObject({ code: 'SLACK_FILE_PATH' });
  });
});
