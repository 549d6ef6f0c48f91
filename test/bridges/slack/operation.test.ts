import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GatewayError } from '../../../src/base/errors.js';
import { createLogger } from '../../../src/base/log.js';
import type { Labels, Metrics } from '../../../src/base/metrics.js';
import { createRedactor } from '../../../src/base/redact.js';
import type { OutsideBrain } from '../../../src/core/outside.js';
import { SimpleAdapter } from '../../../src/core/simple-adapter.js';
import type { AgentToolsProtocol } from '../../../src/core/tools.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { prefixRange, type StateStore } from '../../../src/store/port.js';
import { say, startBridge, type SlackTurn } from '../../support/slack/bridge-lab.js';

/** Instruments that keep everything they are told. */
function recordingMetrics() {
  const moved = new Map<string, Labels[]>();
  const note = (name: string, labels: Labels = {}) => {
    moved.set(name, [...(moved.get(name) ?? []), labels]);
  };
  const metrics: Metrics = {
    counter: (name) => ({
      inc: (labels) => {
        note(name, labels);
      },
    }),
    gauge: (name) => ({
      set: (labels) => {
        note(name, labels);
      },
    }),
    histogram: (name) => ({
      observe: (labels) => {
        note(name, labels);
      },
    }),
  };
  return { moved, metrics };
}

const copyOf = async (store: StateStore): Promise<StateStore> => {
  const copy = createMemoryStore();
  const entries = await store.range({ ...prefixRange('slack/'), limit: 10_000 });
  await copy.batch(entries.map(({ key, value }) => ({ kind: 'put', key, value })));
  return copy;
};

/** A store whose disk can be filled and emptied. */
function fillableStore(): { store: StateStore; full: (on: boolean) => void } {
  const inner = createMemoryStore();
  let isFull = false;
  const store: StateStore = {
    get: (key) => inner.get(key),
    range: (options) => inner.range(options),
    batch: (changes) =>
      isFull ? Promise.reject(new GatewayError('STORE_IO', { message: 'no space left' })) : inner.batch(changes),
    lease: (name, owner, ttlMs) => inner.lease(name, owner, ttlMs),
    close: () => inner.close(),
  };
  return { store, full: (on) => void (isFull = on) };
}

/** A brain that speaks by its outlet, and has nothing to say. */
class Quiet extends SimpleAdapter implements OutsideBrain {
  heard = 0;

  connectOutlet(): void {
    // Nothing will be said.
  }

  stopOutside(): Promise<boolean> {
    return Promise.resolve(true);
  }

  onMessage(_message: unknown, tools: AgentToolsProtocol): Promise<void> {
    this.heard += 1;
    tools.turn.settle();
    return Promise.resolve();
  }
}

const noReply = (turn: SlackTurn) => turn.tools.executeToolCall('slack_no_reply', {}).then(() => undefined);

describe('in operation', () => {
  it('S-212 the metrics move, and no label holds an id of a person, a place or a message', async () => {
    const { moved, metrics } = recordingMetrics();
    const lab = await startBridge({
      metrics,
      transport: 'socket',
      onTurn: async (turn) => {
        if (turn.message.content === 'break') throw new Error('no');
        if (turn.message.content === 'decline') await noReply(turn);
        else await say(turn, 'ok');
      },
    });
    lab.slack.fault({
      method: 'chat.postMessage',
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '1' } },
    });
    const said = lab.alice.says('#general', '@gateway fine');
    await lab.answered(said);
    const body = lab.slack.deliveries().find((delivery) => delivery.type === 'app_mention')!.body;
    lab.slack.deliverRaw(lab.app, body);
    lab.alice.says('#general', '@gateway break');
    lab.alice.says('#general', '@gateway decline');
    lab.alice.says('#general', 'nothing for us');
    await lab.slack.until(() => lab.heard.includes('decline') && lab.heard.includes('break'));
    for (const socket of lab.slack.sockets.open(lab.app)) lab.slack.sockets.sever(socket);
    await lab.slack.settled();
    await expect.poll(() => moved.has('slack_socket_disconnects_total')).toBe(true);
    for (const name of [
      'slack_events_received_total',
      'slack_events_dropped_total',
      'slack_events_duplicate_total',
      'slack_ack_seconds',
      'slack_turn_seconds',
      'slack_turns_total',
      'slack_api_requests_total',
      'slack_api_seconds',
      'slack_ratelimited_total',
      'slack_socket_connections',
      'slack_bindings',
      'slack_inbox_records',
      'slack_inbox_oldest_seconds',
      'slack_turn_queue_depth',
      'slack_installations',
      'slack_unreachable_channels',
      'slack_lane_wait_seconds',
      'slack_outbox_records',
    ]) {
      expect(moved.has(name), name).toBe(true);
    }
    const values = [...moved.values()].flat().flatMap((labels) => Object.values(labels));
    expect(values.filter((value) => /^[A-Z][A-Z0-9]{6,}$|^\d+\.\d+$|[0-9a-f]{8}-/.test(value))).toEqual([]);
    const outcomes = () => (moved.get('slack_turns_total') ?? []).map((labels) => labels['outcome']);
    await expect.poll(outcomes).toEqual(expect.arrayContaining(['replied', 'no_reply', 'error']));
  });

  it('S-210 tokens and secrets are in no log line, room row, Slack message or metric', async () => {
    const lines: string[] = [];
    const { moved, metrics } = recordingMetrics();
    const log = createLogger({
      level: 'trace',
      destination: { write: (line: string) => void lines.push(line) },
      redactor: createRedactor(),
    });
    const lab = await startBridge({
      log,
      metrics,
      onTurn: async (turn) => {
        if (turn.message.content === 'break') throw new Error(`it was ${lab.botToken}`);
        await say(turn, 'ok');
      },
    });
    const secrets = [lab.botToken, lab.app.signingSecret, lab.app.appToken];
    lab.slack.fault({ method: 'chat.postMessage', effect: { kind: 'drop', applied: false } });
    lab.slack.fault({ method: 'users.info', effect: { kind: 'status', status: 503 } });
    const said = lab.alice.uploads('#general', [{ name: 'a.txt', bytes: 'x' }], { typed: '@gateway look' });
    await lab.answered(said);
    const broken = lab.alice.says('#general', '@gateway break');
    await lab.answered(broken);
    lab.slack.events.tamper = (request) => ({
      ...request,
      headers: { ...request.headers, 'x-slack-signature': 'v0=00' },
    });
    lab.alice.says('#general', '@gateway forged');
    await lab.slack.until(() =>
      lab.slack.deliveries().some((delivery) => delivery.attempts.some((attempt) => attempt.outcome === '401')),
    );
    lab.slack.events.tamper = null;
    const rooms = await lab.rooms_();
    const rows = await Promise.all(rooms.map((room) => lab.roomRows(String(room['id']))));
    const everything = [
      ...lines,
      JSON.stringify(rows),
      JSON.stringify(lab.slack.messages(lab.general)),
      ...lab.answers(said),
      ...lab.answers(broken),
      JSON.stringify([...moved]),
    ].join('\n');
    expect(lines.length).toBeGreaterThan(5);
    for (const secret of secrets) expect(everything).not.toContain(secret);
    expect(everything).not.toMatch(/trigger\.[0-9A-Z]{6,}/);
  });

  it('S-198 a full disk gives 503, and the redelivery is handled once there is room again, without a restart', async () => {
    const { store, full } = fillableStore();
    const lab = await startBridge({ store });
    full(true);
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.slack.until(() =>
      lab.slack.deliveries().some((delivery) => delivery.attempts.some((attempt) => attempt.outcome === '503')),
    );
    full(false);
    for (const delivery of lab.slack.deliveries().filter(({ state }) => state !== 'acked'))
      lab.slack.deliverRaw(lab.app, delivery.body);
    expect((await lab.answered(said))[0]).toBe('echo: hello');
    await lab.idle();
    expect(lab.heard).toEqual(['hello']);
  });

  it('S-053 a brain that throws never reaches the socket: the connection stays and the next message works', async () => {
    let broken = 0;
    const lab = await startBridge({
      transport: 'socket',
      onTurn: async (turn) => {
        if (turn.message.content.startsWith('break')) {
          broken += 1;
          throw new Error('no');
        }
        await say(turn, 'fine');
      },
    });
    const before = lab.slack.sockets.sockets.length;
    for (let index = 0; index < 3; index += 1) lab.alice.says('#general', `@gateway break ${index}`);
    await lab.slack.until(() => broken === 3);
    const said = lab.alice.says('#rooms', '@gateway works');
    expect(await lab.answered(said)).toEqual(['fine']);
    await lab.idle();
    expect(lab.slack.sockets.sockets.filter((socket) => socket.closedAt !== null)).toEqual([]);
    expect(lab.slack.sockets.sockets.length).toBeLessThanOrEqual(Math.max(before, 2));
    expect(
      lab.slack.deliveries().every((delivery) => delivery.attempts.every((attempt) => attempt.outcome === 'acked')),
    ).toBe(true);
  });

  it('S-218 a steady stream is acknowledged to the last and worked off soon after', { timeout: 60_000 }, async () => {
    const count = Number(process.env['SLACK_STREAM_EVENTS'] ?? 120);
    const inner = new Quiet();
    const lab = await startBridge({ inner, settings: { status: 'off' } });
    const people = [lab.alice, lab.bob, lab.carol];
    const threads = people.map((person) => person.says('#general', '@gateway open'));
    for (let index = 0; index < count; index += 1) {
      people[index % 3]!.replies(threads[index % 3]!, `@gateway ${index}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await lab.slack.until(
      () => lab.slack.deliveries().every((delivery) => delivery.state === 'acked'),
      'all acknowledgements',
      20_000,
    );
    expect(lab.slack.deliveries().every((delivery) => delivery.attempts.length === 1)).toBe(true);
    await expect.poll(() => inner.heard, { timeout: 30_000 }).toBe(count + 3);
    await expect.poll(() => lab.adapter.report().queues.every((queue) => queue.depth === 0)).toBe(true);
  });

  it(
    'S-217 a hundred replaced connections leave no timer, socket or listener behind',
    { timeout: 60_000 },
    async () => {
      const warnings: string[] = [];
      const onWarning = (warning: Error) => void warnings.push(warning.message);
      process.on('warning', onWarning);
      onTestFinished(() => void process.off('warning', onWarning));
      const rotations = Number(process.env['SLACK_ROTATIONS'] ?? 60);
      const lab = await startBridge({ transport: 'socket', settings: { socket: { connections: 1 } } });
      const alive = () => lab.slack.sockets.open(lab.app).filter((socket) => socket.saidHello);
      const resources = () =>
        process
          .getActiveResourcesInfo()
          .filter((name) => name === 'Timeout' || name === 'TCPSocketWrap' || name === 'TCPServerWrap').length;
      const rotate = async () => {
        const [old] = alive();
        lab.slack.sockets.disconnect(old!, 'refresh_requested');
        await lab.slack.until(() => old!.closedAt !== null && alive().length === 1, 'a replaced connection');
      };
      for (let index = 0; index < 5; index += 1) await rotate();
      const before = resources();
      for (let index = 0; index < rotations; index += 1) await rotate();
      await expect.poll(resources, { timeout: 5_000 }).toBeLessThanOrEqual(before + 5);
      expect(lab.slack.sockets.highWater).toBeLessThanOrEqual(2);
      expect(warnings.filter((line) => line.includes('MaxListeners'))).toEqual([]);
      const said = lab.alice.says('#general', '@gateway still there');
      expect(await lab.answered(said)).toEqual(['echo: still there']);
    },
  );

  it('S-196 catch-up turns itself off where Slack lets the app read too little, and says so', async () => {
    const lines: string[] = [];
    const store = createMemoryStore();
    const lab = await startBridge({ store });
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.answered(said);
    await lab.stop();
    lab.slack.fault({
      method: 'conversations.replies',
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '45' } },
    });
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    await startBridge({ store, world: lab, sandbox: lab.sandbox, log });
    await expect.poll(() => lines.join('\n'), { timeout: 8_000 }).toContain('catch-up is off');
    expect(lab.slack.calls('conversations.replies').filter((call) => call.outcome === 'status')).toHaveLength(1);
  });
});

describe('reactions', () => {
  it('S-155 the waiting reaction is put on and taken off again, also when the turn fails', async () => {
    const seen: string[][] = [];
    const lab = await startBridge({
      settings: { ackReaction: 'eyes' },
      onTurn: async (turn) => {
        const message = lab.general.messages.find(
          (one) => one.ts === (turn.message.metadata as { slack_ts: string }).slack_ts,
        )!;
        await lab.slack.until(() => message.reactions.length > 0, 'the reaction');
        seen.push(message.reactions.map((one) => one.name));
        throw new Error('no');
      },
    });
    const said = lab.alice.says('#general', '@gateway hi');
    await lab.answered(said);
    const message = lab.general.messages.find((one) => one.ts === said.ts)!;
    await lab.slack.until(() => message.reactions.length === 0, 'no reaction');
    expect(seen).toEqual([['eyes']]);
  });

  it('S-155 the waiting reaction of a turn that a crash cut off is taken away with the notice about it', async () => {
    const store = createMemoryStore();
    const settings = { ackReaction: 'eyes' };
    const lab = await startBridge({
      store,
      settings,
      onTurn: async (turn) => {
        await say(turn, 'half an answer');
        await new Promise(() => undefined);
      },
    });
    const said = lab.alice.says('#general', '@gateway hi');
    const message = () => lab.general.messages.find((one) => one.ts === said.ts)!;
    await lab.answered(said);
    await lab.slack.until(() => message().reactions.length === 1, 'the reaction');
    // What a killed process leaves behind: the store as it stands now, with the record still in work.
    const left = await copyOf(store);
    await lab.stop();
    message().reactions = [{ name: 'eyes', users: [lab.bot.botUserId] }];
    const next = await startBridge({ world: lab, sandbox: lab.sandbox, store: left, settings });
    await next.slack.until(() => next.answers(said).includes('I was interrupted while answering this.'), 'a notice');
    await next.slack.until(() => message().reactions.every(({ users }) => users.length === 0), 'no reaction');
  });

  it('S-155 a stop sign on the thread stops the turn, for those who may; an arrow lets it go on', async () => {
    const cut: string[] = [];
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (turn.message.content !== 'work' || cut.length > 0) {
          await say(turn, `done ${turn.message.content}`);
          return;
        }
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => {
            cut.push(turn.message.content);
            resolve();
          });
        });
      },
    });
    const said = lab.alice.says('#general', '@gateway work');
    await lab.slack.until(() => lab.heard.includes('work'));
    const meanwhile = () => lab.answered(lab.bob.says('#rooms', '@gateway meanwhile'));
    lab.alice.reacts(said, 'tada');
    await meanwhile();
    expect(cut).toEqual([]);
    lab.alice.reacts(said, 'octagonal_sign');
    await expect.poll(() => cut).toEqual(['work']);
    lab.alice.replies(said, 'later');
    await meanwhile();
    expect(lab.heard).not.toContain('later');
    lab.alice.reacts(said, 'arrow_forward');
    // What was cut and had shown nothing runs again, then what came meanwhile.
    await lab.slack.until(() => lab.answers(said).includes('done later'));
    expect(lab.heard.filter((text) => text !== 'meanwhile')).toEqual(['work', 'work', 'later']);
  });
});

describe('files through the whole bridge', () => {
  it('S-140 a file without a word starts a turn, is quoted, and can be read again', async () => {
    const lab = await startBridge({
      onTurn: async (turn) => {
        const [file] = (turn.message.metadata as { slack_files: { id: string }[] }).slack_files;
        const read = (await turn.tools.executeToolCall('slack_read_file', { file_id: file!.id })) as { text: string };
        await say(turn, `it says ${read.text}`);
      },
    });
    const said = lab.alice.uploads('dm', [{ name: 'note.txt', bytes: 'remember the milk' }]);
    await lab.slack.until(() => lab.answers(said).includes('it says remember the milk'));
    expect(lab.heard[0]).toContain('[file: note.txt, text/plain, 17 bytes]\n```\nremember the milk\n```');
    lab.slack.check();
  });
});
