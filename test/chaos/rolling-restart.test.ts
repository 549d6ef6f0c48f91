import { afterEach, describe, expect, it } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import type { AcpCommand } from '../support/acp/command.js';
import { killPrograms } from '../support/program.js';
import type { Said } from '../support/slack/people.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/whole-service.js';
import { loadTranscript, send, stream, useEditor, type Ended, type Prompted } from './restart-load.js';
import { startRestartWorld, type RestartWorld } from './restart-world.js';

/** Restarts per test, and what each kind of client asks per restart; raise them for a longer run. */
const ROUNDS = Number(process.env['RESTART_ROUNDS'] ?? 2);
const PER_ROUND = Number(process.env['RESTART_MESSAGES'] ?? 6);
const CHANNELS = 4;
const PATIENCE_MS = 30_000 + ROUNDS * 5_000;
/** What an editor may be told about a prompt that a restart met; it asks again then. */
const UNDERSTOOD = ['answered', 'gateway_lost', 'platform_unavailable', 'agent_already_running', 'post_unconfirmed'];

afterEach(killPrograms);

describe.each([
  ['SIGTERM', 'http', 0],
  ['SIGTERM', 'socket', 0],
  ['SIGKILL', 'http', 'SIGKILL'],
] as const)('restarts by %s with all bridges busy, Slack by %s', (signal, transport, ending) => {
  it(
    `A-327 S-197 P-130 lose nothing that was accepted and do nothing twice (${ROUNDS} rounds)`,
    async () => {
      const cwd = await tempFolder();
      const world = await startRestartWorld(cwd, transport);
      try {
        const { acme } = world;
        const channels = Array.from({ length: CHANNELS }, (_, n) =>
          acme.slack.channel(acme.team, { name: `r-${n}`, members: [acme.alice.id, acme.bot.botUserId] }),
        );
        const tasks: Promise<Ended>[] = [];
        const written: { readonly said: Said; readonly text: string }[] = [];
        const editors = new Map<string, { sessionId: string; prompts: Prompted[] }>();

        for (let round = 0; round < ROUNDS; round += 1) {
          const program = await world.start();
          const deadline = Date.now() + PATIENCE_MS;
          const names = Array.from({ length: PER_ROUND }, (_, n) => `${round}-${n}`);
          const opened = await Promise.all(['left', 'right'].map((name) => openEditor(world, name, round, editors)));
          const begun = names.flatMap((name) => [
            send(world, `send-${name}`, deadline),
            stream(world, `stream-${name}`, deadline),
          ]);
          tasks.push(...begun);
          for (const [n, name] of names.entries()) {
            const text = `slack-${name}`;
            const thread = written.find(({ said }) => said.channel === channels[n % CHANNELS]?.id)?.said;
            const inThread = thread !== undefined && n % 2 === 1;
            const said = inThread
              ? acme.alice.replies(thread, `@gateway ${text}`)
              : acme.alice.says(channels[n % CHANNELS]?.id ?? '', `@gateway ${text}`);
            written.push({ said, text });
          }
          // In the middle of it: some are answered, some are under way, some have not arrived.
          await Promise.all([Promise.race(begun), opened[0]?.user.answered(1)]);
          program.kill(signal);
          expect(await program.ended).toBe(ending);
          // Nobody but the editors themselves answers now, and they do.
          for (const { user } of opened) await user.answered(1);
          for (const { name, user } of opened) {
            await user.close();
            editors.get(name)?.prompts.push(...user.prompts);
          }
        }

        const program = await world.start();
        const ended = await Promise.all(tasks);
        for (const { text, state, answer } of ended) {
          expect({ state, answer }, text).toEqual({ state: 'TASK_STATE_COMPLETED', answer: `echo: ${text}` });
        }
        if (signal === 'SIGTERM') expect(ended.filter(({ cut }) => cut > 0)).toEqual([]);
        expect(asked(world.postedBy(DEMO.gateway.id))).toEqual(ended.map(({ text }) => text).sort());

        await slackAnswers(world, written);
        expect(asked(world.postedBy(DEMO.helpdesk.id))).toEqual(written.map(({ text }) => text).sort());

        for (const [name, { sessionId, prompts }] of editors) {
          expect(prompts.filter(({ outcome }) => !UNDERSTOOD.includes(outcome))).toEqual([]);
          await transcriptIsWhole(await world.openEditor(), sessionId, prompts, name);
        }
        program.kill();
        expect(await program.ended).toBe(0);
        acme.slack.check();
      } finally {
        killPrograms();
        await world.stop();
      }
    },
    120_000 + ROUNDS * 20_000,
  );
});

it('P-155 a service that comes back while an editor’s command runs its agent is ready, and the editor goes on', async () => {
  const world = await startRestartWorld(await tempFolder(), 'socket');
  try {
    const first = await world.start();
    const { user } = await openEditor(world, 'stays', 0, new Map());
    await user.answered(1);
    first.kill();
    await first.ended;
    await user.answered(1);
    const second = await world.start();
    const report = await (await fetch(world.url, { headers: { accept: 'application/json' } })).json();
    expect(report).toMatchObject({
      agents: [{ state: 'running' }, { state: 'running' }, { name: 'editor', state: 'elsewhere' }],
    });
    await user.answered(1);
    await user.close();
    expect(user.prompts.filter(({ outcome }) => !UNDERSTOOD.includes(outcome))).toEqual([]);
    second.kill();
    expect(await second.ended).toBe(0);
  } finally {
    killPrograms();
    await world.stop();
  }
}, 60_000);

/** A window of this editor: with a new thread at first, with the same one after each restart. */
async function openEditor(
  world: RestartWorld,
  name: string,
  round: number,
  editors: Map<string, { sessionId: string; prompts: Prompted[] }>,
) {
  const command = await world.openEditor();
  const known = editors.get(name);
  const sessionId = known?.sessionId ?? (await command.newSession());
  if (known) await loadTranscript(command, sessionId);
  else editors.set(name, { sessionId, prompts: [] });
  return { name, user: useEditor(command, sessionId, `${name}-${round}`) };
}

/** The last words of messages, sorted: what was asked in the agent's name. */
function asked(messages: readonly { readonly content: string }[]): string[] {
  return messages.map(({ content }) => content.split(' ').at(-1) ?? '').sort();
}

/** Each of Alice's messages is answered in its thread, once. */
async function slackAnswers(
  { acme: { slack, app } }: RestartWorld,
  written: readonly { readonly said: Said; readonly text: string }[],
): Promise<void> {
  await slack.until(() => slack.events.inFlight === 0, 'deliveries', 30_000);
  // What nobody was there to take comes again, sooner than Slack's schedule would have it.
  if (app.socketMode) {
    await slack.until(() => slack.sockets.open(app).some((socket) => socket.saidHello), 'a socket', 30_000);
  }
  const missed = slack.deliveries().filter(({ state }) => state !== 'acked');
  for (const { body } of missed) slack.deliverRaw(app, body);
  const answersTo = ({ said, text }: (typeof written)[number]) =>
    slack.botMessages(said.channel, said.threadTs).filter(({ shown }) => shown.endsWith(`echo: ${text}`));
  await until('answers in Slack', () => written.every((one) => answersTo(one).length > 0), 30_000).catch(
    () => undefined,
  );
  await slack.settled();
  const wrong = written
    .filter((one) => answersTo(one).length !== 1)
    .map(({ said, text }) => ({
      text,
      inThread: slack.botMessages(said.channel, said.threadTs).map(({ shown }) => shown),
    }));
  expect(wrong).toEqual([]);
}

/** What was answered stands in the session once, with its answer; what broke off stands there at most once. */
async function transcriptIsWhole(
  command: AcpCommand,
  sessionId: string,
  prompts: readonly Prompted[],
  name: string,
): Promise<void> {
  const { asked: shown, said } = await loadTranscript(command, sessionId);
  expect(new Set(shown).size, `${name}: a prompt stands there twice`).toBe(shown.length);
  expect(shown, name).toEqual(
    expect.arrayContaining(prompts.filter(({ outcome }) => outcome === 'answered').map(({ text }) => text)),
  );
  expect(
    prompts.map(({ text }) => text),
    name,
  ).toEqual(expect.arrayContaining([...shown]));
  expect([...said].sort(), name).toEqual(shown.map((text) => `echo: ${text}`).sort());
  await command.kill();
}
