import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { RelayAdapter } from '../../../src/adapters/relay.js';
import { DEMO, type RestFault } from '../../../src/sandbox/index.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { say, startBridge, type BridgeLab, type BridgeLabOptions } from '../../support/slack/bridge-lab.js';
import { createSkippingClock } from '../../support/skipping-clock.js';
import { recordedMetrics } from './outbound/lab.js';

const MINUTE_MS = 60_000;
const TROUBLE = 'I am having trouble reaching Band. Your message is kept and goes on as soon as that works.';
const NO_WAY_IN = 'Band does not let me in at the moment. Your message is kept and goes on once that is mended.';

/** The bridge on a clock that time can be left out of, with what it says loudly. */
async function start(options: BridgeLabOptions = {}) {
  const clock = createSkippingClock();
  const alarms: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void alarms.push(line) });
  const lab = await startBridge({ clock, log, acme: { clock }, ...options });
  const passing = async (holds: () => boolean | Promise<boolean>, stepMs = 1_000) => {
    await expect
      .poll(
        async () => {
          if (await holds()) return true;
          clock.advance(stepMs);
          await lab.slack.settled();
          return await holds();
        },
        { timeout: 12_000, interval: 10 },
      )
      .toBe(true);
  };
  return { clock, alarms, lab, passing };
}

const depth = (lab: BridgeLab) => lab.adapter.report().queues.find(({ name }) => name === 'inbox')!.depth;
const always = (fault: RestFault): RestFault => ({ callerId: DEMO.helpdesk.id, times: 100_000, ...fault });

describe('when a room cannot be had', () => {
  it.each([
    ['createChat answers 503', { method: 'POST', path: '/api/v1/agent/chats', status: 503 }],
    ['createChat is cut off', { method: 'POST', path: '/api/v1/agent/chats', drop: 'before' }],
    ['the bootstrap event answers 500', { method: 'POST', path: '/api/v1/agent/chats/*/events', status: 500 }],
  ] as const)(
    'S-041 since %s, the message waits, its author hears of it once, and it has one room',
    async (_how, fault) => {
      const { lab, clock, passing, alarms } = await start();
      lab.sandbox.dev.faultRest(always(fault));
      const said = lab.alice.says('#general', '@gateway hello');
      await expect.poll(() => depth(lab)).toBeGreaterThan(0);
      clock.advance(10_000);
      await lab.slack.settled();
      expect(lab.answers(said)).toEqual([]);
      await passing(() => lab.answers(said).length === 1);
      for (let minute = 0; minute < 5; minute += 1) {
        clock.advance(MINUTE_MS);
        await lab.slack.settled();
      }
      expect(lab.answers(said)).toEqual([TROUBLE]);
      expect(await lab.adapter.deadLetters.list()).toEqual([]);
      lab.sandbox.dev.clearFaults();
      await passing(() => lab.answers(said).includes('echo: hello'));
      expect(lab.heard).toEqual(['hello']);
      const bound = lab.sandbox.dev
        .state()
        .rooms.filter(({ messages }) => messages.some(({ messageType }) => messageType === 'task'));
      expect(bound).toHaveLength(1);
      expect(alarms.filter((line) => !line.includes('wait longer than they should'))).toEqual([]);
    },
  );

  it('S-075 an opening that was written although its answer was lost is found, and nothing is written twice', async () => {
    const { lab, clock, passing } = await start();
    lab.sandbox.dev.faultRest(always({ path: '/api/v1/agent/chats/*/events', times: 1, drop: 'after' }));
    const said = lab.alice.says('#general', '@gateway hello');
    await expect.poll(() => lab.sandbox.dev.state().rooms.length).toBe(1);
    clock.advance(2_000);
    await passing(() => lab.answers(said).includes('echo: hello'));
    const [room, ...others] = lab.sandbox.dev.state().rooms;
    expect(others).toEqual([]);
    expect(room!.messages.map(({ messageType }) => messageType)).toEqual(['task', 'thought']);
  });

  it.each([401, 403])(
    'with %d nothing is tried any more, it is said loudly, and each thread is told once',
    async (status) => {
      const { lab, passing, alarms, clock } = await start();
      const known = lab.bob.says('#rooms', '@gateway before');
      await lab.answered(known);
      await expect.poll(() => depth(lab)).toBe(0);
      lab.sandbox.dev.faultRest(always({ status }));
      const one = lab.alice.says('#general', '@gateway one');
      await lab.answered(one);
      const two = lab.carol.says('#general', '@gateway two');
      lab.bob.replies(known, 'three');
      await lab.answered(two);
      await lab.answered(known, 2);
      // The inbox goes on filling, Band is asked once a minute, and nobody hears of it twice.
      for (let minute = 0; minute < 8; minute += 1) {
        clock.advance(MINUTE_MS + 1_000);
        await lab.slack.settled();
      }
      const other = lab.alice.says('dm', 'four');
      await lab.answered(other);
      expect([one, two, other].map((said) => lab.answers(said))).toEqual([[NO_WAY_IN], [NO_WAY_IN], [NO_WAY_IN]]);
      expect(lab.answers(known)).toEqual(['echo: before', NO_WAY_IN]);
      expect(lab.heard).toEqual(['before']);
      expect(await lab.adapter.deadLetters.list()).toEqual([]);
      const said = alarms.filter((line) => line.includes('Band refuses this agent'));
      expect(said).toHaveLength(1);
      lab.sandbox.dev.clearFaults();
      await passing(() => lab.heard.length === 5);
      expect(lab.heard.slice(1).toSorted()).toEqual(['four', 'one', 'three', 'two']);
    },
  );

  it('with a refusal that is about something else the message ends with a word', async () => {
    const { lab } = await start();
    lab.sandbox.dev.faultRest(always({ method: 'POST', path: '/api/v1/agent/chats', status: 422 }));
    const said = lab.alice.says('#general', '@gateway hello');
    expect((await lab.answered(said))[0]).toMatch(/^I could not open a conversation for this/);
    expect(await lab.adapter.deadLetters.list()).toMatchObject([{ queue: 'inbox', code: 'BAND_INVALID' }]);
  });
});

describe('when the room is gone', () => {
  it('a brain of one’s own gets a new one, and the thread a line', async () => {
    const { lab } = await start();
    const said = lab.alice.says('#general', '@gateway first');
    await lab.answered(said);
    const room = lab.turns[0]!.roomId;
    lab.sandbox.dev.faultRest(always({ path: `/api/v1/agent/chats/${room}*`, status: 404 }));
    lab.alice.replies(said, 'second');
    await lab.answered(said, 3);
    expect(lab.answers(said)).toEqual([
      'echo: first',
      'The room behind this conversation is gone. I go on in a new one.',
      'echo: second',
    ]);
    expect(lab.turns.map(({ roomId }) => roomId)).toEqual([room, expect.not.stringContaining(room)]);
    const next = lab.turns[1]!.roomId;
    const rows = await lab.roomRows(next);
    expect(rows.map((row) => row['message_type'])).toEqual(['task', 'thought']);
    lab.alice.replies(said, 'third');
    await lab.answered(said, 4);
    expect(lab.turns.map(({ roomId }) => roomId)).toEqual([room, next, next]);
  });

  it('the relay’s message goes into a new one', async () => {
    const { lab } = await start({ inner: new RelayAdapter({ peer: 'demo/editor' }) });
    const texts = () =>
      lab.sandbox.dev
        .state()
        .rooms.map(({ messages }) =>
          messages.filter(({ messageType }) => messageType === 'text').map((one) => one.content),
        );
    const said = lab.alice.says('#general', '@gateway first');
    await expect.poll(() => texts().join()).toContain('first');
    const [room] = await lab.rooms_();
    lab.sandbox.dev.faultRest(always({ path: `/api/v1/agent/chats/${String(room!['id'])}*`, status: 404 }));
    lab.alice.replies(said, 'second');
    await expect.poll(() => texts().flat().join(), { timeout: 5_000 }).toContain('second');
    expect(texts().map((some) => some.length)).toEqual([1, 1]);
    expect(lab.answers(said)).toContain('The room behind this conversation is gone. I go on in a new one.');
  });
});

describe('when Band is only partly there', () => {
  it('S-085 a mirror that fails costs nothing but itself', async () => {
    const { lab } = await start();
    lab.sandbox.dev.faultRest(always({ method: 'POST', path: '/api/v1/agent/chats/*/events', skip: 1, status: 503 }));
    const said = lab.alice.says('#general', '@gateway hello');
    expect(await lab.answered(said)).toEqual(['echo: hello']);
    await lab.slack.settled();
    expect(lab.answers(said)).toEqual(['echo: hello']);
    expect(lab.heard).toEqual(['hello']);
  });

  it('Slack’s turns run while the connection to Band is down', async () => {
    const { lab } = await start();
    lab.sandbox.dev.faultUpgrades({ mode: 'refuse' });
    lab.sandbox.dev.closeSockets(DEMO.helpdesk.id, 1006);
    await expect.poll(() => lab.sandbox.dev.state().sockets.filter(({ kind }) => kind === 'Agent')).toEqual([]);
    const said = lab.alice.says('#general', '@gateway still there?');
    expect(await lab.answered(said)).toEqual(['echo: still there?']);
    lab.bob.replies(said, 'and you?');
    expect(await lab.answered(said, 2)).toEqual(['echo: still there?', 'echo: and you?']);
  });
});

describe('a brain that does not listen', () => {
  it('S-087 is left behind a second after its turn was cut: the thread goes on, what it says late is refused and counted', async () => {
    const { metrics, of } = recordedMetrics();
    let go = (): void => undefined;
    const deaf = new Promise<void>((resolve) => (go = resolve));
    const late: unknown[] = [];
    const { lab, clock, passing } = await start({
      metrics,
      settings: { turnTimeoutSeconds: 60 },
      onTurn: async (turn) => {
        if (turn.message.content !== 'deaf') {
          await say(turn, `fine: ${turn.message.content}`);
          return;
        }
        await deaf;
        late.push(await say(turn, 'too late'));
        late.push(await turn.tools.sendEvent('late too', 'thought').catch((error: unknown) => error));
      },
    });
    const said = lab.alice.says('#general', '@gateway deaf');
    await lab.slack.until(() => lab.heard.length === 1);
    lab.alice.replies(said, 'next');
    clock.advance(60_000);
    await passing(() => lab.answers(said).includes('fine: next'), 500);
    expect(lab.answers(said)[0]).toMatch(/^This took too long, so I stopped\. Reference: /);
    go();
    await expect.poll(() => late.length).toBe(2);
    expect(JSON.stringify(late[0])).toContain('turn_ended');
    expect(late[1]).toBeInstanceOf(Error);
    expect(of('slack_late_calls_total')).toEqual([
      { name: 'slack_late_calls_total', labels: { app: 'main' }, value: 1 },
      { name: 'slack_late_calls_total', labels: { app: 'main' }, value: 1 },
    ]);
    await lab.slack.settled();
    expect(lab.answers(said).join()).not.toContain('too late');
    const rows = await lab.roomRows(lab.turns[0]!.roomId);
    expect(JSON.stringify(rows)).not.toContain('late too');
  });
});

describe('a workspace in which the app is not installed yet', () => {
  it('SLK-14 what came from it is kept for a day, and has its one turn once the app is installed there', async () => {
    const store = createMemoryStore();
    const { lab, alarms, clock } = await start({ store });
    const elsewhere = lab.slack.team({ id: 'T07LATER001', name: 'Later' });
    const event = (ts: string, type: string, id: string) => ({
      type: 'event_callback',
      event_id: id,
      team_id: elsewhere.id,
      api_app_id: lab.app.id,
      event: { type, user: 'U07LATER009', text: '<@U07LATERBOT> hello', ts, channel: 'C07LATER001' },
      authorizations: [{ team_id: elsewhere.id, user_id: 'U07LATERBOT', is_bot: true }],
    });
    const before = String(Math.floor(clock.now() / 1_000));
    lab.slack.deliverRaw(lab.app, event(`${before}.000100`, 'app_mention', 'EvOLD'));
    await expect.poll(async () => (await lab.adapter.deadLetters.list()).length).toBe(1);
    clock.advance(25 * 60 * MINUTE_MS);
    const now = `${Math.floor(clock.now() / 1_000)}.000100`;
    lab.slack.deliverRaw(lab.app, event(now, 'app_mention', 'EvA'));
    lab.slack.deliverRaw(lab.app, event(now, 'message', 'EvB'));
    await expect.poll(async () => (await lab.adapter.deadLetters.list()).length).toBe(3);
    expect(alarms.filter((line) => line.includes('without an installation'))).toHaveLength(3);
    await lab.stop();

    const person = lab.slack.user(elsewhere, { id: 'U07LATER009', name: 'pat', displayName: 'Pat' });
    const bot = lab.slack.install(lab.app, elsewhere, { botUserId: 'U07LATERBOT', botId: 'B07LATER001' });
    const channel = lab.slack.channel(elsewhere, {
      id: 'C07LATER001',
      name: 'later',
      members: [person.id, bot.botUserId],
    });
    const token = bot.tokens[0]!.value;
    const next = await startBridge({ clock, store, world: { ...lab, botToken: token }, sandbox: lab.sandbox });
    await next.slack.until(() => next.heard.length === 1);
    await expect.poll(() => depth(next)).toBe(0);
    expect(next.heard).toEqual(['hello']);
    await next.slack.until(() =>
      next.slack
        .calls('chat.postMessage')
        .some(({ args, outcome }) => args['channel'] === channel.id && outcome === 'ok'),
    );
    expect(await next.adapter.deadLetters.list()).toHaveLength(1);
  });
});
