import { spawnSync } from 'node:child_process';
import { mkdirSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { startAcme } from '../support/slack/acme.js';
import { signedRequest } from '../support/slack/delivery.js';
import { tempFolder } from '../support/temp-folder.js';
import {
  PARTNER_KEY,
  demoWorld,
  frontDoor,
  helpdesk,
  pointSlackAt,
  startService,
  textsOf,
  until,
  type RunningService,
} from './service.js';

/** Times that the disk fills and empties again. */
const ROUNDS = Number(process.env['DISK_ROUNDS'] ?? 1);
const DISK_MIB = 6;

/** A disk of a few mebibytes that a test can fill. */
async function smallDisk(context: TestContext): Promise<{ folder: string; fill: () => void; empty: () => void }> {
  const folder = path.join(await tempFolder(), 'disk');
  mkdirSync(folder);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', folder]).status === 0;
  if (!mounted) context.skip('mounting a small disk needs root');
  onTestFinished(() => {
    spawnSync('umount', ['-l', folder]);
  });
  const ballast = path.join(folder, 'ballast');
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(folder);
      writeFileSync(ballast, new Uint8Array(bavail * bsize));
    },
    empty() {
      truncateSync(ballast, 0);
    },
  };
}

const storeIsNamed = ({ blockers }: Awaited<ReturnType<RunningService['readiness']>>) =>
  blockers.some(({ name }) => name === 'store');

describe('a disk that fills under the running service', () => {
  it('S-198 Slack is told to repeat while nothing can be stored, and its repeats are taken once there is room', async (context) => {
    const disk = await smallDisk(context);
    const { sandbox } = await demoWorld();
    const acme = await startAcme({ rates: false });
    onTestFinished(() => acme.slack.stop());
    const service = await startService({
      folder: await tempFolder(),
      dataDir: path.join(disk.folder, 'data'),
      sandbox,
      agents: [helpdesk(acme)],
    });
    pointSlackAt(acme, service.url);
    await service.ready();
    const { slack, app, alice } = acme;
    const before = alice.says('#general', '@gateway before');
    await slack.until(() => slack.botMessages(before.channel, before.threadTs).length === 1);

    const post = async (body: Parameters<typeof signedRequest>[1]['body']) => {
      const { headers, body: bytes } = signedRequest(app, { kind: 'events_api', body }, Date.now());
      return (await fetch(app.urls?.events ?? '', { method: 'POST', headers, body: bytes })).status;
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      slack.events.hold = [];
      // Long enough that the file in use cannot take them all into what is left of its last block.
      const asked = Array.from({ length: 6 }, (_, n) =>
        alice.says('#general', `@gateway ${round}-${n} ${'x'.repeat(2_000)}`),
      );
      const held = slack.events.hold;
      slack.events.hold = null;
      disk.fill();
      const refused: typeof held = [];
      for (const outgoing of held) {
        const status = await post(outgoing.body);
        expect([200, 503]).toContain(status);
        if (status === 503) refused.push(outgoing);
      }
      expect(refused.length).toBeGreaterThan(0);
      const answer = await service.untilReadiness(storeIsNamed);
      expect(answer.status).toBe(503);
      expect(answer.blockers.find(({ name }) => name === 'store')?.action).toContain('disk');
      expect((await fetch(`${service.url}/healthz`)).status).toBe(200);

      disk.empty();
      await service.ready();
      for (const outgoing of refused) expect(await post(outgoing.body)).toBe(200);
      for (const said of asked) {
        await slack.until(() => slack.botMessages(said.channel, said.threadTs).length >= 1, 'an answer', 20_000);
      }
      await slack.settled();
      for (const said of asked) expect(slack.botMessages(said.channel, said.threadTs)).toHaveLength(1);
    }
  }, 60_000);

  it('A2A clients are refused and can repeat; what was answered is on disk and nothing stands in a room twice', async (context) => {
    const disk = await smallDisk(context);
    const { sandbox } = await demoWorld();
    const folder = await tempFolder();
    const dataDir = path.join(disk.folder, 'data');
    const settings = { folder, dataDir, sandbox, agents: [frontDoor()] };
    const service = await startService(settings);
    await service.ready();
    const ask = async (id: string) => await a2aSend(service.url, 'echo', `${id} ${'x'.repeat(2_000)}`, PARTNER_KEY, id);
    expect(await ask('before')).toMatchObject({ status: 200, state: 'TASK_STATE_COMPLETED' });

    const ids = Array.from({ length: 5 }, (_, n) => `m-${n}`);
    disk.fill();
    const answers = await Promise.all(ids.map(async (id) => await ask(id)));
    for (const { state } of answers) expect(state).not.toBe('TASK_STATE_COMPLETED');
    await service.untilReadiness(storeIsNamed);
    disk.empty();
    await service.ready();
    for (const id of ids) {
      await until('a completed task', async () => (await ask(id)).state === 'TASK_STATE_COMPLETED', 30_000);
    }
    const posted = () => textsOf(sandbox, DEMO.gateway.id).map(({ content }) => /(m-\d|before)/.exec(content)?.[0]);
    expect(posted().sort()).toEqual(['before', ...ids]);

    await service.stop();
    const again = await startService(settings);
    await again.ready();
    for (const id of ['before', ...ids]) {
      const { state } = await a2aSend(again.url, 'echo', `${id} ${'x'.repeat(2_000)}`, PARTNER_KEY, id);
      expect(state, id).toBe('TASK_STATE_COMPLETED');
    }
    expect(posted()).toHaveLength(ids.length + 1);
  }, 60_000);
});
