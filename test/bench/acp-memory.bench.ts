import { createLab } from '../support/acp/lab.js';
import { person } from '../support/acp/fake-band.js';
import type { Figure } from './figure.js';

const SESSIONS = 100;
const PROMPTS_EACH = 3;

/** What an open session costs one process, after a few turns. */
export async function run(): Promise<Figure> {
  const peer = person('echo');
  const lab = await createLab({
    peers: [peer],
    options: { peers: ['echo'], maxSessions: 10_000, deliveryPoll: 'off' },
  });
  const editor = await lab.editor();
  lab.band.onPrompt = (room) => void lab.band.say(room, peer, 'ok');
  const open = async (count: number) => {
    for (let i = 0; i < count; i += 1) {
      const session = await editor.newSession();
      for (let turn = 0; turn < PROMPTS_EACH; turn += 1) {
        editor.prompt(session, 'hello');
        await lab.clock.advance(400);
      }
    }
    // What the double remembers is not the bridge's.
    editor.frames.length = 0;
    editor.asked.clear();
    lab.band.calls.length = 0;
    for (const room of lab.band.rooms.values()) room.rows.length = 0;
  };
  await open(SESSIONS);
  const before = heap();
  await open(SESSIONS);
  const grown = heap() - before;
  const rooms = await doubleBytes(SESSIONS);
  const result: Figure = {
    figure: `ACP: memory of an open session, slope over ${SESSIONS} more sessions in one process`,
    rows: [
      { name: 'heap per session', value: (grown - rooms) / SESSIONS / 1_024, unit: 'KB' },
      { name: 'heap of the process with 200 sessions', value: heap() / 1_048_576, unit: 'MB' },
    ],
  };
  await lab.close();
  return result;
}

/** What the rooms of the double themselves cost. */
async function doubleBytes(count: number): Promise<number> {
  const lab = await createLab({ peers: [] });
  const before = heap();
  for (let i = 0; i < count; i += 1) lab.band.addRoom();
  const grown = heap() - before;
  await lab.close();
  return grown;
}

function heap(): number {
  global.gc?.();
  global.gc?.();
  return process.memoryUsage().heapUsed;
}
