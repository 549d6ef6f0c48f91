import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../../../../src/base/log.js';
import { GatewayError } from '../../../../src/base/errors.js';
import { createMemoryStore } from '../../../../src/store/memory.js';
import type { StateStore } from '../../../../src/store/port.js';
import { openLevelStore } from '../../../../src/store/leveldb.js';
import { tempFolder } from '../../../support/temp-folder.js';
import { openOut, recordedMetrics, type OutLab } from './lab.js';

const inGeneral = ({ slack, general }: OutLab) =>
  slack.calls('chat.postMessage').filter(({ args }) => args['channel'] === general.id);
/** What the asker got by direct message. */
const told = ({ slack, alice }: OutLab) =>
  slack.calls('chat.postMessage').flatMap(({ args }) => (args['channel'] === alice.id ? [args['text']] : []));
const error = (word: string) => ({ kind: 'error', error: word }) as const;

describe('a write that is given up', () => {
  it('S-106 leaves a record, a room error, a result, a log line, a figure, and a line to the person', async () => {
    const lines: string[] = [];
    const figures = recordedMetrics();
    const lab = await openOut({
      log: createLogger({ destination: { write: (line) => void lines.push(line) } }),
      metrics: figures.metrics,
    });
    lab.slack.fault({ method: 'chat.postMessage', effect: error('restricted_action') });
    const result = lab.reply('secret words', { id: 'doomed', waitMs: 5_000 });
    await lab.pass(2_000);
    expect(await result).toEqual({
      state: 'failed',
      error: 'restricted_action',
      detail: 'Slack refused the call. restricted_action',
    });
    const [letter] = await lab.out.deadLetters.list();
    expect(letter).toMatchObject({
      id: 'doomed',
      queue: 'outbox',
      code: 'restricted_action',
      conversation: `main:${lab.team.id}:${lab.general.id}:${lab.thread.threadTs}`,
    });
    const [roomError] = lab.roomErrors;
    expect(roomError).toMatchObject({ slackError: 'restricted_action', thread: lab.thread });
    expect(roomError!.ref).toMatch(/^[A-Z0-9]{8}$/);
    expect(told(lab)).toEqual([
      `I am not allowed to post in that channel. (restricted_action, reference ${roomError!.ref})`,
    ]);
    const line = lines.find((one) => one.includes('was given up'));
    expect(line).toContain(roomError!.ref);
    expect(lines.join('')).not.toContain('secret words');
    expect(figures.of('slack_dead_letters_total')).toMatchObject([
      { labels: { side: 'outbox', cause: 'restricted_action' } },
    ]);
  });

  it('S-106 tells one person once per thread and cause in an hour, over a restart', async () => {
    const lab = await openOut();
    lab.slack.fault({
      method: 'chat.postMessage',
      channel: lab.general.id,
      times: 4,
      effect: error('restricted_action'),
    });
    for (const name of ['a', 'b', 'c']) await lab.reply(name);
    await lab.pass(5_000);
    expect(told(lab)).toHaveLength(1);
    expect(lab.roomErrors).toHaveLength(3);
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.reply(lab.thread, { id: 'd', markdown: 'd', kind: 'reply' });
    await lab.pass(2_000);
    expect(lab.roomErrors).toHaveLength(4);
    expect(told(lab)).toHaveLength(1);
  });

  it('S-106 repeats the room error until the room has it', async () => {
    let tries = 0;
    const lab = await openOut({
      hooks: {
        roomError: () => {
          tries += 1;
          return tries < 3 ? Promise.reject(new Error('Band is away')) : Promise.resolve();
        },
      },
    });
    lab.slack.fault({ method: 'chat.postMessage', effect: error('restricted_action') });
    await lab.reply('hello');
    await lab.pass(10_000);
    expect(tries).toBe(3);
    expect(lab.out.queues()).toEqual([{ name: 'outbox', depth: 0, dead: 1 }]);
  });

  it('S-044 can be listed and sent again, and goes on where it ended', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect: error('restricted_action') });
    const long = Array.from({ length: 2 }, (_, index) => `${index}`.repeat(9_000)).join('\n\n');
    await lab.reply(long, { id: 'again' });
    await lab.pass(3_000);
    expect(await lab.out.deadLetters.list()).toHaveLength(1);
    expect(await lab.out.deadLetters.retry('again')).toBe(true);
    // Who asks for it meanwhile hears of this try, not of the one that failed.
    const asked = lab.reply(long, { id: 'again', waitMs: 5_000 });
    await lab.pass(3_000);
    expect(await asked).toMatchObject({ state: 'sent' });
    expect(lab.shown().map((text) => text.slice(0, 2))).toEqual(['00', '11']);
    expect(await lab.out.deadLetters.list()).toEqual([]);
    expect(await lab.out.deadLetters.retry('again')).toBe(false);
  });

  it('S-044 can be dropped, with the bytes of its file', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'files.getUploadURLExternal', effect: error('restricted_action') });
    await lab.out.upload(lab.thread, { id: 'file', filename: 'a.bin', bytes: new Uint8Array([0, 1, 2]) });
    await lab.pass(2_000);
    const stored = () => lab.store.range({ from: 'slack/test/files/', to: 'slack/test/files0' });
    expect(await stored()).toHaveLength(1);
    expect(await lab.out.deadLetters.drop('file')).toBe(true);
    expect(await stored()).toEqual([]);
    expect(await lab.out.deadLetters.drop('file')).toBe(false);
  });
});

describe('parked lanes', () => {
  it('S-107 stay parked over a restart, on disk, and go on when their event comes', async () => {
    const folder = await tempFolder();
    const store = await openLevelStore({ folder: join(folder, 'store') });
    onTestFinished(() => store.close());
    const lab = await openOut({ store });
    lab.slack.archive(lab.general, true);
    await lab.reply('kept');
    await lab.out.idle();
    expect(inGeneral(lab)).toHaveLength(1);
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.idle();
    await lab.pass(3_600_000, 600_000);
    expect(inGeneral(lab)).toHaveLength(1);
    expect(second.parks()).toMatchObject([{ channel: lab.general.id, cause: 'is_archived' }]);
    lab.slack.archive(lab.general, false);
    await second.resume({ kind: 'unarchived', slug: 'main', team: lab.team.id, channel: lab.general.id });
    await second.idle();
    expect(lab.shown()).toEqual(['kept']);
    expect(second.parks()).toEqual([]);
  });

  it('S-107 go on only for their own event', async () => {
    const lab = await openOut();
    lab.slack.archive(lab.general, true);
    await lab.reply('kept');
    await lab.pass(1_000);
    await lab.out.resume({ kind: 'joined', slug: 'main', team: lab.team.id, channel: lab.general.id });
    await lab.out.resume({ kind: 'unarchived', slug: 'main', team: lab.team.id, channel: lab.rooms.id });
    await lab.out.resume({ kind: 'unarchived', slug: 'other', team: lab.team.id, channel: lab.general.id });
    await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(inGeneral(lab)).toHaveLength(1);
    lab.slack.archive(lab.general, false);
  });

  it('S-185 everything of a removed app waits, and goes out when it is back', async () => {
    const lab = await openOut();
    await lab.out.suspend('main', lab.team.id, 'app_uninstalled');
    await lab.reply('kept');
    await lab.pass(2_000);
    expect(lab.slack.calls('chat.postMessage')).toEqual([]);
    await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['kept']);
  });

  it('waits for an installation that is not known yet', async () => {
    const lab = await openOut();
    const known = lab.installation.current;
    lab.installation.current = null;
    await lab.reply('early');
    await lab.pass(2_000);
    lab.installation.current = known;
    await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['early']);
  });
});

describe('stopping', () => {
  it('S-216 lets go out what can, and keeps the rest for the next start', async () => {
    const lab = await openOut();
    for (let index = 0; index < 6; index += 1) await lab.reply(`message ${index}`);
    const stopped = lab.out.stop(2_000);
    await lab.pass(3_000);
    await stopped;
    const before = lab.shown().length;
    expect(before).toBeGreaterThanOrEqual(4);
    expect(before).toBeLessThan(6);
    const second = await lab.reopen();
    await second.start();
    await lab.pass(5_000);
    expect(lab.shown()).toEqual(Array.from({ length: 6 }, (_, index) => `message ${index}`));
  });

  it('does not wait for a lane that waits for an event', async () => {
    const lab = await openOut();
    lab.slack.archive(lab.general, true);
    await lab.reply('kept');
    await lab.pass(1_000);
    await lab.out.stop(60_000);
    lab.slack.archive(lab.general, false);
  });

  it('a record is not charged for restarts, however many there are', async () => {
    const lab = await openOut();
    lab.slack.archive(lab.general, true);
    await lab.reply('kept');
    await lab.pass(1_000);
    await lab.out.stop(0);
    let last = lab.out;
    for (let round = 0; round < 30; round += 1) {
      last = await lab.reopen();
      await last.start();
      await lab.pass(250);
      await last.stop(0);
    }
    expect(last.queues()).toEqual([{ name: 'outbox', depth: 1, dead: 0 }]);
    lab.slack.archive(lab.general, false);
  });
});

describe('trouble of our own', () => {
  it('S-198 a store that refuses writes for a while loses nothing and gives nothing up', async () => {
    const store = createMemoryStore();
    let refusing = false;
    const flaky: StateStore = {
      ...store,
      batch: (changes) => (refusing ? Promise.reject(new GatewayError('STORE_TRIPPED')) : store.batch(changes)),
    };
    const lab = await openOut({ store: flaky });
    lab.slack.fault({ method: 'chat.postMessage', times: 2, effect: { kind: 'status', status: 503 } });
    await lab.reply('kept');
    refusing = true;
    await expect(lab.reply('refused')).rejects.toMatchObject({ code: 'STORE_TRIPPED' });
    await lab.pass(3_600_000, 30_000);
    refusing = false;
    await lab.pass(120_000, 1_000);
    expect(lab.shown()).toEqual(['kept']);
    expect(lab.out.queues()).toEqual([{ name: 'outbox', depth: 0, dead: 0 }]);
  });

  it('a record that only ever meets a defect is given up, of which room and person hear, and the next one goes out', async () => {
    const lab = await openOut();
    const working = lab.installation.current!;
    lab.installation.current = {
      ...working,
      client: {
        ...working.client,
        call: (method, args, options) => {
          if (args['text'] === 'poison') throw new TypeError('a defect');
          return working.client.call(method, args, options);
        },
      },
    };
    await lab.reply('poison');
    await lab.reply('fine');
    await lab.pass(1_500_000, 5_000);
    expect(lab.shown()).toEqual(['fine']);
    expect(await lab.out.deadLetters.list()).toMatchObject([{ code: 'crash_loop' }]);
    expect(lab.roomErrors).toMatchObject([{ slackError: 'crash_loop' }]);
    expect(lab.slack.ephemerals(lab.general, lab.alice.id)).toHaveLength(1);
  });

  it('S-106 a file whose bytes are gone is given up and told', async () => {
    const lab = await openOut();
    await lab.out.suspend('main', lab.team.id, 'app_uninstalled');
    await lab.out.upload(lab.thread, { id: 'f', filename: 'a.txt', bytes: Buffer.from('x') });
    await lab.store.batch([{ kind: 'delete', key: 'slack/test/files/f/0000' }]);
    await lab.out.stop(0);
    const second = await lab.reopen();
    await second.start();
    await second.resume({ kind: 'token', slug: 'main', team: lab.team.id });
    await lab.pass(2_000);
    expect(await second.deadLetters.list()).toMatchObject([{ id: 'f', code: 'file_lost' }]);
    expect(lab.roomErrors.at(-1)).toMatchObject({ slackError: 'file_lost' });
  });
});
