import {
  type BenchClient,
  connectOfficial,
  connectOurs,
  roomIds,
  startBenchPlatform,
} from '../support/bench-platform.js';
import { messageCreated } from '../support/link-lab.js';
import { type Figure, interleaved } from './figure.js';

const FEW = 100;
const MANY = 5_000;
const MESSAGES = 100_000;
const ROUNDS = 5;
const ROOM = roomIds(0, 1)[0]!;

/** Figure 5: messages a second in one room, with few and with many rooms joined. */
export async function run(): Promise<Figure> {
  const platform = await startBenchPlatform();
  const rate = async (client: BenchClient, messages: number): Promise<number> => {
    const begun = performance.now();
    const received = client.received(messages);
    platform.order({
      order: 'flood',
      topic: `chat_room:${ROOM}`,
      count: messages,
      message: messageCreated('dddddddd-dddd-4ddd-8ddd-dddddddddddd', ROOM, 'x'.repeat(200)),
    });
    await received;
    return messages / ((performance.now() - begun) / 1_000);
  };
  const withRooms = (connect: (url: string) => Promise<BenchClient>, rooms: number, messages: number) => async () => {
    const client = await connect(platform.url);
    try {
      await client.join(roomIds(0, rooms));
      await rate(client, messages / 4); // warm
      return await rate(client, messages);
    } finally {
      await client.close();
    }
  };
  try {
    const [many, few] = await interleaved(
      ROUNDS,
      withRooms(connectOurs, MANY, MESSAGES),
      withRooms(connectOurs, FEW, MESSAGES),
    );
    // The official client is shown for comparison; with many rooms it is slow, so it gets fewer messages.
    const official = await withRooms(connectOfficial, MANY, MESSAGES / 20)();
    return {
      figure: `5 · Messages/s in one room with ${MANY} rooms joined ÷ with ${FEW}`,
      rows: [
        { name: `${MANY} rooms ÷ ${FEW} rooms`, value: many / few, unit: '×', aim: '≥ 0.95' },
        { name: `link, ${MANY} rooms`, value: many, unit: '/s' },
        { name: `link, ${FEW} rooms`, value: few, unit: '/s' },
        { name: `official phoenix, ${MANY} rooms`, value: official, unit: '/s' },
      ],
    };
  } finally {
    await platform.stop();
  }
}
