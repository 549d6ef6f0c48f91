import { describe, expect, it } from 'vitest';
import { openOut, recordedMetrics } from './lab.js';

describe('a reply of which nobody knows whether Slack took it', () => {
  it.each([
    ['S-100 whose connection drops before the answer', { kind: 'drop', applied: true }],
    ['S-100 whose answer is cut short', { kind: 'truncate' }],
    ['S-100 whose answer is not JSON', { kind: 'garbage' }],
  ] as const)('%s is there exactly once', async (_name, effect) => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect });
    const sent = lab.reply('once', { waitMs: 30_000 });
    await lab.pass(5_000);
    expect(lab.shown()).toEqual(['once']);
    expect(await sent).toMatchObject({
      state: 'sent',
      ts: [lab.slack.botMessages(lab.general, lab.thread.threadTs)[0]!.ts],
    });
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'found' } }]);
  });

  it('S-101 is there exactly once when the process ends at that instant', async () => {
    const lab = await openOut();
    const held = new Promise<void>(() => undefined);
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'hold', until: held, apply: 'before' } });
    await lab.reply('once');
    await lab.slack.until(() => lab.slack.calls('chat.postMessage').length === 1);
    // The first process never hears of it: a second one starts on what is on disk.
    const second = await lab.reopen();
    await second.start();
    await second.idle();
    expect(lab.slack.calls('conversations.replies')).toHaveLength(1);
    expect(lab.shown()).toEqual(['once']);
  });

  it.each([
    ['the connection dropped', { kind: 'drop', applied: false }],
    ['Slack answered 503', { kind: 'status', status: 503 }],
    ['Slack said internal_error', { kind: 'error', error: 'internal_error' }],
  ] as const)('S-102 is there exactly once when it never arrived: %s', async (_name, effect) => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect });
    await lab.reply('once');
    await lab.pass(8_000);
    expect(lab.shown()).toEqual(['once']);
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'resent' } }]);
  });

  it('S-103 is sent again and counted when the look-up itself fails', async () => {
    const figures = recordedMetrics();
    const lab = await openOut({ metrics: figures.metrics });
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    lab.slack.fault({ method: 'conversations.replies', effect: { kind: 'error', error: 'missing_scope' } });
    await lab.reply('at least once');
    await lab.pass(5_000);
    expect(lab.shown()).toEqual(['at least once']);
    expect(figures.of('slack_outbox_ambiguous_total')).toMatchObject([{ labels: { resolution: 'resent' } }]);
  });

  it('S-100 of several parts goes on with the part that is missing', async () => {
    const lab = await openOut();
    const long = Array.from({ length: 3 }, (_, index) => `${index}`.repeat(9_000)).join('\n\n');
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect: { kind: 'drop', applied: true } });
    await lab.reply(long);
    await lab.pass(8_000);
    expect(lab.shown().map((text) => text.slice(0, 3))).toEqual(['000', '111', '222']);
  });

  it('S-101 of several parts is whole after the process ended between them', async () => {
    const lab = await openOut();
    const held = new Promise<void>(() => undefined);
    lab.slack.fault({ method: 'chat.postMessage', after: 1, effect: { kind: 'hold', until: held, apply: 'before' } });
    await lab.reply(Array.from({ length: 3 }, (_, index) => `${index}`.repeat(9_000)).join('\n\n'));
    await lab.slack.until(() => lab.slack.calls('chat.postMessage').length === 2);
    const second = await lab.reopen();
    await second.start();
    await second.idle();
    expect(lab.shown().map((text) => text.slice(0, 3))).toEqual(['000', '111', '222']);
  });

  it('S-104 carries metadata of key and kind and nothing else, on every post', async () => {
    const lab = await openOut();
    await lab.reply('one', { id: 'room-11111111', buttons: [{ action: 'stop', value: 'v' }] });
    await lab.reply('two', { kind: 'notice' });
    await lab.pass(1_000);
    const progress = lab.out.progress(lab.thread, 'turn-1');
    progress.toolStarted('1', 'weather');
    await lab.pass(2_000);
    const posts = lab.slack.botMessages(lab.general, lab.thread.threadTs);
    expect(posts.map(({ metadata }) => metadata)).toEqual(
      ['reply', 'notice', 'progress'].map((kind) => ({
        event_type: 'band_gateway_message',
        event_payload: { k: expect.stringMatching(/^[\w-]{22}$/) as string, t: kind },
      })),
    );
    await Promise.all([progress.finish(), lab.pass(2_000)]);
  });

  it('an id that was sent already is not sent again, before and after a restart', async () => {
    const lab = await openOut();
    await lab.reply('once', { id: 'same', waitMs: 1_000 });
    expect(await lab.reply('once', { id: 'same', waitMs: 1_000 })).toMatchObject({ state: 'sent' });
    const second = await lab.reopen();
    await second.start();
    expect(
      await second.reply(lab.thread, { id: 'same', markdown: 'once', kind: 'reply', waitMs: 1_000 }),
    ).toMatchObject({
      state: 'sent',
    });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['once']);
  });
});
