import { describe, expect, it } from 'vitest';
import { agentLab, type AgentLab, type AgentLabOptions } from '../support/agent-lab.js';

const ROOM = 'room-1';

async function started(options: AgentLabOptions = {}): Promise<AgentLab & { finish(): void; reports(): unknown[] }> {
  let finish: (() => void) | null = null;
  const lab = agentLab({
    onTurn: async ({ tools, signal }) => {
      await new Promise<void>((resolve, reject) => {
        finish = resolve;
        signal.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
      await tools.noReply();
    },
    ...options,
    session: { enableWorkingState: true, ...options.session },
  });
  lab.band.addRoom(ROOM);
  const begun = lab.clock.now();
  await lab.agent.start();
  await lab.settle();
  return {
    ...lab,
    finish: () => finish?.(),
    reports: () => lab.band.activity.map(({ working, at }) => [(at - begun) / 1_000, working]),
  };
}

describe('the working state', () => {
  it('R-233 R-234 R-237 is reported at the start, refreshed, and taken back at the end', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    await lab.clock.advance(7_000);
    lab.finish();
    await lab.settle();
    expect(lab.reports()).toEqual([
      [0, true],
      [3, true],
      [6, true],
      [7, false],
    ]);
    await lab.clock.advance(30_000);
    expect(lab.reports()).toHaveLength(4);
  });

  it('R-233 is not reported when enableWorkingState is false', async () => {
    const lab = await started({ session: { enableWorkingState: false } });
    lab.band.post(ROOM, 'hello');
    await lab.clock.advance(10_000);
    expect(lab.reports()).toEqual([]);
  });

  it('is not reported for an adapter whose messages take a moment only', async () => {
    const lab = agentLab({ session: { enableWorkingState: true } });
    Object.assign(lab.adapter, { reportsWorkingState: false });
    lab.band.addRoom(ROOM);
    await lab.agent.start();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
    expect(lab.band.activity).toEqual([]);
  });

  it('R-235 each report has the deadline of workingRequestTimeoutSeconds', async () => {
    const lab = await started({ session: { workingRequestTimeoutSeconds: 1 } });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.band.called('reportActivity')[0]?.body).toEqual({ working: true, timeoutMs: 1_000 });
  });

  it('R-236 stops being refreshed after maxWorkingStateSeconds, and the work goes on', async () => {
    const lab = await started({ session: { maxWorkingStateSeconds: 5 } });
    const id = lab.band.post(ROOM, 'hello');
    await lab.clock.advance(60_000);
    expect(lab.reports()).toEqual([
      [0, true],
      [3, true],
    ]);
    lab.finish();
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.reports().at(-1)).toEqual([60, false]);
  });

  it('R-237 is taken back after an error and after an abort', async () => {
    const lab = await started({ onTurn: () => Promise.reject(new Error('no')) });
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(lab.reports()).toEqual([
      [0, true],
      [0, false],
    ]);
    const other = await started();
    other.band.post(ROOM, 'hello');
    await other.settle();
    other.band.signal('interrupt', ROOM);
    await other.settle();
    expect(other.reports()).toEqual([
      [0, true],
      [0, false],
    ]);
  });

  it('R-238 reports of a room never overlap and keep their order', async () => {
    const lab = await started();
    const slow = lab.band.hold('reportActivity');
    lab.band.post(ROOM, 'hello');
    await slow.met;
    await lab.settle();
    lab.finish();
    await lab.clock.advance(10_000);
    expect(lab.reports()).toEqual([[0, true]]);
    slow.release();
    await lab.settle();
    expect(lab.reports().map((report) => (report as unknown[])[1])).toEqual([true, false]);
  });

  it('R-238 a slow report stands for the refreshes that it outlasts', async () => {
    const lab = await started();
    const slow = lab.band.hold('reportActivity');
    lab.band.post(ROOM, 'hello');
    await slow.met;
    await lab.clock.advance(10_000);
    slow.release();
    await lab.settle();
    expect(lab.reports()).toEqual([[0, true]]);
    await lab.clock.advance(2_000);
    expect(lab.reports()).toEqual([
      [0, true],
      [12, true],
    ]);
  });

  it('R-239 a failing report never affects the cycle, and is logged once until it works again', async () => {
    const lab = await started();
    lab.band.fail('reportActivity', { times: 4 });
    const id = lab.band.post(ROOM, 'hello');
    await lab.settle();
    await lab.clock.advance(7_000);
    lab.finish();
    await lab.settle();
    expect(lab.band.state(ROOM, id)).toBe('processed');
    expect(lab.lines.filter(({ msg }) => msg.includes('working state could not be reported'))).toHaveLength(1);
  });

  it('R-240 participant events and reconnects report nothing', async () => {
    const lab = await started();
    lab.band.link.push({
      kind: 'participant_added',
      roomId: ROOM,
      participant: { id: 'p', name: 'P', type: 'User' },
    });
    lab.band.link.reconnect();
    await lab.clock.advance(10_000);
    expect(lab.reports()).toEqual([]);
  });

  it('R-241 the first report does not delay the adapter', async () => {
    const lab = await started();
    const slow = lab.band.hold('reportActivity');
    lab.band.post(ROOM, 'hello');
    await slow.met;
    await lab.settle();
    expect(lab.handled).toEqual(['hello']);
  });

  it('is taken back for rooms at work when the agent stops', async () => {
    const lab = await started();
    lab.band.post(ROOM, 'hello');
    await lab.settle();
    expect(await lab.agent.stop()).toBe(false);
    expect(lab.reports().at(-1)).toEqual([0, false]);
  });
});
