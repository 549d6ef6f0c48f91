import { describe, expect, it } from 'vitest';
import { startBridge, say } from '../../../support/slack/bridge-lab.js';
import { openOut, type OutLab } from '../outbound/lab.js';
import { deadCodes, error, isThere, told, upload } from './writes.js';

const REFUSED = [
  'file_uploads_disabled',
  'file_type_not_allowed',
  'blocked_file_type',
  'file_upload_size_restricted',
  'storage_limit_reached',
  'snippet_too_large',
];
const STEPS = ['files.getUploadURLExternal', 'files.completeUploadExternal'] as const;
const posts = (lab: OutLab) => lab.slack.botMessages(lab.general, lab.thread.threadTs);

describe('a file that Slack does not take', () => {
  it.each([...REFUSED, 'missing_scope'].flatMap((word) => STEPS.map((method) => [word, method] as const)))(
    'S-105 %s of %s: the result has the code, what fits is posted as text, and the asker hears of it',
    async (word, method) => {
      const lab = await openOut();
      lab.slack.fault({ method, effect: error(word, { needed: 'files:write', provided: 'chat:write' }) });
      const bytes = Buffer.from('first line\nsecond ``` line');
      const state = lab.out.upload(lab.thread, {
        id: 'f',
        filename: 'notes.txt',
        bytes,
        comment: '**see**',
        waitMs: 5_000,
      });
      await lab.pass(3_000);
      expect(await state).toMatchObject({ state: 'failed', error: word });
      expect(lab.shown()).toEqual(['**see**\n\n**notes.txt**\n\n````\nfirst line\nsecond ``` line\n````']);
      expect(told(lab)).toEqual([expect.stringContaining(word)]);
      expect(lab.roomErrors).toMatchObject([{ slackError: word }]);
      expect(lab.out.parks()).toEqual([]);
      expect(await deadCodes(lab)).toEqual([word]);
    },
  );

  it.each(REFUSED)(
    'S-105 %s of the file that a reply ends in: what stands before it stays, and the asker hears of it',
    async (word) => {
      const lab = await openOut();
      lab.slack.fault({ method: 'files.completeUploadExternal', effect: error(word) });
      await lab.reply('word '.repeat(60_000));
      await lab.pass(6_000);
      expect(posts(lab).map(({ files }) => files)).toEqual([[]]);
      expect(await deadCodes(lab)).toEqual([word]);
      expect(told(lab)).toEqual([expect.stringMatching(/^Slack did not take the file/)]);
    },
  );

  it('S-105 in the whole bridge the tool’s result has the code', async () => {
    const results: unknown[] = [];
    const lab = await startBridge({
      onTurn: async (turn) => {
        const args = { filename: 'a.txt', content: 'some text' };
        results.push(await turn.tools.executeToolCall('slack_upload_file', args));
        await say(turn, 'so be it');
      },
    });
    lab.slack.fault({ method: 'files.getUploadURLExternal', effect: error('file_type_not_allowed') });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.answered(said, 2);
    expect(results).toMatchObject([{ ok: false, error: 'file_type_not_allowed', retryable: false }]);
  });
});

describe('the place that takes a file’s bytes', () => {
  it.each([
    ['429 with a header of 7', { kind: 'status', status: 429, headers: { 'retry-after': '7' } }, 7],
    ['429 without a header', { kind: 'status', status: 429 }, 30],
    ['503', { kind: 'status', status: 503 }, 1],
    ['a broken connection', { kind: 'drop', applied: false }, 1],
  ] as const)('S-105 %s: the file waits for it, and stands in the thread once', async (_name, effect, seconds) => {
    const lab = await openOut();
    lab.slack.fault({ method: 'upload', effect });
    await upload(lab);
    await lab.pass(seconds * 1_000 - 500, 500);
    expect(lab.slack.otherRequests).toHaveLength(1);
    await lab.pass(2_000, 500);
    expect(isThere(lab, 'files.completeUploadExternal')).toBe(true);
  });
});

describe('a file that a person sent and Slack does not give', () => {
  const shared = { name: 'a.txt', bytes: 'x', checkFileInfo: true };
  const plain = { name: 'a.txt', bytes: 'x' };

  it.each([
    ['file_not_found', shared, 'files.info', error('file_not_found'), 'not_found', /Slack does not have it any more/],
    ['file_deleted', shared, 'files.info', error('file_deleted'), 'deleted', /deleted in Slack/],
    ['not_visible', shared, 'files.info', error('not_visible'), 'not_visible', /may not see it/],
    ['missing_scope', shared, 'files.info', error('missing_scope'), 'missing_scope', /files:read/],
    ['403 of its bytes', plain, 'files-pri', { kind: 'status', status: 403 }, 'missing_scope', /files:read/],
    ['404 of its bytes', plain, 'files-pri', { kind: 'status', status: 404 }, 'not_found', /does not have it any more/],
    [
      'a sign-in page',
      plain,
      'files-pri',
      { kind: 'status', status: 200, headers: { 'content-type': 'text/html' }, body: '<!DOCTYPE html>Sign in' },
      'missing_scope',
      /files:read/,
    ],
    ['503 of its bytes', plain, 'files-pri', { kind: 'status', status: 503 }, 'unavailable', /did not hand it over/],
  ] as const)('S-105 %s: the turn runs without it, and knows why', async (_name, file, method, effect, status, why) => {
    const lab = await startBridge();
    lab.slack.fault({ method, effect });
    const said = lab.alice.uploads('dm', [file], { typed: 'look at this' });
    await lab.answered(said);
    const [turn] = lab.turns;
    expect(turn!.message.metadata).toMatchObject({ slack_files: [{ status, path: null }] });
    expect(turn!.message.content).toMatch(why);
    expect(turn!.message.content).toContain('look at this');
  });
});
