import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { sandboxAgent } from '../support/sandbox-agent.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { PARTNER_KEY, demoWorld, frontDoor, helpdesk, pause, pointSlackAt, startService, until } from './service.js';

const IDLE_SOCKETS = Number(process.env['IDLE_SOCKETS'] ?? 1_000);
const ATTACKERS = Number(process.env['ATTACKERS'] ?? 4);
const HEADER_TIMEOUT_MS = 1_000;
const REQUEST_TIMEOUT_MS = 2_000;
/** Long enough that all idle sockets are there at one time. */
const IDLE_TIMEOUT_MS = 6_000;
/** The server looks every two seconds; the rest is a busy machine. */
const PATIENCE_MS = 6_000;
const MIB = 1_024 * 1_024;

const DOORS = [
  '/',
  '/healthz',
  '/readyz',
  '/metrics',
  '/nothing',
  '/slack/main/events',
  '/slack/main/interactions',
  '/slack/main/commands',
  '/agents/echo',
  '/agents/echo/message:send',
  '/agents/echo/.well-known/agent-card.json',
  '/peers',
];

const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
};

/** Takes the first kilobytes of an answer into a receive buffer of four, and nothing more. */
const LAZY_READER = `
import socket, sys, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect(("127.0.0.1", int(sys.argv[1])))
s.sendall(sys.argv[2].encode())
got = b""
while b'"status"' not in got:
    got += s.recv(1024)
print(got.decode(), flush=True)
time.sleep(120)
`;

/** A socket that a test writes to byte by byte. */
interface Attacker {
  readonly socket: Socket;
  readonly answer: () => string;
  /** Milliseconds until the other side closed. */
  readonly closed: Promise<number>;
}

function attack(port: number): Attacker {
  const begun = performance.now();
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  socket.on('error', () => undefined); // a reset is an ending too
  onTestFinished(() => void socket.destroy());
  const closed = new Promise<number>((resolve) => {
    socket.once('close', () => {
      resolve(performance.now() - begun);
    });
  });
  return { socket, answer: () => answer, closed };
}

/** Writes a byte of `text` every `everyMs`, until the socket is closed. */
function drip({ socket }: Attacker, text: string, everyMs: number): void {
  let at = 0;
  const timer = setInterval(() => {
    if (socket.writable && at < text.length) socket.write(text[at++] ?? '');
  }, everyMs);
  socket.once('close', () => {
    clearInterval(timer);
  });
}

async function startTarget(headerTimeoutMs = HEADER_TIMEOUT_MS, top = '') {
  const { sandbox } = await demoWorld();
  const acme = await startAcme({ rates: false });
  onTestFinished(() => acme.slack.stop());
  const http = `http: { port: 0, header_timeout_ms: ${headerTimeoutMs}, request_timeout_ms: ${Math.max(headerTimeoutMs, REQUEST_TIMEOUT_MS)}, keep_alive_ms: 1000${top} }`;
  const service = await startService({
    folder: await tempFolder(),
    sandbox,
    top: http,
    agents: [
      helpdesk(acme),
      frontDoor(`      stream: { buffer_bytes: 65536 }
      peers: { overrides: { editor: { completion: settle, settle_ms: 1500 } } }`),
    ],
  });
  pointSlackAt(acme, service.url);
  await service.ready();
  const stillWorks = async () => {
    expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
    expect(await a2aSend(service.url, 'echo', 'still here', PARTNER_KEY)).toMatchObject({ text: 'echo: still here' });
    const said = acme.alice.says('#general', '@gateway still here?');
    await acme.slack.until(() => acme.slack.botMessages(said.channel, said.threadTs).length === 1, 'a Slack answer');
  };
  return { service, sandbox, acme, stillWorks, port: service.port };
}

describe('clients that mean no good', () => {
  it('every door ends a request whose headers, or whose body, come a byte at a time, and goes on serving', async () => {
    const { port, stillWorks } = await startTarget();
    const key = `x-api-key: ${PARTNER_KEY}\r\n`;
    const slowHeaders = DOORS.map((path) => {
      const attacker = attack(port);
      drip(attacker, `POST ${path} HTTP/1.1\r\nhost: x\r\n${'x-a: b\r\n'.repeat(1_000)}`, 100);
      return { path, attacker };
    });
    const slowBodies = DOORS.map((path) => {
      const attacker = attack(port);
      attacker.socket.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\n${key}content-type: application/json\r\ncontent-length: 10000\r\n\r\n`,
      );
      drip(attacker, ' '.repeat(10_000), 100);
      return { path, attacker };
    });
    await stillWorks();
    for (const { path, attacker } of slowHeaders) {
      expect(await attacker.closed, path).toBeLessThan(HEADER_TIMEOUT_MS + PATIENCE_MS);
      expect(attacker.answer(), path).toMatch(/^HTTP\/1\.1 408 /);
    }
    for (const { path, attacker } of slowBodies) {
      expect(await attacker.closed, path).toBeLessThan(REQUEST_TIMEOUT_MS + PATIENCE_MS);
      expect(attacker.answer(), path).toMatch(/^HTTP\/1\.1 4\d\d /);
    }
    await stillWorks();
  }, 40_000);

  it('every door refuses 100 KB of headers with 431 and 10 MB of body with an answer, and keeps none of it', async () => {
    const { port, stillWorks } = await startTarget();
    await stillWorks();
    for (const path of DOORS) {
      const attacker = attack(port);
      attacker.socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nx-big: ${'a'.repeat(100_000)}\r\n\r\n`);
      await attacker.closed;
      expect(attacker.answer(), path).toMatch(/^HTTP\/1\.1 431 /);
    }

    const piece = Buffer.alloc(64 * 1_024, ' ');
    const ten = (10 * MIB) / piece.length;
    const giant = async (path: string, isChunked: boolean): Promise<string> => {
      const attacker = attack(port);
      const { socket } = attacker;
      const length = isChunked ? 'transfer-encoding: chunked' : `content-length: ${10 * MIB}`;
      const type = `x-api-key: ${PARTNER_KEY}\r\ncontent-type: application/json`;
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n${type}\r\n${length}\r\n\r\n`);
      for (let n = 0; n < ten && socket.writable; n += 1) {
        if (isChunked) socket.write(`${piece.length.toString(16)}\r\n`);
        const isRoom = socket.write(piece);
        if (isChunked) socket.write('\r\n');
        if (!isRoom) {
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), attacker.closed]);
        }
      }
      if (isChunked && socket.writable) socket.write('0\r\n\r\n');
      await until(`an answer of ${path}`, () => attacker.answer() !== '' || socket.destroyed, PATIENCE_MS);
      socket.destroy();
      return attacker.answer().split(' ')[1] ?? 'no answer';
    };
    const attackAllDoors = async () => {
      for (const path of DOORS) {
        const answers = await Promise.all(
          Array.from({ length: ATTACKERS }, async (_, n) => await giant(path, n % 2 === 0)),
        );
        // A sender that does not stop may see the connection end before it reads what it was told.
        for (const status of answers) expect(['401', '404', '405', '413', '400', 'no answer'], path).toContain(status);
        expect(answers.filter((status) => status !== 'no answer').length, path).toBeGreaterThan(0);
      }
    };
    /** Mebibytes in use, once everything that nobody holds is gone. */
    const held = async () => {
      await stillWorks();
      collectGarbage();
      await pause(50);
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return (heapUsed + arrayBuffers) / MIB;
    };
    await attackAllDoors();
    const before = await held();
    await attackAllDoors();
    await until('the memory to be free again', async () => (await held()) - before < 10, 15_000);
  }, 60_000);

  it(`${IDLE_SOCKETS} sockets that say nothing slow nobody down, are closed in time, and one over the limit is refused`, async () => {
    const { port, service, stillWorks } = await startTarget(IDLE_TIMEOUT_MS, `, max_connections: ${IDLE_SOCKETS + 50}`);
    const idle = Array.from({ length: IDLE_SOCKETS }, () => attack(port));
    await until('all connections', () => idle.every(({ socket }) => !socket.connecting));
    const times: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      const begun = performance.now();
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
      times.push(performance.now() - begun);
    }
    times.sort((a, b) => a - b);
    expect(times[10]).toBeLessThan(500);
    await stillWorks();
    // The crowd comes while all of them are there.
    const crowd = Array.from({ length: 200 }, () => attack(port));
    await until(
      'those over the limit to be refused',
      () => crowd.filter(({ socket }) => socket.destroyed).length >= 100,
    );
    for (const { socket } of crowd) socket.destroy();
    for (const { closed } of idle) expect(await closed).toBeLessThan(IDLE_TIMEOUT_MS + PATIENCE_MS + 4_000);
    await stillWorks();
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(Number(/^band_http_connections_refused_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(100);
  }, 60_000);

  it('a reader of a stream that stops reading is cut off, and its task goes on to its end', async (context) => {
    if (spawnSync('python3', ['--version']).status !== 0)
      context.skip('the reader with a small window is a Python program');
    const { sandbox, port, service } = await startTarget();
    const big = 'y'.repeat(60_000);
    let sent = 0;
    const author = sandboxAgent(sandbox, {
      agentId: DEMO.editor.id,
      apiKey: DEMO.editor.apiKey,
      adapter: new GenericAdapter(async ({ message, tools }) => {
        for (sent = 0; sent < 80; sent += 1) await tools.sendMessage(`${sent} ${big}`, [{ id: message.senderId }]);
        await tools.sendMessage('the end', [{ id: message.senderId }]);
      }),
    });
    await author.start();
    onTestFinished(async () => {
      await author.stop();
    });
    const params = { message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'write' }] } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params });
    const head = `POST /agents/editor HTTP/1.1\r\nhost: x\r\nx-api-key: ${PARTNER_KEY}\r\na2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const reader = spawn('python3', ['-c', LAZY_READER, String(port), head + body], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => {
      reader.kill('SIGKILL');
    });
    const first = await new Promise<string>((resolve) => {
      reader.stdout.once('data', (chunk: Buffer) => {
        resolve(chunk.toString());
      });
    });
    expect(first).toContain('text/event-stream');
    const metric = async () => await (await fetch(`${service.url}/metrics`)).text();
    await until('the cut', async () => (await metric()).includes('band_a2a_streams_cut_total 1'), 25_000);
    const taskId = /"id":"([0-9a-f-]{36})"/.exec(first)?.[1] ?? '';
    const state = async (): Promise<string> => {
      const asked = JSON.stringify({
        jsonrpc: '2.0',
        id: 2,
        method: 'GetTask',
        params: { id: taskId, historyLength: 0 },
      });
      const answer = await fetch(`${service.url}/agents/editor`, {
        method: 'POST',
        headers: { 'x-api-key': PARTNER_KEY, 'a2a-version': '1.0', 'content-type': 'application/json' },
        body: asked,
      });
      return await answer.text();
    };
    await until('the end of the task', async () => (await state()).includes('TASK_STATE_COMPLETED'), 25_000);
    expect(sent).toBe(80);
    // Not by `toContain`: the failure would print megabytes.
    expect((await state()).includes('the end')).toBe(true);
    expect((await metric()).includes('band_a2a_streams 0')).toBe(true);
  }, 60_000);
});
