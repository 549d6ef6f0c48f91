import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { rowsOf, sandboxLab, verdictOf } from '../../support/sandbox-lab.js';
import { activityShape } from '../../support/wire-shapes.js';

const { echo: ECHO, dice: DICE } = DEMO;

describe('an agent’s word that it is working', () => {
  it('is shown to people once, lasts ten seconds from the last report, and ends by itself', async () => {
    const clock = createManualClock();
    const { user, echo, room } = await sandboxLab({ clock });
    const roomId = await room(ECHO.id);
    const socket = await user.socket();
    await socket.join(`chat_room:${roomId}`);
    const report = (working: boolean) => echo.post(`/chats/${roomId}/activity`, { working });
    const shown = async () => {
      await socket.settled();
      return socket.received.filter((frame) => frame[3] === 'agent_activity').map((frame) => frame[4]['working']);
    };
    const isWorking = async () => rowsOf(await user.get(`/agents/${ECHO.id}/executions`))[0]?.['working'];

    await report(true);
    expect(activityShape.parse(await socket.push('agent_activity'))).toMatchObject({ working: true });
    expect(await isWorking()).toBe(true);
    await clock.advance(9_000);
    await report(true);
    await clock.advance(9_999);
    expect(await isWorking()).toBe(true);
    expect(await shown()).toEqual([true]);
    await clock.advance(1);
    expect(await isWorking()).toBe(false);
    expect(await shown()).toEqual([true, false]);
    await report(true);
    await report(false);
    await report(false);
    expect(await shown()).toEqual([true, false, true, false]);
    expect(clock.pending).toBeLessThan(5);
  });

  it('ends in time for every agent of every room', async () => {
    const clock = createManualClock();
    const { user, echo, dice, room } = await sandboxLab({ clock });
    const rooms = [await room(ECHO.id, DICE.id), await room(ECHO.id)];
    await echo.post(`/chats/${String(rooms[0])}/activity`, { working: true });
    await clock.advance(4_000);
    await dice.post(`/chats/${String(rooms[0])}/activity`, { working: true });
    await echo.post(`/chats/${String(rooms[1])}/activity`, { working: true });
    const working = async (id: string) =>
      rowsOf(await user.get(`/agents/${id}/executions`)).map((execution) => execution['working']);
    await clock.advance(6_000);
    expect([await working(ECHO.id), await working(DICE.id)]).toEqual([[false, true], [true]]);
    await clock.advance(4_000);
    expect([await working(ECHO.id), await working(DICE.id)]).toEqual([[false, false], [false]]);
  });

  it('is refused from outside the room, and when it is no word', async () => {
    const { echo, dice, room } = await sandboxLab();
    const roomId = await room(ECHO.id);
    expect(verdictOf(await dice.post(`/chats/${roomId}/activity`, { working: true }))).toBe('404 not_found');
    for (const body of [{}, { working: null }, { working: 1 }, []]) {
      expect(verdictOf(await echo.post(`/chats/${roomId}/activity`, body))).toBe('422 validation_error');
    }
  });
});
