import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { callRest } from '../support/rest-call.js';
import { tempFolder } from '../support/temp-folder.js';

const PROGRAM = fileURLToPath(new URL('../support/programs/killable-agent.ts', import.meta.url));
const ROOMS = 20;
const MESSAGES = 500;
/** 200 for a long run. */
const KILLS = Number(process.env['AGENT_KILLS'] ?? 3);

it(
  'R-096 R-286 an agent killed at random points loses nothing: after a restart all is answered, in order, and nothing is left in processing',
  async () => {
    const sandbox = await startSandbox({ port: 0 });
    const lockFolder = await tempFolder();
    const asPerson = async (method: string, path: string, body?: unknown) => {
      const answer = await callRest(sandbox.restUrl, method, `/api/v1/me${path}`, DEMO.user.apiKey, body);
      expect(answer.status).toBeLessThan(300);
      return answer.body as { data: { id: string } };
    };
    const rooms: string[] = [];
    for (let n = 0; n < ROOMS; n += 1) {
      const { data } = await asPerson('POST', '/chats', { chat: {} });
      await asPerson('POST', `/chats/${data.id}/participants`, { participant: { participant_id: DEMO.echo.id } });
      rooms.push(data.id);
    }
    const posted = new Map<string, string[]>(rooms.map((roomId) => [roomId, []]));
    let sent = 0;
    const post = async () => {
      const roomId = rooms[sent % ROOMS]!;
      const text = `message ${sent}`;
      sent += 1;
      await asPerson('POST', `/chats/${roomId}/messages`, {
        message: { content: text, mentions: [{ id: DEMO.echo.id }] },
      });
      posted.get(roomId)!.push(text);
    };
    const start = async () => {
      const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM, sandbox.restUrl, sandbox.wsUrl, lockFolder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exited = once(child, 'exit');
      await once(child.stdout, 'data');
      return { child, exited };
    };

    for (let kill = 0; kill < KILLS; kill += 1) {
      const { child, exited } = await start();
      const share = Math.ceil(MESSAGES / (KILLS + 1));
      const posting = (async () => {
        for (let n = 0; n < share && sent < MESSAGES; n += 1) await post();
      })();
      await sleep(Math.random() * 600);
      child.kill('SIGKILL');
      await exited;
      await posting;
    }
    while (sent < MESSAGES) await post();
    const { child, exited } = await start();

    const open = () =>
      sandbox.dev
        .state()
        .rooms.flatMap(({ messages }) => messages)
        .filter(({ senderId, deliveries }) => {
          // A message that the agent has not been handed yet has no delivery.
          const delivery = deliveries[DEMO.echo.id] as { status: string } | undefined;
          return senderId === DEMO.user.id && delivery?.status !== 'processed';
        });
    const deadline = Date.now() + 60_000;
    while (open().length > 0 && Date.now() < deadline) await sleep(50);
    expect(open().map(({ content, deliveries }) => ({ content, deliveries }))).toEqual([]);

    for (const room of sandbox.dev.state().rooms) {
      const expected = posted.get(room.id);
      if (!expected) continue;
      const answers = room.messages
        .filter(({ senderId }) => senderId === DEMO.echo.id)
        .map(({ content }) => /answer to (message \d+)/.exec(content)?.[1] ?? content);
      expect([...new Set(answers)]).toEqual(expected);
      // A repeat needs a death of its own.
      expect(answers.length - expected.length).toBeLessThanOrEqual(KILLS);
    }
    child.kill('SIGTERM');
    const [code] = (await exited) as [number | null];
    expect(code).toBe(0);
    await sandbox.close();
  },
  60_000 + KILLS * 4_000,
);
