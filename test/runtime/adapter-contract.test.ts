import { describe, expect, it } from 'vitest';
import { GenericAdapter } from '../../src/adapters/generic.js';
import { InputNotAccepted, TurnEndedError } from '../../src/base/band-errors.js';
import type { AgentInput } from '../../src/core/agent-input.js';
import type { FrameworkAdapter } from '../../src/core/framework-adapter.js';
import { judgeDetachedTurn } from '../../src/core/judge.js';
import { SimpleAdapter } from '../../src/core/simple-adapter.js';
import type { PlatformConnection } from '../../src/core/types.js';
import { agentLab } from '../support/agent-lab.js';

const ROOM = 'room-1';

/** An adapter that is nothing but the three documented hooks. */
function plainAdapter(onEvent: (input: AgentInput) => Promise<void> = () => Promise.resolve()) {
  const steps: string[] = [];
  const adapter: FrameworkAdapter & { platform?: PlatformConnection | null } = {
    async onEvent(input) {
      steps.push(`event ${input.msg.content}`);
      await onEvent(input);
    },
    async onCleanup(roomId) {
      steps.push(`cleanup ${roomId}`);
      await Promise.resolve();
    },
    async onStarted(name, description) {
      steps.push(`started ${name}: ${description}; connection ${String(Boolean(adapter.platform))}`);
      await Promise.resolve();
    },
  };
  return { adapter, steps };
}

describe('an adapter in an Agent', () => {
  it('R-003 may be any object with the three hooks', async () => {
    const { adapter, steps } = plainAdapter();
    const lab = agentLab({ agent: { adapter } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(await lab.agent.stop()).toBe(true);
    expect(steps).toEqual(['started Helper: Answers questions; connection true', 'event hello', `cleanup ${ROOM}`]);
  });

  it('R-003 may be a SimpleAdapter', async () => {
    const seen: string[] = [];
    class Echo extends SimpleAdapter {
      async onMessage(...[message, tools]: Parameters<SimpleAdapter['onMessage']>): Promise<void> {
        seen.push(`${this.agentName}: ${message.formatForLlm()}`);
        await tools.sendMessage(`echo: ${message.content}`, [{ id: message.senderId }]);
      }
    }
    const lab = agentLab({ agent: { adapter: new Echo() } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(seen).toEqual(['Helper: [Jane Doe]: hello']);
    expect(lab.band.written(ROOM, 'text').map(({ content }) => content)).toEqual(['echo: hello']);
    await lab.agent.stop();
  });

  it('R-145 has its connection, with the addresses and the key of its Agent, before onStarted', async () => {
    let atStart: PlatformConnection | null = null;
    class Curious extends GenericAdapter {
      override async onStarted(name: string, description: string): Promise<void> {
        atStart = this.requirePlatform();
        await super.onStarted(name, description);
      }
    }
    const adapter = new Curious(async ({ tools }) => {
      await tools.noReply();
    });
    const lab = agentLab({ agent: { adapter, apiKey: 'proxy-managed' } });
    await lab.agent.start();
    expect(atStart).toMatchObject({ restUrl: 'http://band.invalid', wsUrl: 'ws://band.invalid/socket' });
    expect(atStart).toBe(adapter.platform);
    expect(adapter.requirePlatform().apiKey).toBe('proxy-managed');
    expect(Object.isFrozen(atStart)).toBe(true);
    await lab.agent.stop();
  });

  it('R-140 gets tools that are bound to the message’s room', async () => {
    const lab = agentLab({ onTurn: ({ tools }) => tools.sendMessage('here', ['@jane']).then(() => undefined) });
    for (const roomId of ['a', 'b']) lab.band.addRoom(roomId);
    await lab.agent.start();
    for (const roomId of ['a', 'b']) lab.band.post(roomId, `to ${roomId}`);
    await lab.settle();
    expect(lab.turns.map(({ roomId, tools, message }) => [roomId, tools.roomId, message.roomId]).sort()).toEqual([
      ['a', 'a', 'a'],
      ['b', 'b', 'b'],
    ]);
    for (const roomId of ['a', 'b']) expect(lab.band.written(roomId, 'text')).toHaveLength(1);
    await lab.agent.stop();
  });

  /** The first two inputs' bootstrap flags, for an adapter that ends its first turn in some way. */
  async function bootstraps(first: () => Promise<void>): Promise<boolean[]> {
    const flags: boolean[] = [];
    const { adapter } = plainAdapter(async ({ isSessionBootstrap }) => {
      flags.push(isSessionBootstrap);
      if (flags.length === 1) await first();
    });
    const lab = agentLab({ agent: { adapter } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'one');
    await lab.settle();
    lab.band.post(ROOM, 'two');
    await lab.settle();
    await lab.agent.stop();
    return flags;
  }

  it('R-141 its context is committed after onEvent returned', async () => {
    expect(await bootstraps(() => Promise.resolve())).toEqual([true, false]);
  });

  it('R-141 a failure of any other kind commits too: the adapter took the input', async () => {
    expect(await bootstraps(() => Promise.reject(new Error('later')))).toEqual([true, false]);
  });

  it('R-142 after InputNotAccepted nothing is committed, so the next input carries it again', async () => {
    expect(await bootstraps(() => Promise.reject(new InputNotAccepted('busy')))).toEqual([true, true]);
  });

  it.each([
    ['returned', () => Promise.resolve()],
    ['failed', () => Promise.reject(new Error('no'))],
  ])('R-273 posts nothing with the tools of a turn that %s, however late it tries', async (_how, end) => {
    const kept: AgentInput[] = [];
    const { adapter } = plainAdapter(async (input) => {
      kept.push(input);
      await end();
    });
    const lab = agentLab({ agent: { adapter } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(['processed', 'failed']).toContain(lab.band.state(ROOM, id));
    const before = lab.band.written(ROOM).length;
    const { tools } = kept[0]!;
    await expect(tools.sendMessage('late', ['@jane'])).rejects.toThrow(TurnEndedError);
    await expect(tools.sendEvent('late', 'thought')).rejects.toThrow(TurnEndedError);
    await expect(tools.sendFailure({ provider: 'p', message: 'late' })).rejects.toThrow(TurnEndedError);
    expect(lab.band.written(ROOM)).toHaveLength(before);
    await lab.agent.stop();
  });

  it('R-281 a detached turn posts until its adapter ends it', async () => {
    const kept: AgentInput[] = [];
    const { adapter } = plainAdapter(async (input) => {
      kept.push(input);
      input.tools.turn.detach();
      await Promise.resolve();
    });
    const lab = agentLab({ agent: { adapter } });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    const { tools } = kept[0]!;
    await tools.sendMessage('later', ['@jane']);
    expect(await judgeDetachedTurn(tools)).toBe(true);
    await expect(tools.sendMessage('too late', ['@jane'])).rejects.toThrow(TurnEndedError);
    expect(lab.band.written(ROOM, 'text').map(({ content }) => content)).toEqual(['later']);
    await lab.agent.stop();
  });

  it('R-158 never hears of rooms and participants through onEvent', async () => {
    const { adapter, steps } = plainAdapter();
    const told: string[] = [];
    const lab = agentLab({
      agent: {
        adapter,
        onParticipantAdded: (roomId, event) => void told.push(`${roomId} ${event.participant.name}`),
      },
    });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    await lab.settle();
    const times = { inserted_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' };
    lab.band.link.push({
      kind: 'participant_added',
      roomId: ROOM,
      participant: { id: 'p', name: 'Pat', type: 'User', handle: 'pat' },
    });
    lab.band.link.push({
      kind: 'participant_removed',
      roomId: ROOM,
      participant: { id: 'p', name: 'Pat', type: 'User' },
    });
    lab.band.addRoom('room-2');
    lab.band.link.push({ kind: 'room_added', roomId: 'room-2', room: { id: 'room-2', ...times } });
    lab.band.link.push({ kind: 'reconnected' });
    await lab.settle();
    lab.band.link.push({ kind: 'room_removed', roomId: 'room-2', room: { id: 'room-2', ...times } });
    await lab.settle();
    expect(told).toEqual([`${ROOM} Pat`]);
    expect(steps.filter((step) => step.startsWith('event'))).toEqual([]);
    await lab.agent.stop();
  });
});
