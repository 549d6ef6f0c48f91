import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { startDemo } from '../../src/gateway/demo.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { BIN } from '../support/acp/command.js';
import { ourCommand, startEditor } from '../support/acp/bench-client.js';
import { INSPECTOR_LINE, openInspector, type Holdings } from '../support/inspector.js';
import { startAcme } from '../support/slack/acme.js';
import type { Said } from '../support/slack/people.js';
import { PARTNER_KEY, frontDoor, helpdesk, pause, until } from '../support/whole-service.js';
import type { Figure, FigureRow } from './figure.js';

/** 600 and more for a real soak; a minute shows that it runs. */
const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 60);
const A2A_PER_SECOND = Number(process.env['SOAK_A2A_PER_SECOND'] ?? 5);
const SLACK_PER_SECOND = Number(process.env['SOAK_SLACK_PER_SECOND'] ?? 2);
const CHANNELS = 8;
/** Conversations on each side: a room more costs memory by design. With many of them that cost is what is seen. */
const CONVERSATIONS = Number(process.env['SOAK_CONVERSATIONS'] ?? 40);
/** What is not answered yet holds back what would be asked next: a busy machine gets less to do, and no backlog. */
const MAX_OPEN = 16;
/** What is opened and cached once, and no slope. */
const WARM_UP_SECONDS = Math.min(30, SECONDS / 3);
/** Idle connections of both sides are closed by then: what is left at rest belongs to nobody's load. */
const REST_SECONDS = Number(process.env['SOAK_REST_SECONDS'] ?? Math.min(110, SECONDS / 5));
const SAMPLE_MS = 1_000;
/** Looking through the whole heap holds the service up for a moment. */
const LOOK_MS = Math.min(10_000, (SECONDS * 1_000) / 20);
/** Kinds of object that there are fewer of are no leak worth a line. */
const GROWTH_SHOWN = 1_000;
const ERRORS_SHOWN = 5;
/** Below this many rooms more, their share of the heap is lost in the rest. */
const ROOMS_COUNTED = 200;

interface Sample {
  readonly minute: number;
  readonly descriptors: number;
  readonly timers: number;
}

interface Look extends Holdings {
  readonly minute: number;
}

/**
 * The compiled service with everything on (Slack by socket, A2A, an ACP editor attached from a process of its own) under
 * a steady mix: what is answered, and whether descriptors, timers, listeners and heap of the service stay where they
 * are. Heap and listeners are counted in the process itself, after a collection; while it works, and at rest before and
 * after that, when no more is left than there was.
 */
export async function run(): Promise<Figure> {
  const folder = mkdtempSync(path.join(tmpdir(), 'band-gateway-soak-'));
  const demo = await startDemo({ port: 0, dataDir: null }, { clock: systemClock, log: silentLogger });
  const acme = await startAcme({ rates: false, app: { socketMode: true } });
  const { restUrl, wsUrl } = demo.sandbox;
  // Locks and the editor's socket lie in the folder for temporary files: one of its own keeps other runs out.
  const env = { PATH: process.env['PATH'], TMPDIR: path.join(folder, 'tmp') };
  mkdirSync(env.TMPDIR);
  writeFileSync(
    path.join(folder, 'gateway.yaml'),
    `platform: { rest_url: ${restUrl}, ws_url: ${wsUrl} }
data_dir: data
http: { port: 0 }
agents:
${helpdesk(acme)}
${frontDoor()}
  editor:
    agent_id: ${DEMO.editor.id}
    api_key: ${DEMO.editor.apiKey}
    bridge: acp
    acp: { peers: [echo], context_preamble: never }
`,
  );
  const service = spawn(process.execPath, ['--inspect=127.0.0.1:0', BIN, 'start'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = { out: '', err: '', errors: 0, warnings: 0 };
  service.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()));
  let tail = '';
  service.stderr.on('data', (chunk: Buffer) => {
    const lines = (tail + chunk.toString()).split('\n');
    tail = lines.pop() ?? '';
    if (!INSPECTOR_LINE.test(said.err)) said.err += chunk.toString();
    for (const line of lines) {
      if (/"level":[56]0/.test(line)) {
        said.errors += 1;
        if (said.errors <= ERRORS_SHOWN) console.error(line);
      }
      if (line.includes('Warning:')) said.warnings += 1;
    }
  });
  const urlOf = () => /^Gateway at (\S+) for /.exec(said.out)?.[1];
  await until('the service', () => urlOf() !== undefined);
  const url = urlOf() ?? '';
  await until('readiness', async () => (await fetch(`${url}/readyz`)).ok);
  const editor = await startEditor(ourCommand(), {
    ...env,
    BAND_AGENT_ID: DEMO.editor.id,
    BAND_API_KEY: DEMO.editor.apiKey,
    BAND_REST_URL: restUrl,
    BAND_WS_URL: wsUrl,
  });

  const inspector = await openInspector(INSPECTOR_LINE.exec(said.err)?.[1] ?? '');

  try {
    const { slack, team, alice, bot } = acme;
    const channels = Array.from({ length: CHANNELS }, (_, n) =>
      slack.channel(team, { name: `soak-${n}`, members: [alice.id, bot.botUserId] }),
    );
    let end = 0;
    const runs = () => performance.now() < end;
    const failed = { a2a: 0, acp: 0 };
    const done = { a2a: 0, acp: 0 };

    let asked = 0;
    const askA2a = async (): Promise<void> => {
      const open = new Set<Promise<void>>();
      while (runs()) {
        const n = asked++;
        const one = a2aSend(url, 'echo', `client ${n}`, PARTNER_KEY, `m-${n}`, `context-${n % CONVERSATIONS}`)
          .then(({ text }) => {
            if (text === `echo: client ${n}`) done.a2a += 1;
            else failed.a2a += 1;
          })
          .catch(() => void (failed.a2a += 1))
          .finally(() => open.delete(one));
        open.add(one);
        await pause(1_000 / A2A_PER_SECOND);
        while (open.size >= MAX_OPEN) await Promise.race(open);
      }
      await Promise.all(open);
    };
    const written: Said[] = [];
    /** How far a message without an answer has come. */
    const whereIs = (one: Said, text: string): string => {
      const deliveries = slack.deliveries().filter(({ body }) => JSON.stringify(body).includes(text));
      const rows = demo.sandbox.dev.state().rooms.flatMap(({ messages }) => messages);
      return JSON.stringify({
        text,
        deliveries: deliveries.map(({ state, attempts }) => [state, attempts.map(({ outcome }) => outcome)]),
        inRooms: rows.filter(({ content }) => content.includes(text)).map(({ content }) => content),
        inThread: slack
          .botMessages(one.channel, one.threadTs)
          .map(({ shown }) => shown)
          .slice(-3),
      });
    };
    const answersTo = (one: Said, n: number) =>
      slack.botMessages(one.channel, one.threadTs).filter(({ text }) => text.endsWith(`person ${n}.`)).length;
    const writeInSlack = async (): Promise<void> => {
      while (runs()) {
        const n = written.length;
        const before = written[n - MAX_OPEN];
        while (before && runs() && answersTo(before, n - MAX_OPEN) === 0) await pause(100);
        const text = `@gateway person ${n}.`;
        const thread = written[n % CONVERSATIONS];
        const isFirst = n < CONVERSATIONS || !thread;
        written.push(isFirst ? alice.says(channels[n % CHANNELS]?.id ?? '', text) : alice.replies(thread, text));
        await pause(1_000 / SLACK_PER_SECOND);
      }
    };
    const sessionId = await editor.newSession();
    const prompt = async (): Promise<void> => {
      while (runs()) {
        await editor.prompt(sessionId, `editor ${done.acp}`).then(
          () => (done.acp += 1),
          () => (failed.acp += 1),
        );
        await pause(500);
      }
    };
    const begun = performance.now();
    const minute = () => (performance.now() - begun) / 60_000;
    const samples: Sample[] = [];
    const looks: Look[] = [];
    const look = async (): Promise<void> => {
      while (runs()) {
        looks.push({ minute: minute(), ...(await inspector.holdings()) });
        await pause(LOOK_MS);
      }
    };
    const watch = async (): Promise<void> => {
      while (runs()) {
        // A connection that both sides let go of at the same moment costs one sample.
        await measure(url, minute()).then(
          (sample) => samples.push(sample),
          () => undefined,
        );
        await pause(SAMPLE_MS);
      }
    };
    const work = async (seconds: number, ...watched: readonly (() => Promise<void>)[]): Promise<void> => {
      end = performance.now() + seconds * 1_000;
      await Promise.all([askA2a, writeInSlack, prompt, ...watched].map((one) => one()));
    };
    const atRest = async () => {
      await pause(REST_SECONDS * 1_000);
      const kinds = await inspector.constructors(1);
      const rooms = demo.sandbox.dev.state().rooms.length;
      return { kinds, rooms, ...(await measure(url, minute())), ...(await inspector.holdings()) };
    };
    await work(WARM_UP_SECONDS);
    const before = await atRest();
    await work(SECONDS, watch, look);
    const after = await atRest();
    const unanswered = () => written.filter((one, n) => answersTo(one, n) === 0).length;
    await until('answers in Slack', () => unanswered() === 0, 30_000).catch(() => undefined);
    for (const [n, one] of written.entries()) if (answersTo(one, n) === 0) console.error(whereIs(one, `person ${n}.`));
    const repeated = written.filter((one, n) => answersTo(one, n) > 1).length;

    return {
      figure: `Soak of the whole service: ${A2A_PER_SECOND} A2A tasks and ${SLACK_PER_SECOND} Slack messages a second and an editor, ${SECONDS} s`,
      rows: [
        { name: 'A2A tasks, Slack messages and prompts', value: done.a2a + written.length + done.acp, unit: '' },
        { name: 'A2A tasks not answered', value: failed.a2a, unit: '', aim: '0' },
        { name: 'Slack messages without an answer', value: unanswered(), unit: '', aim: '0' },
        { name: 'Slack messages answered twice', value: repeated, unit: '', aim: '0' },
        { name: 'editor prompts failed', value: failed.acp, unit: '', aim: '0' },
        { name: 'errors in the log', value: said.errors, unit: 'lines', aim: '0' },
        { name: 'warnings of Node (leaking listeners and the like)', value: said.warnings, unit: 'lines', aim: '0' },
        ...slopes('file descriptors', samples, ({ descriptors }) => descriptors, ''),
        ...slopes('timers', samples, ({ timers }) => timers, ''),
        ...slopes('listeners of all emitters', looks, ({ listeners }) => listeners, ''),
        ...slopes('listeners of the process', looks, ({ processListeners }) => processListeners, ''),
        ...slopes('listeners for an abort', looks, ({ abortListeners }) => abortListeners, ''),
        ...slopes('emitters with listeners', looks, ({ emitters }) => emitters, ''),
        {
          name: 'places in undici’s pools, most (at most 64 an origin)',
          value: Math.max(...looks.map(({ poolPlaces }) => poolPlaces)),
          unit: '',
        },
        ...slopes('heap after a collection', looks, ({ heapMb }) => heapMb, 'MB'),
        ...slopes('the same, second half alone', looks.slice(looks.length / 2), ({ heapMb }) => heapMb, 'MB'),
        ...more('file descriptors', before, after, ({ descriptors }) => descriptors, ''),
        ...more('timers', before, after, ({ timers }) => timers, ''),
        ...more('listeners of all emitters', before, after, ({ listeners }) => listeners, ''),
        ...more('listeners of the process', before, after, ({ processListeners }) => processListeners, ''),
        ...more('listeners for an abort', before, after, ({ abortListeners }) => abortListeners, ''),
        ...more('heap', before, after, ({ heapMb }) => heapMb, 'MB'),
        { name: 'rooms more', value: after.rooms - before.rooms, unit: '' },
        ...(after.rooms - before.rooms < ROOMS_COUNTED
          ? []
          : [
              {
                name: 'heap per room more',
                value: ((after.heapMb - before.heapMb) * 1_024) / (after.rooms - before.rooms),
                unit: 'KB',
              },
            ]),
        ...growth(before.kinds, after.kinds),
      ],
    };
  } finally {
    // The service does not end while somebody looks into it.
    inspector.close();
    await editor.stop();
    service.kill('SIGTERM');
    if (service.exitCode === null) await once(service, 'exit');
    await acme.slack.stop();
    await demo.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(url: string, minute: number): Promise<Sample> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const value = (pattern: string) => Number(new RegExp(`^${pattern} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    minute,
    descriptors: value('process_open_fds'),
    timers: value('nodejs_active_resources\\{type="Timeout"\\}'),
  };
}

/** What there is much more of at the end, by the name of the constructor. */
function growth(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): FigureRow[] {
  return Object.entries(after)
    .map(([kind, count]) => ({ kind, more: count - (before[kind] ?? 0) }))
    .filter(({ more }) => more >= GROWTH_SHOWN)
    .sort((a, b) => b.more - a.more)
    .map(({ kind, more }) => ({ name: `more objects of ${kind}`, value: more, unit: '' }));
}

function more<T>(name: string, before: T, after: T, valueOf: (one: T) => number, unit: string): FigureRow[] {
  return [
    { name: `${name} at rest, before the work`, value: valueOf(before), unit },
    { name: `${name} at rest, more after it`, value: valueOf(after) - valueOf(before), unit, aim: '≈ 0' },
  ];
}

function slopes<T extends { readonly minute: number }>(
  name: string,
  samples: readonly T[],
  valueOf: (sample: T) => number,
  unit: string,
): FigureRow[] {
  const xs = samples.map(({ minute }) => minute);
  const ys = samples.map(valueOf);
  const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const [x, y] = [mean(xs), mean(ys)];
  const above = xs.reduce((sum, one, n) => sum + (one - x) * ((ys[n] ?? y) - y), 0);
  const below = xs.reduce((sum, one) => sum + (one - x) ** 2, 0);
  return [
    { name: `${name}, mean`, value: y, unit },
    { name: `${name}, slope`, value: below === 0 ? 0 : above / below, unit: `${unit}/min`, aim: '≈ 0' },
  ];
}
