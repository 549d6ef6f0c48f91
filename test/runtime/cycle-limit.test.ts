import { describe, expect, it } from 'vitest';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';

const ROOM = 'room-1';

async function started(options: AgentLabOptions): Promise<AgentLab> {
  const lab = agentLab({ ...options, session: { maxCycleSeconds: 600, ...options.session } });
  lab.band.addRoom(ROOM);
  await lab.agent.start();
  await lab.settle();
  return lab;
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });

describe('maxCycleSeconds', () => {
  it('R-226 ends one cycle; the message fails and is retried like after any error', async () => {
    const lab = await started({
      session: { maxMessageRetries: 2 },
      onTurn: async ({ tools, signal }) => {
        if (lab.handled.length === 1) {
          await untilAborted(signal);
          throw signal.reason as Error;
        }
        await tools.noReply();
      },
    });
    const id = lab.band.post(ROOM, 'hello');
    await lab.clock.advance(600_000);
    await lab.settle();
    expect(lab.band.attempts(ROOM, id).map(({ status }) => status)).toEqual(['failed', 'success']);
  });

  it('R-227 does not count what is loaded before the cycle, nor claim and mark', async () => {
    const lab = await started({ onTurn: ({ tools }) => tools.noReply().then(() => undefined) });
    const claim = lab.band.hold('markProcessing');
    const loading = lab.band.hold('getContext');
    const mark = lab.band.hold('markProcessed');
    const id = lab.band.post(ROOM, 'hello');
    await claim.met;
    await lab.clock.advance(700_000);
    claim.release();
    await loading.met;
    await lab.clock.advance(700_000);
    loading.release();
    await mark.met;
    await lab.clock.advance(700_000);
    mark.release();
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.band.attempts(ROOM, id)).toHaveLength(1);
  });

  it('R-228 null means no limit', async () => {
    let finish!: () => void;
    const lab = await started({
      session: { maxCycleSeconds: null },
      onTurn: async ({ tools }) => {
        await new Promise<void>((resolve) => (finish = resolve));
        await tools.noReply();
      },
    });
    const id = lab.band.post(ROOM, 'hello');
    await lab.clock.advance(100 * 3_600_000);
    finish();
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('R-229 R-230 an adapter that swallows the abort timed out all the same, and the mark names the limit', async () => {
    const lab = await started({
      onTurn: async ({ tools, signal }) => {
        await untilAborted(signal);
        tools.turn.settle();
      },
    });
    const id = lab.band.post(ROOM, 'hello');
    await lab.clock.advance(600_000);
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)).toEqual([
      { status: 'failed', error: expect.stringContaining('max_cycle_seconds=600.0') as string },
    ]);
  });

  it("R-231 an adapter's own timeout is an ordinary failure with its own text", async () => {
    const lab = await started({ onTurn: () => Promise.reject(new Error('model timed out')) });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.attempts(ROOM, id)[0]?.error).toBe('model timed out');
  });

  it('R-232 a control signal that races the limit wins', async () => {
    const lab = await started({ onTurn: () => new Promise(() => undefined) });
    const id = lab.band.post(ROOM, 'hello');
    await lab.clock.advance(600_000);
    lab.band.signal('interrupt', ROOM);
    await lab.clock.advance(1_000);
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
  });

  it('leaves an adapter behind that does not come back, and goes on with the next message', async () => {
    const lab = await started({
      onTurn: ({ message, tools }) =>
        message.content === 'deaf' ? new Promise(() => undefined) : tools.noReply().then(() => undefined),
    });
    lab.band.post(ROOM, 'deaf');
    lab.band.post(ROOM, 'next');
    await lab.clock.advance(601_000);
    await lab.settle();
    expect(lab.handled).toEqual(['deaf', 'next']);
  });
});
