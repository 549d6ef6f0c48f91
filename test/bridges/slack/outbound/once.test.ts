import { describe, expect, it } from 'vitest';
import { deferred } from '../../../../src/base/async.js';
import { openOut, recordedMetrics, type OutLab } from './lab.js';

const posts = (lab: OutLab) => lab.slack.calls('chat.postMessage');
const lookUps = (lab: OutLab) => lab.slack.calls('conversations.replies');
/** Slack takes it, and nobody ever hears of that. */
const unheard = { kind: 'late', until: Promise.resolve(), connection: 'open' } as const;
const applied = { kind: 'drop', applied: true } as const;
/** Slack takes the next post when the test says so, though its sender hears of nothing. */
const landsLate = (lab: OutLab, connection: 'open' | 'broken') => {
  const lands = deferred();
  lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'late', until: lands.promise, connection } });
  return lands;
};
const refused = (error: string) => ({ kind: 'error', error }) as const;

describe('a request that Slack acts on after its sender is gone', () => {
  it('S-101 is waited for when the process ended in it', async () => {
    const lab = await openOut();
    const lands = landsLate(lab, 'open');
    await lab.reply('once');
    await lab.slack.until(() => posts(lab).length === 1);
    const second = await lab.reopen();
    await second.start();
    await lab.pass(3_000);
    expect(lookUps(lab)).toHaveLength(1);
    lands.resolve();
    await lab.pass(4_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });

  it('S-100 is waited for when the connection broke', async () => {
    const lab = await openOut();
    const lands = landsLate(lab, 'broken');
    await lab.reply('once');
    await lab.pass(3_000);
    expect(lookUps(lab)).toHaveLength(1);
    lands.resolve();
    await lab.pass(4_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });

  it('S-100 is waited for half a minute when Slack was slow', async () => {
    const lab = await openOut({ timeoutMs: 50 });
    const lands = landsLate(lab, 'open');
    await lab.reply('once');
    await lab.slack.until(() => posts(lab).length === 1);
    await lab.pass(25_000);
    expect(posts(lab)).toHaveLength(1);
    lands.resolve();
    await lab.pass(10_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });

  it('S-090 holds up the replies behind it in its thread, which keep their order', async () => {
    const lab = await openOut();
    const lands = landsLate(lab, 'broken');
    await lab.reply('first');
    await lab.reply('second');
    await lab.pass(3_000);
    expect(lab.shown()).toEqual([]);
    lands.resolve();
    await lab.pass(5_000);
    expect(lab.shown()).toEqual(['first', 'second']);
  });
});

describe('a restart', () => {
  it('S-101 looks for nothing that was not being sent', async () => {
    const lab = await openOut();
    const own = lab.installation.current;
    lab.installation.current = null;
    for (const name of ['a', 'b', 'c']) {
      const { ts } = lab.alice.says('#general', `@gateway ${name}`);
      await lab.out.reply({ ...lab.thread, threadTs: ts }, { id: name, markdown: name, kind: 'reply' });
    }
    const second = await lab.reopen();
    lab.installation.current = own;
    await second.start();
    await lab.pass(5_000);
    expect(posts(lab)).toHaveLength(3);
    expect(lookUps(lab)).toEqual([]);
  });

  it('S-101 finds a reply far down a thread', async () => {
    const lab = await openOut();
    for (let index = 0; index < 430; index += 1)
      lab.bob.replies(
        { channel: lab.general.id, ts: lab.thread.threadTs, threadTs: lab.thread.threadTs },
        `said ${index}`,
      );
    lab.slack.fault({ method: 'chat.postMessage', effect: unheard });
    await lab.reply('once');
    await lab.slack.until(() => posts(lab).length === 1);
    const second = await lab.reopen();
    await second.start();
    await lab.pass(8_000);
    expect(lookUps(lab)).toHaveLength(3);
    expect(lab.shown()).toEqual(['once']);
  });

  it('S-101 in every try of one reply leaves one reply', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: unheard });
    lab.slack.fault({
      method: 'conversations.replies',
      times: 4,
      effect: unheard,
    });
    await lab.reply('once');
    await lab.slack.until(() => posts(lab).length === 1);
    for (let restarts = 1; restarts <= 4; restarts += 1) {
      await (await lab.reopen()).start();
      // Who was there at three ends of the process waits a little at its next start.
      await lab.clock.advance(3_000);
      await lab.slack.until(() => lookUps(lab).length === restarts);
    }
    await (await lab.reopen()).start();
    await lab.pass(8_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });
});

describe('a look-up that fails', () => {
  it('S-103 for a moment is made again, and no second reply', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    lab.slack.fault({ method: 'conversations.replies', times: 6, effect: { kind: 'status', status: 503 } });
    await lab.reply('once');
    await lab.pass(150_000, 1_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'found' } }]);
  });

  it('S-103 after failed posts is made again as well', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', times: 3, effect: refused('internal_error') });
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    lab.slack.fault({ method: 'conversations.replies', after: 3, times: 1, effect: { kind: 'status', status: 500 } });
    await lab.reply('once');
    await lab.pass(90_000, 1_000);
    expect(lab.shown()).toEqual(['once']);
  });

  it('S-103 for more than five minutes, restarts included, is not waited for any longer', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    lab.slack.fault({ method: 'conversations.replies', times: 1_000, effect: { kind: 'status', status: 503 } });
    await lab.reply('at least once');
    await lab.pass(200_000, 1_000);
    expect(lab.shown()).toEqual([]);
    await lab.out.stop(0);
    await (await lab.reopen()).start();
    await lab.pass(200_000, 1_000);
    expect(lab.shown()).toEqual(['at least once']);
  });

  it('S-103 for a quarter of an hour hides nothing: what the first of many tries left is found', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    const outages = [
      lab.slack.fault({ method: 'chat.postMessage', times: 1_000, effect: { kind: 'drop', applied: false } }),
      lab.slack.fault({ method: 'conversations.replies', times: 1_000, effect: { kind: 'status', status: 503 } }),
    ];
    await lab.reply('once');
    await lab.pass(900_000, 1_000);
    // After five minutes it was sent again without knowing.
    const before = posts(lab).length;
    expect(before).toBeGreaterThan(5);
    for (const outage of outages) outage.disarm();
    await lab.pass(120_000, 1_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(before);
  });

  it('S-103 for its pace waits until Slack takes it', async () => {
    const lab = await openOut();
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    const effect = { kind: 'status', status: 429, headers: { 'retry-after': '60' } } as const;
    lab.slack.fault({ method: 'conversations.replies', times: 4, effect });
    await lab.reply('once');
    await lab.pass(260_000, 1_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });

  it('S-183 for its token is made again with the new one', async () => {
    const lab = await openOut({ hooks: { refresh: () => Promise.resolve(true) } });
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    lab.slack.fault({ method: 'conversations.replies', effect: refused('token_expired') });
    await lab.reply('once');
    await lab.pass(8_000);
    expect(lab.shown()).toEqual(['once']);
    expect(posts(lab)).toHaveLength(1);
  });

  it('S-107 for want of membership is made again once the bot is back', async () => {
    const lab = await openOut({ settings: { autoJoin: false } });
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    lab.slack.fault({ method: 'conversations.replies', effect: refused('not_in_channel') });
    lab.slack.fault({ method: 'chat.postMessage', after: 0, effect: refused('not_in_channel') });
    await lab.reply('once');
    await lab.pass(8_000);
    expect(lab.out.parks()).toHaveLength(1);
    const { slug, team, channel } = lab.thread;
    await lab.out.resume({ kind: 'joined', slug, team, channel });
    await lab.pass(8_000);
    expect(lab.shown()).toEqual(['once']);
  });
});

describe('a reply without metadata', () => {
  const withoutMetadata = (lab: OutLab) =>
    lab.slack.fault({ method: 'chat.postMessage', effect: refused('invalid_metadata_format') });

  it('S-105 is found by its words as Slack writes them down', async () => {
    const lab = await openOut();
    withoutMetadata(lab);
    lab.slack.fault({ method: 'chat.postMessage', effect: applied });
    await lab.reply('Done 🎉: see https://example.com/a?b=1&c=2 <@U07MEMBER01> *now*');
    await lab.slack.until(() => posts(lab).length === 2);
    const stored = lab.general.messages.at(-1)!;
    stored.text = stored.text
      .replace('🎉', ':tada:')
      .replace(/(?<!<)(https:\S+)/, '<$1>')
      .replace('\n', ' ');
    await lab.pass(8_000);
    expect(lab.shown()).toHaveLength(1);
    expect(posts(lab)).toHaveLength(2);
  });

  it('S-105 is not taken for the same words said before', async () => {
    const lab = await openOut();
    withoutMetadata(lab);
    await lab.reply('yes');
    await lab.pass(20_000);
    withoutMetadata(lab);
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    await lab.reply('yes');
    await lab.pass(10_000);
    expect(lab.shown()).toEqual(['yes', 'yes']);
  });
});
