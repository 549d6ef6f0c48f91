import { describe, expect, it, onTestFinished } from 'vitest';
import { resolveApps } from '../../../../bridges/slack/apps.js';
import { FAULT_ROWS } from '../../../../bridges/slack/fault-table.js';
import { Installation } from '../../../../bridges/slack/installations.js';
import { slackSettings } from '../../../../bridges/slack/settings.js';
import { createLogger } from '../../../../src/base/log.js';
import { noMetrics } from '../../../../src/base/metrics.js';
import { parseOptions } from '../../../../src/config/setting.js';
import { createManualClock } from '../../../../src/testing/manual-clock.js';
import { startAcme } from '../../../support/slack/acme.js';
import { startBridge } from '../../../support/slack/bridge-lab.js';
import { openOut, type OutLab } from '../outbound/lab.js';
import { deadCodes, error, isThere, told, WRITES, type WriteMethod } from './writes.js';

const MINUTE_MS = 60_000;
const METHODS = Object.keys(WRITES) as WriteMethod[];
const POSTS = ['chat.postMessage', 'chat.postEphemeral', 'chat.update'] as const;
const REFUSED = ['invalid_auth', 'not_authed', 'token_expired'];
const GONE = [
  'token_revoked',
  'account_inactive',
  'team_disabled',
  'user_removed_from_team',
  'two_factor_setup_required',
  'not_allowed_token_type',
  'access_denied',
  'accesslimited',
  'enterprise_is_restricted',
  'team_access_not_granted',
];
const DEFECTS = [
  'invalid_arguments',
  'invalid_arg_name',
  'invalid_array_arg',
  'invalid_form_data',
  'invalid_charset',
  'invalid_post_type',
  'missing_post_type',
];
const each = (methods: readonly WriteMethod[], words: readonly string[]): [string, WriteMethod][] =>
  methods.flatMap((method) => words.map((word): [string, WriteMethod] => [word, method]));
const recorded = () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ destination: { write: (line) => void lines.push(JSON.parse(line) as never) } });
  return { lines, log };
};
/** A method that fails, and the write that calls it. */
async function failing(method: WriteMethod, word: string, times = 1, more: Parameters<typeof openOut>[0] = {}) {
  const lab = await openOut(more);
  const fault = lab.slack.fault({
    method,
    times,
    effect: error(word, { needed: 'some:scope', provided: 'chat:write' }),
  });
  await WRITES[method](lab);
  return { lab, fault };
}
const withToken = (lab: OutLab) => lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });

describe('a token that Slack does not take', () => {
  it.each([...each(METHODS, [...REFUSED, ...GONE]), ...each(POSTS, ['missing_scope'])])(
    'S-105 S-107 %s of %s: all of the installation waits, with one alert, and goes on with a token that works',
    async (word, method) => {
      const { lines, log } = recorded();
      const { lab, fault } = await failing(method, word, 10, { log });
      await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
      expect(fault.hits()).toBe(1);
      await lab.reply('and more');
      await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
      expect(lab.shown()).not.toContain('and more');
      expect(lab.out.parks()).toMatchObject([{ channel: null, cause: word, team: lab.team.id }]);
      const alerts = lines.filter(({ msg }) => msg === 'Slack lane parked');
      expect(alerts).toMatchObject([{ level: 50, slackError: word, remedy: expect.any(String) as string }]);
      expect(await deadCodes(lab)).toEqual([]);
      fault.disarm();
      await withToken(lab);
      await lab.pass(3_000);
      expect(isThere(lab, method)).toBe(true);
      expect(lab.shown()).toContain('and more');
    },
  );

  it('S-105 several writes that learn it at once make one alert', async () => {
    const { lines, log } = recorded();
    const lab = await openOut({ log });
    lab.slack.fault({ method: 'chat.postMessage', times: 2, effect: error('token_revoked') });
    const other = { ...lab.thread, threadTs: lab.alice.says('#general', 'and here?').ts };
    await lab.reply('hello');
    await lab.out.reply(other, { id: 'other', markdown: 'hello', kind: 'reply' });
    await lab.pass(1_000);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(2);
    expect(lines.filter(({ msg }) => msg === 'Slack lane parked')).toHaveLength(1);
  });

  it('S-105 missing_scope of a post: the alert names what is needed', async () => {
    const { lines, log } = recorded();
    const { lab } = await failing('chat.postMessage', 'missing_scope', 1, { log });
    await lab.pass(1_000);
    expect(lines.filter(({ level }) => level === 50)).toMatchObject([{ needed: 'some:scope', provided: 'chat:write' }]);
    await withToken(lab);
    await lab.pass(1_000);
  });

  it.each([...REFUSED, ...GONE])('S-105 %s: every room hears of it once, when it is used next', async (word) => {
    const { lab } = await failing('chat.postMessage', word);
    await lab.reply('again');
    await lab.pass(1_000);
    expect(lab.roomErrors).toMatchObject([{ slackError: word, thread: lab.thread }]);
    const other = { ...lab.thread, threadTs: lab.alice.says('#general', 'and here?').ts };
    for (const id of ['a', 'b']) await lab.out.reply(other, { id, markdown: id, kind: 'reply' });
    await lab.pass(1_000);
    expect(lab.roomErrors.map(({ thread }) => thread.threadTs)).toEqual([lab.thread.threadTs, other.threadTs]);
    await withToken(lab);
    await lab.pass(3_000);
  });

  it('S-105 team_access_not_granted is about one workspace', async () => {
    const { lab } = await failing('chat.postMessage', 'team_access_not_granted');
    await lab.pass(1_000);
    const elsewhere = { ...lab.thread, team: 'T07OTHER002', channel: lab.rooms.id };
    const threadTs = lab.alice.says('#rooms', 'hello').ts;
    await lab.out.reply({ ...elsewhere, threadTs }, { id: 'r', markdown: 'there', kind: 'reply' });
    await lab.pass(1_000);
    expect(lab.slack.botMessages(lab.rooms, threadTs)).toHaveLength(1);
    expect(lab.shown()).toEqual([]);
    await lab.out.resume({ kind: 'settings', slug: 'main', team: lab.team.id });
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
  });

  it.each(each(METHODS, REFUSED))(
    'S-105 S-183 %s of %s: a rotated token is refreshed once, and it is sent once more',
    async (word, method) => {
      let refreshed = 0;
      const { lab } = await failing(method, word, 1, {
        hooks: { refresh: () => Promise.resolve((refreshed += 1) > 0) },
      });
      await lab.pass(2_500);
      expect([refreshed, isThere(lab, method), lab.out.parks()]).toEqual([1, true, []]);
    },
  );

  it('S-105 S-183 refreshed in vain, it waits', async () => {
    let refreshed = 0;
    const hooks = { refresh: () => Promise.resolve((refreshed += 1) > 0) };
    const { lab } = await failing('chat.postMessage', 'token_expired', 2, { hooks });
    await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
    expect([refreshed, lab.out.parks().map(({ cause }) => cause)]).toEqual([1, ['token_expired']]);
    await withToken(lab);
    await lab.pass(1_000);
    expect(lab.shown()).toEqual(['hello']);
  });

  it('S-105 S-185 in the whole bridge an app that was removed says nothing more, and each room it is to speak in hears so once', async () => {
    const lab = await startBridge();
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.answered(said);
    lab.slack.emitEvent(lab.app, lab.team.id, { type: 'app_uninstalled' });
    await lab.slack.until(() => lab.slack.events.inFlight === 0);
    await expect.poll(() => lab.adapter.report().lastErrors.map(({ code }) => code)).toContain('uninstalled');
    const before = lab.slack.calls('chat.postMessage').length;
    lab.alice.replies(said, 'still there?');
    await expect.poll(() => lab.heard.length).toBe(2);
    const [room] = await lab.rooms_();
    const errors = async () =>
      (await lab.roomRows(String(room!['id'])))
        .filter((row) => row['message_type'] === 'error')
        .map((row) => row['metadata']);
    await expect.poll(errors).toMatchObject([{ slack_error: 'uninstalled' }]);
    expect(lab.slack.calls('chat.postMessage')).toHaveLength(before);
  });
});

describe('a token that Slack refuses from the start', () => {
  it.each([...REFUSED, ...GONE])(
    'S-105 %s: the app is parked with an alert, and is asked again until it may go on',
    async (word) => {
      const clock = createManualClock();
      const { lines, log } = recorded();
      const { slack, botToken } = await startAcme({ clock, rates: false });
      const [app] = resolveApps(parseOptions(slackSettings, { botToken, appToken: 'xapp-1' }, 'lab'));
      const seen: string[] = [];
      const installation = new Installation(app!, {
        slackApiUrl: slack.apiUrl,
        dispatcher: undefined,
        clock,
        log,
        metrics: noMetrics,
        random: () => 0.5,
        neededScopes: () => new Map(),
        onKnown: () => void seen.push('known'),
        onRefused: (_installation, { details }) => void seen.push(String(details['slackError'])),
      });
      onTestFinished(async () => {
        await installation.stop();
        await slack.stop();
      });
      slack.fault({ method: 'auth.test', effect: error(word) });
      installation.start();
      await expect.poll(() => installation.refused?.details['slackError']).toBe(word);
      expect(new Set(seen)).toEqual(new Set([word]));
      expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
      await expect
        .poll(async () => {
          await clock.advance(1_000);
          return seen.at(-1);
        })
        .toBe('known');
      expect(installation.refused).toBeNull();
    },
  );
});

describe('a token for several workspaces', () => {
  it.each(METHODS)(
    'S-105 team_not_found of %s: it is sent once more with the workspace of the conversation',
    async (method) => {
      const lab = await openOut({ install: { orgWide: true } });
      await WRITES[method](lab);
      await lab.pass(3_000);
      expect(isThere(lab, method)).toBe(true);
      const calls = lab.slack.calls().filter(({ outcome }) => outcome === 'team_not_found');
      expect(calls.every(({ args }) => args['team_id'] === undefined)).toBe(true);
      expect(lab.slack.calls(method).at(-1)!.args['team_id']).toBe(lab.team.id);
    },
  );

  it.each(['chat.postMessage', 'chat.update', 'files.getUploadURLExternal'] as const)(
    'S-105 team_not_found of %s a second time: it is given up',
    async (method) => {
      const { lab, fault } = await failing(method, 'team_not_found', 5);
      await lab.pass(3_000);
      expect(fault.hits()).toBe(2);
      expect(await deadCodes(lab)).toEqual(['team_not_found']);
      expect(told(lab)).toHaveLength(1);
    },
  );
});

describe('a defect of our own', () => {
  it.each(
    each(
      METHODS.filter((method) => method !== 'chat.postEphemeral'),
      DEFECTS,
    ),
  )('S-105 %s of %s: given up at once, with a log line that holds no text', async (word, method) => {
    const { lines, log } = recorded();
    const { lab, fault } = await failing(method, word, 10, { log });
    await lab.pass(60 * MINUTE_MS, 10 * MINUTE_MS);
    expect(fault.hits()).toBe(1);
    expect(await deadCodes(lab)).toEqual([word]);
    expect(lines.filter((line) => line['arguments'] !== undefined)).toMatchObject([{ method, slackError: word }]);
    expect(JSON.stringify(lines)).not.toMatch(/"hello|edited|some notes/);
  });

  it.each(DEFECTS)('S-105 %s: the room and the asker hear of it', async (word) => {
    const { lab } = await failing('chat.postMessage', word);
    await lab.pass(1_000);
    expect(told(lab)).toEqual([expect.stringMatching(/because of a defect on my side/)]);
    expect(lab.roomErrors).toMatchObject([{ slackError: word }]);
  });
});

describe('a method that Slack has taken away', () => {
  it.each(['method_deprecated', 'deprecated_endpoint', 'unknown_method'])(
    'S-105 %s: posts are given up and told, and not tried again before the next start',
    async (word) => {
      const { lines, log } = recorded();
      const { lab } = await failing('chat.postMessage', word, 1, { log });
      await lab.reply('and more');
      await lab.pass(1_000);
      expect(await deadCodes(lab)).toEqual([word, word]);
      expect(lab.slack.calls('chat.postMessage')).toHaveLength(1);
      expect(told(lab)).toEqual([expect.stringMatching(/could not post/)]);
      expect(
        lines.filter(({ msg }) => msg === 'Slack has no such method any more: off until the next start'),
      ).toHaveLength(1);
      lab.installation.current = { ...lab.installation.current!, client: lab.freshClient() };
      await lab.reply('after a restart');
      await lab.pass(1_000);
      expect(lab.shown()).toEqual(['after a restart']);
    },
  );

  it.each(
    each(['reactions.add', 'chat.postEphemeral'], ['method_deprecated', 'deprecated_endpoint', 'unknown_method']),
  )('S-105 %s of %s: nobody is bothered, and it is not tried again', async (word, method) => {
    const { lab, fault } = await failing(method, word, 10);
    await lab.pass(1_000);
    await WRITES[method](lab);
    await lab.pass(1_000);
    expect(fault.hits()).toBe(1);
    expect(await deadCodes(lab)).toEqual([]);
  });
});

describe('the fault table', () => {
  it('S-105 every word of the table ends a post in one of the known ways', async () => {
    const lab = await openOut({ rates: false });
    const words = [...FAULT_ROWS.keys()];
    for (const [index, word] of words.entries()) {
      const said = lab.alice.says('#general', `question ${index}`);
      const before = lab.slack.calls('chat.postMessage').length;
      const fault = lab.slack.fault({
        method: 'chat.postMessage',
        channel: lab.general.id,
        times: 100,
        effect: error(word),
      });
      const thread = { ...lab.thread, threadTs: said.ts, askerId: null };
      await lab.out.reply(thread, { id: `word-${word}`, markdown: 'hello', kind: 'reply' });
      await lab.pass(1_000, 500);
      fault.disarm();
      lab.installation.current = { ...lab.installation.current!, client: lab.freshClient() };
      await lab.out.resume({ kind: 'token', slug: 'main', team: lab.team.id });
      await lab.out.resume({ kind: 'joined', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.out.resume({ kind: 'unarchived', slug: 'main', team: lab.team.id, channel: lab.general.id });
      await lab.pass(10 * MINUTE_MS, 2 * MINUTE_MS);
      const isDead = (await deadCodes(lab)).includes(word);
      const posts = lab.slack
        .calls('chat.postMessage')
        .slice(before)
        .filter(({ outcome }) => outcome === 'ok').length;
      expect([word, isDead ? 0 : 1]).toEqual([word, posts]);
      expect(lab.slack.calls('chat.postMessage').length - before, word).toBeLessThan(60);
      expect([word, lab.out.queues()[0]!.depth]).toEqual([word, 0]);
    }
  }, 60_000);
});
