import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent as HttpAgent, request } from 'undici';
import { DEMO } from '../../src/sandbox/index.js';
import { buildPackage, builtProgram } from './bench-process.js';

/** A sandbox of the built package in another process, and the demo person in it, reduced to what benches need. */
export interface BenchSandbox {
  readonly restUrl: string;
  readonly wsUrl: string;
  /** Rooms of the person with the demo's echo agent in each. */
  makeRooms(count: number): Promise<string[]>;
  /** A text for the echo agent. */
  post(roomId: string, content: string): Promise<void>;
  /** The echo agent's socket is gone without a close frame. */
  dropAgent(): Promise<void>;
  stop(): Promise<void>;
}

export async function startBenchSandbox(): Promise<BenchSandbox> {
  await buildPackage();
  const child = fork(builtProgram('bench-sandbox'), { execArgv: [] });
  const [{ restUrl, wsUrl }] = (await once(child, 'message')) as [{ restUrl: string; wsUrl: string }];
  const dispatcher = new HttpAgent({ connections: 32 });
  const call = async (path: string, body: unknown) => {
    const answer = await request(restUrl + path, {
      method: 'POST',
      headers: { 'x-api-key': DEMO.user.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      dispatcher,
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${path} answered ${answer.statusCode} ${text}`);
    return JSON.parse(text) as { data: { id: string } };
  };
  const makeRoom = async () => {
    const { data } = await call('/api/v1/me/chats', { chat: {} });
    await call(`/api/v1/me/chats/${data.id}/participants`, { participant: { participant_id: DEMO.echo.id } });
    return data.id;
  };
  return {
    restUrl,
    wsUrl,
    async makeRooms(count) {
      const rooms: string[] = [];
      while (rooms.length < count) {
        rooms.push(...(await Promise.all(Array.from({ length: Math.min(32, count - rooms.length) }, makeRoom))));
      }
      return rooms;
    },
    async post(roomId, content) {
      await call(`/api/v1/me/chats/${roomId}/messages`, { message: { content, mentions: [{ id: DEMO.echo.id }] } });
    },
    async dropAgent() {
      await call('/dev/v1/sockets/close', { principal_id: DEMO.echo.id, code: 1006 });
    },
    async stop() {
      await dispatcher.close();
      child.disconnect();
      await once(child, 'exit');
    },
  };
}
