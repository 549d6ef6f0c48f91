import { describe, expect, it } from 'vitest';
import { openOut, type OutLab } from './lab.js';

const shownStatus = (lab: OutLab) => lab.slack.status(lab.general.id, lab.thread.threadTs);
const calls = (lab: OutLab) =>
  lab.slack
    .calls()
    .filter(({ method }) => method.endsWith('setStatus'))
    .map(({ method, args }) => `${method.split('.')[0]!} ${String(args['status'])}`);

describe('the status of a thread', () => {
  it('S-133 is set before the work and cleared after it', async () => {
    const lab = await openOut();
    const status = lab.out.status(lab.thread);
    status.set();
    await lab.pass(1_000);
    expect(shownStatus(lab)).toBe('is thinking…');
    status.clear();
    await lab.pass(1_000);
    expect(shownStatus(lab)).toBeNull();
    expect(calls(lab)).toEqual(['assistant is thinking…', 'assistant ']);
  });

  it('S-133 refusals are ignored, and three in a row switch it off for an hour', async () => {
    const lab = await openOut();
    lab.slack.fault({
      method: 'assistant.threads.setStatus',
      times: 3,
      effect: { kind: 'error', error: 'channel_not_found' },
    });
    const status = lab.out.status(lab.thread);
    for (let turn = 0; turn < 6; turn += 1) {
      status.set();
      await lab.pass(2_000, 1_000);
      status.clear();
      await lab.pass(2_000, 1_000);
    }
    expect(calls(lab)).toHaveLength(3);
    await lab.pass(3_600_000, 600_000);
    status.set();
    await lab.pass(1_000);
    expect(shownStatus(lab)).toBe('is thinking…');
    status.clear();
    await lab.pass(1_000);
  });

  it('S-134 is alive through a turn of ten minutes', async () => {
    const lab = await openOut();
    const status = lab.out.status(lab.thread);
    status.set('is looking…');
    const seen = new Set<string | null>();
    await lab.pass(1_000);
    for (let second = 0; second < 600; second += 5) {
      await lab.pass(5_000, 5_000);
      seen.add(shownStatus(lab));
    }
    expect([...seen]).toEqual(['is looking…']);
    expect(calls(lab).length).toBeLessThanOrEqual(8);
    status.clear();
    await lab.pass(1_000);
    await lab.pass(200_000, 50_000);
    expect(calls(lab).at(-1)).toBe('assistant ');
  });

  it('is set again when a message of ours took it away while the work goes on', async () => {
    const lab = await openOut();
    const status = lab.out.status(lab.thread);
    status.set();
    await lab.pass(2_000);
    await lab.reply('This takes a while.', { kind: 'notice' });
    await lab.pass(2_000);
    expect(shownStatus(lab)).toBe('is thinking…');
    status.clear();
    await lab.pass(1_000);
    expect(shownStatus(lab)).toBeNull();
  });

  it('S-135 an agent app shows a session at work, with who began it, and back', async () => {
    const lab = await openOut({ surface: 'agent', app: { surface: 'agent' } });
    const status = lab.out.status(lab.thread);
    status.set();
    await lab.pass(1_000);
    const session = lab.slack.world.sessions.get(`${lab.general.id}:${lab.thread.threadTs}`);
    expect(session).toMatchObject({ state: 'processing', initiator: lab.alice.id });
    status.clear();
    await lab.pass(1_000);
    expect(calls(lab)).toEqual(['agents processing', 'agents active']);
  });

  it.each([
    ['an assistant app', 'assistant', ['agents processing', 'assistant is thinking…', 'assistant ']],
    ['an agent app', 'agent', ['agents processing', 'agents active']],
  ] as const)('finds out by trying that it is %s, and remembers', async (_name, surface, expected) => {
    const lab = await openOut({ surface: null, app: { surface } });
    const status = lab.out.status(lab.thread);
    status.set();
    await lab.pass(1_000);
    status.clear();
    await lab.pass(1_000);
    expect(calls(lab)).toEqual(expected);
  });

  it.each([
    ['the settings', { settings: { status: 'off' as const } }],
    ['the app’s surface', { surface: 'none' as const }],
  ])('is off where %s say so', async (_name, options) => {
    const lab = await openOut(options);
    lab.out.status(lab.thread).set();
    await lab.pass(2_000);
    expect(calls(lab)).toEqual([]);
    lab.out.status(lab.thread).clear();
    await lab.pass(1_000);
  });

  it('is cut short by a turn that ends at once: what was superseded is never written', async () => {
    const lab = await openOut();
    const status = lab.out.status(lab.thread);
    status.set('one');
    await lab.pass(250);
    status.set('two');
    status.clear();
    await lab.pass(2_000);
    expect(calls(lab)).toEqual(['assistant one', 'assistant ']);
  });

  it('S-095 with more threads than the rate allows, what is over before its turn is never said, and nothing stays shown', async () => {
    const lab = await openOut();
    const threads = Array.from({ length: 60 }, (_, n) => {
      const { ts } = lab.alice.says('#general', `@gateway question ${n}`);
      return { ...lab.thread, threadTs: ts };
    });
    for (const thread of threads) lab.out.status(thread).set();
    await lab.pass(1_000);
    const saidAtOnce = calls(lab).length;
    expect(saidAtOnce).toBeLessThan(threads.length);
    for (const thread of threads) lab.out.status(thread).clear();
    await lab.pass(120_000, 1_000);
    // One more may have had its turn as the work ended.
    expect(calls(lab).length).toBeLessThanOrEqual(2 * (saidAtOnce + 1));
    expect(threads.map(({ threadTs }) => lab.slack.status(lab.general.id, threadTs))).toEqual(threads.map(() => null));
  });

  it('S-095 turns that follow each other faster than the rate allows hold one write of a thread, and end with none shown', async () => {
    const lab = await openOut();
    const others = Array.from({ length: 40 }, (_, n) => {
      const { ts } = lab.alice.says('#general', `@gateway other ${n}`);
      return lab.out.status({ ...lab.thread, threadTs: ts });
    });
    for (const other of others) other.set();
    const status = lab.out.status(lab.thread);
    const own = () => lab.slack.calls().filter(({ args }) => args['thread_ts'] === lab.thread.threadTs).length;
    for (let turn = 0; turn < 30; turn += 1) {
      status.set();
      await lab.pass(500, 500);
      status.clear();
      await lab.pass(500, 500);
    }
    const during = own();
    for (const other of others) other.clear();
    await lab.pass(180_000, 1_000);
    expect(own() - during).toBeLessThanOrEqual(2);
    expect(shownStatus(lab)).toBeNull();
    const idle = own();
    status.set('once more');
    await lab.pass(2_000);
    expect(shownStatus(lab)).toBe('once more');
    status.clear();
    await lab.pass(2_000);
    expect(shownStatus(lab)).toBeNull();
    expect(own()).toBe(idle + 2);
  });
});
