import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DEMO } from '../../src/sandbox/index.js';
import { a2aSend } from '../support/a2a-send.js';
import { startAcme } from '../support/slack/acme.js';
import { tempFolder } from '../support/temp-folder.js';
import { PARTNER_KEY, demoWorld, frontDoor, helpdesk, pointSlackAt, startService } from './service.js';

/** What damage does to the files of a store. */
const DAMAGE: readonly [string, (folder: string) => void][] = [
  [
    'overwritten',
    (folder) => {
      eachFile(folder, /\.(ldb|log)$|MANIFEST|CURRENT/, (bytes) => bytes.fill(0xab));
    },
  ],
  [
    'with unreadable records',
    (folder) => {
      eachFile(folder, /\.(ldb|log)$/, (bytes) => bytes.fill(0xab));
    },
  ],
  [
    'with an empty table of contents',
    (folder) => {
      eachFile(folder, /MANIFEST/, () => Buffer.alloc(0));
    },
  ],
  [
    'without the pointer to its table of contents',
    (folder) => {
      rmSync(path.join(folder, 'CURRENT'));
    },
  ],
  ['without its table of contents', removeManifest],
];

function eachFile(folder: string, which: RegExp, change: (bytes: Buffer) => Buffer): void {
  for (const name of readdirSync(folder)) {
    if (!which.test(name)) continue;
    const file = path.join(folder, name);
    writeFileSync(file, change(readFileSync(file)));
  }
}

function removeManifest(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('MANIFEST')) rmSync(path.join(folder, name));
}

describe('a store that is damaged at the start', () => {
  it.each(DAMAGE)(
    '%s: it is moved aside by name, reported, and conversations go on in their rooms',
    async (_, damage) => {
      const { sandbox } = await demoWorld();
      const acme = await startAcme({ rates: false });
      onTestFinished(() => acme.slack.stop());
      const { slack, alice } = acme;
      const folder = await tempFolder();
      const settings = { folder, sandbox, agents: [helpdesk(acme), frontDoor()] };

      const first = await startService(settings);
      pointSlackAt(acme, first.url);
      await first.ready();
      const said = alice.says('#general', '@gateway first');
      const answers = () => slack.botMessages(said.channel, said.threadTs);
      await slack.until(() => answers().length === 1, 'the first answer');
      await slack.settled();
      await first.stop();
      const roomsOfHelpdesk = () =>
        sandbox.dev.state().rooms.filter(({ participants }) => participants.some(({ id }) => id === DEMO.helpdesk.id));
      expect(roomsOfHelpdesk()).toHaveLength(1);

      damage(path.join(folder, 'data', 'store'));
      const second = await startService(settings);
      pointSlackAt(acme, second.url);
      await second.ready();
      const aside = readdirSync(path.join(folder, 'data')).filter((name) => name.startsWith('store.damaged-'));
      expect(aside).toHaveLength(1);
      expect(second.log.find(({ movedTo }) => String(movedTo).endsWith(aside[0] ?? ''))?.level).toBe(50);
      const { notices } = await second.report();
      expect(notices).toHaveLength(1);
      expect(notices[0]?.text).toContain(aside[0]);

      alice.replies(said, 'second, and to nobody by name');
      await slack.until(() => answers().length >= 2, 'the second answer');
      await slack.settled();
      expect(answers().map(({ shown }) => shown.includes('echo: '))).toEqual([true, true]);
      expect(roomsOfHelpdesk()).toHaveLength(1);
      expect(await a2aSend(second.url, 'echo', 'hello', PARTNER_KEY)).toMatchObject({ text: 'echo: hello' });
      slack.check();
    },
    40_000,
  );
});
