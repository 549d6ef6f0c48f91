import { Socket } from 'phoenix';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { DEMO } from '../../../src/sandbox/index.js';
import { sandboxLab } from '../../support/sandbox-lab.js';

const { echo: ECHO } = DEMO;

describe('the official Phoenix client', () => {
  it('joins, hears pushes, joins again after a crash and leaves, without the frame code of this project', async () => {
    const { sandbox, user, room, say } = await sandboxLab();
    const roomId = await room(ECHO.id);
    // It puts /websocket behind the address by itself.
    const socket = new Socket(sandbox.wsUrl.replace(/\/websocket$/, ''), {
      transport: WebSocket as unknown as new (endpoint: string) => object,
      params: { api_key: ECHO.apiKey },
      vsn: '2.0.0',
      rejoinAfterMs: () => 10,
    });
    onTestFinished(() => {
      socket.disconnect();
    });
    socket.connect();
    const channel = socket.channel(`chat_room:${roomId}`);
    const heard: string[] = [];
    channel.on('message_created', ({ content }: { content: string }) => {
      heard.push(content.replace(/^\S+ /, ''));
    });
    const joins: string[] = [];
    const join = channel.join();
    for (const status of ['ok', 'error', 'timeout'] as const) join.receive(status, () => joins.push(status));

    await expect.poll(() => joins).toEqual(['ok']);
    await say(roomId, 'one', ECHO.id);
    await expect.poll(() => heard).toEqual(['one']);

    sandbox.dev.crashChannel(ECHO.id, `chat_room:${roomId}`);
    await expect.poll(() => joins).toEqual(['ok', 'ok']);
    await say(roomId, 'two', ECHO.id);
    await expect.poll(() => heard).toEqual(['one', 'two']);

    const refused = socket.channel(`chat_room:${DEMO.user.id}`);
    const reasons: unknown[] = [];
    refused.join().receive('error', (answer: unknown) => {
      reasons.push(answer);
    });
    await expect.poll(() => reasons[0]).toEqual({ reason: 'unauthorized' });
    refused.leave();

    // It calls itself left as soon as it has asked.
    channel.leave();
    await expect.poll(() => sandbox.dev.state().sockets.flatMap(({ topics }) => topics)).toEqual([]);
    expect((await user.get('/profile')).status).toBe(200);
  });
});
