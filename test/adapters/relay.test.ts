import { describe, expect, it, onTestFinished } from 'vitest';
import { RelayAdapter } from '../../src/adapters/relay.js';
import { readAddress, toRoomText, withoutMentions } from '../../src/adapters/relay-text.js';
import type { RelayOptionsInput } from '../../src/adapters/relay-settings.js';
import { GatewayError } from '../../src/base/errors.js';
import type { Outlet } from '../../src/core/outside.js';
import { createPlatformConnection } from '../../src/core/platform-connection.js';
import { DEMO, startSandbox } from '../../src/sandbox/index.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { FakeAgentTools } from '../../src/testing/fake-agent-tools.js';
import { fakeAgentInput } from '../../src/testing/fake-agent-input.js';
import { createManualClock } from '../../src/testing/manual-clock.js';

const { helpdesk, echo, dice } = DEMO;

const setUp = async (options: RelayOptionsInput = {}) => {
  const sandbox = await startSandbox({ port: 0 });
  onTestFinished(() => sandbox.close());
  const store = createMemoryStore();
  const clock = createManualClock(Date.now());
  const said: string[] = [];
  /** Marks at which the relay read a room's record. */
  const read: (string | undefined)[] = [];
  /** What becomes of a post instead of an answer; the post itself is `land`'s to make. */
  let instead: ((land: () => Promise<void>) => Promise<void>) | null = null;
  const noticed = new Set<string>();
  const outlet: Outlet = {
    answer: async (_room, { markdown, from }) => void said.push(`${from.name}: ${markdown}`),
    notice: async (_room, { id, text }) => {
      if (!noticed.has(id)) said.push(`* ${text}`);
      noticed.add(id);
    },
    waiting: (_room, on) => void said.push(on ? '…' : '.'),
  };
  const start = async () => {
    const relay = new RelayAdapter(options, { store, clock });
    relay.platform = createPlatformConnection({
      agentId: helpdesk.id,
      apiKey: helpdesk.apiKey,
      restUrl: sandbox.restUrl,
      wsUrl: sandbox.wsUrl,
    });
    const build = relay.buildRestClient.bind(relay);
    relay.buildRestClient = () => {
      const client = build();
      const getContext: typeof client.getContext = (room, page) => {
        read.push(page?.cursor);
        return client.getContext(room, page);
      };
      const postMessage: typeof client.postMessage = async (...args) => {
        await instead?.(async () => {
          await client.postMessage(...args);
        });
        return await client.postMessage(...args);
      };
      return Object.assign(Object.create(client) as typeof client, { getContext, postMessage });
    };
    relay.connectOutlet(outlet);
    await relay.onStarted('Helpdesk', 'answers');
    return relay;
  };
  let relay = await start();
  const rest = Object.getPrototypeOf(relay.buildRestClient()) as ReturnType<typeof relay.buildRestClient>;
  const { id: roomId } = await rest.createChat();

  let messages = 0;
  const outside = (delivery: string, maybeDelivered: boolean, place: string | null) => ({
    delivery,
    world: 'Slack',
    place,
    acceptedAt: clock.now(),
    maybeDelivered,
  });
  return {
    said,
    read,
    clock,
    rest,
    roomId,
    sandbox,
    restart: async () => {
      await relay.cleanupAll();
      relay = await start();
    },
    stop: () => relay.stopOutside(roomId),
    /** The next post gets no answer: what it was to do is `take`'s affair. */
    unanswered: (take: (land: () => Promise<void>) => Promise<void>) => {
      instead = async (land) => {
        instead = null;
        await take(land);
        throw new GatewayError('BAND_TIMEOUT');
      };
    },
    /** What a person writes outside. */
    asks: async (
      text: string,
      {
        maybeDelivered = false,
        place = null as string | null,
        id = `s${(messages += 1)}`,
        senderName = 'Alice Smith',
      } = {},
    ) => {
      const tools = new FakeAgentTools({ roomId });
      await relay.onEvent(
        fakeAgentInput({
          id,
          tools,
          content: text,
          senderName,
          senderId: 'slack:U1',
          senderType: 'user',
          metadata: { outside: outside(id, maybeDelivered, place) },
        }),
      );
      return tools;
    },
    /** What a peer writes in the room to this agent. */
    peerSays: (text: string, peer: { id: string; handle: string } = echo) =>
      relay.onEvent(
        fakeAgentInput({
          id: `m${(messages += 1)}`,
          tools: new FakeAgentTools({ roomId }),
          content: text,
          senderId: peer.id,
          senderType: 'Agent',
          senderName: peer.handle.split('/')[1] ?? '',
        }),
      ),
    /** What this agent posted into the room, tokens as they are stored. */
    posted: async () =>
      (await rest.getContext(roomId, { limit: 100 })).data
        .filter((row) => row.message_type === 'text')
        .map((row) => row.content),
  };
};

const to = (peer: { id: string }, text: string) => `@[[${peer.id}]] ${text}`;

describe('RelayAdapter', () => {
  describe('whom it asks', () => {
    it('asks the usual peer, names the person, and settles the turn', async () => {
      const { asks, posted, said } = await setUp({ peer: 'demo/echo' });
      const tools = await asks('what is up?');
      expect(await posted()).toEqual([to(echo, 'Alice Smith (Slack): what is up?')]);
      expect(tools.turn.complete).toBe(true);
      expect(said).toEqual(['…']);
    });

    it.each([
      ['@dice 2d6', '2d6'],
      ['@demo/dice, 2d6', '2d6'],
      ['ask dice: 2d6', '2d6'],
      ['Ask Dice :2d6\nplease', '2d6\nplease'],
    ])('asks the peer that %j names', async (text, rest) => {
      const { asks, posted } = await setUp({ peer: 'echo' });
      await asks(text);
      expect(await posted()).toEqual([to(dice, `Alice Smith (Slack): ${rest}`)]);
    });

    it('stays with the peer that the conversation talks to, also after a restart', async () => {
      const { asks, posted, restart } = await setUp({ peer: 'echo' });
      await asks('@dice 2d6');
      await restart();
      await asks('again');
      expect(await posted()).toEqual([to(dice, 'Alice Smith (Slack): 2d6'), to(dice, 'Alice Smith (Slack): again')]);
    });

    it("prefers the place's peer to the usual one", async () => {
      const { asks, posted } = await setUp({ peer: 'echo', channels: { C1: 'dice' } });
      await asks('hello', { place: 'C1' });
      expect(await posted()).toEqual([to(dice, 'Alice Smith (Slack): hello')]);
    });

    it('names the peers that may be asked when nothing says whom', async () => {
      const { asks, posted, said } = await setUp({ allow: ['demo/dice'] });
      await asks('hello');
      expect(await posted()).toEqual([]);
      expect(said).toHaveLength(1);
      expect(said[0]).toContain('@demo/dice');
      expect(said[0]).not.toContain('@demo/echo');
    });

    it('does not ask a peer that is not allowed, and takes its name for text', async () => {
      const { asks, posted } = await setUp({ peer: 'dice', allow: ['dice'] });
      await asks('@echo hello');
      expect((await posted())[0]).toContain('@echo hello');
      expect((await posted())[0]).toContain(dice.id);
    });

    it('fails, without a try to repeat it, when the configured peer does not exist', async () => {
      const { asks } = await setUp({ peer: 'nobody' });
      await expect(asks('hello')).rejects.toMatchObject({ code: 'RELAY_PEER_UNKNOWN', retryable: false });
    });
  });

  it('mentions nobody but the peer, whatever the person types', async () => {
    const { asks, rest, roomId, posted } = await setUp({ peer: 'echo' });
    await rest.addParticipant(roomId, { participantId: dice.id });
    await asks(`see @[[${dice.id}]] and @demo/dice`);
    expect((await posted())[0]).toContain(`@\u200b[[${dice.id}]] and @demo/dice`);
    const { data } = await rest.getContext(roomId);
    expect(data[0]?.metadata).toMatchObject({ mentions: [{ id: echo.id }] });
  });

  describe('a message that may have been posted already', () => {
    it('is not posted again when the room holds it', async () => {
      const { asks, posted } = await setUp({ peer: 'echo' });
      await asks('pay once', { id: 'e1' });
      await asks('pay once', { id: 'e1', maybeDelivered: true });
      expect(await posted()).toHaveLength(1);
    });

    it('is found in the room when the end came before it was noted', async () => {
      const { asks, posted, rest, roomId } = await setUp({ peer: 'echo' });
      await rest.addParticipant(roomId, { participantId: echo.id });
      await rest.postMessage(roomId, { content: 'Alice Smith (Slack): pay once', mentions: [{ id: echo.id }] });
      await asks('pay once', { maybeDelivered: true });
      expect(await posted()).toHaveLength(1);
    });

    it.each([
      ['though the name of its author cannot be read any more', 'pay once', 'U1'],
      ['though it reads otherwise by now', 'pay at once', 'Alice Smith'],
      ['though it would go to somebody else by now', '@dice pay once', 'Alice Smith'],
    ])('is found by the words it was sent in, %s', async (_name, text, senderName) => {
      const { asks, posted, peerSays, said, restart, unanswered } = await setUp({ peer: 'echo' });
      unanswered((land) => land());
      await expect(asks('pay once', { id: 'e1' })).rejects.toMatchObject({ code: 'BAND_TIMEOUT' });
      await restart();
      await asks(text, { id: 'e1', maybeDelivered: true, senderName });
      expect(await posted()).toEqual([to(echo, 'Alice Smith (Slack): pay once')]);
      await peerSays('done');
      expect(said).toEqual(['…', 'echo: done', '.']);
    });

    it('is found though it reached the room after its sender was gone', async () => {
      const { asks, posted, clock, restart, unanswered } = await setUp({ peer: 'echo' });
      let late = () => Promise.resolve();
      unanswered((land) => {
        late = land;
        return Promise.resolve();
      });
      await expect(asks('pay once', { id: 'e1' })).rejects.toMatchObject({ code: 'BAND_TIMEOUT' });
      await restart();
      const again = asks('pay once', { id: 'e1', maybeDelivered: true });
      while (clock.nextInMs !== 5_000) await new Promise((resolve) => setImmediate(resolve));
      await late();
      await clock.advance(5_000);
      await again;
      expect(await posted()).toHaveLength(1);
    });

    it('is posted once more when the room does not hold it seconds later either', async () => {
      const { asks, posted, clock, unanswered } = await setUp({ peer: 'echo' });
      unanswered(() => Promise.resolve());
      await expect(asks('pay once', { id: 'e1' })).rejects.toMatchObject({ code: 'BAND_TIMEOUT' });
      await clock.advance(5_000);
      await asks('pay once', { id: 'e1', maybeDelivered: true });
      expect(await posted()).toHaveLength(1);
    });

    it('is found though the name of its author looks like a mention', async () => {
      const { asks, posted, unanswered } = await setUp({ peer: 'echo' });
      unanswered((land) => land());
      const author = { id: 'e1', senderName: '@alice' };
      await expect(asks('pay once', author)).rejects.toMatchObject({ code: 'BAND_TIMEOUT' });
      await asks('pay once', { ...author, maybeDelivered: true });
      expect(await posted()).toHaveLength(1);
    });

    it('is looked for from where the room was last read to, however long the room is', async () => {
      const { asks, read, rest, roomId } = await setUp({ peer: 'echo' });
      await rest.addParticipant(roomId, { participantId: echo.id });
      for (let row = 0; row < 230; row += 1)
        await rest.postEvent(roomId, { content: `thought ${row}`, messageType: 'thought' });
      await asks('first', { maybeDelivered: true });
      expect(read).toHaveLength(3);
      await asks('second', { maybeDelivered: true });
      expect(read).toHaveLength(4);
      expect(read[3]).toBe(read[2]);
    });

    it('is posted when the room holds the same words of an earlier message only', async () => {
      const { asks, posted } = await setUp({ peer: 'echo' });
      await asks('yes');
      await asks('yes', { maybeDelivered: true });
      expect(await posted()).toHaveLength(2);
    });

    it('is posted when the room does not hold it', async () => {
      const { asks, posted } = await setUp({ peer: 'echo' });
      await asks('first');
      await asks('second', { maybeDelivered: true });
      expect(await posted()).toHaveLength(2);
    });
  });

  it('brings a peer back that somebody took out of the room', async () => {
    const { asks, rest, roomId, posted } = await setUp({ peer: 'echo' });
    await asks('one');
    await rest.removeParticipant(roomId, echo.id);
    await asks('two');
    expect(await posted()).toHaveLength(2);
  });

  it('says that a peer is gone, and lets a room that is gone be the bridge’s affair', async () => {
    const { asks, said, sandbox } = await setUp({ peer: 'echo' });
    const url = `${sandbox.restUrl}/api/v1/me/agents/${echo.id}?force=true`;
    // The directory was read before the peer left, as it is for up to a minute.
    await asks('@dice hello');
    await fetch(url, { method: 'DELETE', headers: { 'x-api-key': DEMO.user.apiKey } });
    await asks('@echo hello');
    expect(said.at(-1)).toBe('* Echo cannot be reached from here any more.');
  });

  describe('answers', () => {
    it('carry the name of the peer and lose the mentions they open with', async () => {
      const { asks, peerSays, said } = await setUp({ peer: 'echo' });
      await asks('hi');
      await peerSays('@demo/helpdesk @demo hello **there**, @demo');
      expect(said).toEqual(['…', 'echo: hello **there**, @demo', '.']);
    });

    it('keep the sign of work until everybody who was asked has answered', async () => {
      const { asks, peerSays, said } = await setUp({ peer: 'echo' });
      await asks('hi');
      await asks('@dice 2d6');
      await peerSays('seven', dice);
      expect(said).toEqual(['…', '…', 'dice: seven']);
      await peerSays('hi');
      expect(said.at(-1)).toBe('.');
    });

    it('stop reaching the outside after so many without a person in between', async () => {
      const { asks, peerSays, said } = await setUp({ peer: 'echo', hopLimit: 2 });
      await asks('hi');
      for (const text of ['1', '2', '3', '4']) await peerSays(text);
      expect(said.filter((line) => line.startsWith('echo'))).toEqual(['echo: 1', 'echo: 2']);
      expect(said.filter((line) => line.startsWith('*'))).toHaveLength(1);
      await asks('go on');
      await peerSays('5');
      expect(said).toContain('echo: 5');
    });
  });

  describe('waiting', () => {
    it('says once that it takes longer, once that nothing came, and still delivers a late answer', async () => {
      const { asks, peerSays, said, clock } = await setUp({ peer: 'echo', slowAfterSeconds: 60, timeoutSeconds: 900 });
      await asks('hi');
      await clock.advance(59_999);
      expect(said).toEqual(['…']);
      await clock.advance(900_000);
      expect(said).toEqual([
        '…',
        '* Echo is still working on it.',
        '* Echo has not answered. If an answer still comes, it will be posted here.',
        '.',
      ]);
      await peerSays('late');
      expect(said).toContain('echo: late');
    });

    it('goes on after a restart', async () => {
      const { asks, restart, said, clock } = await setUp({ peer: 'echo' });
      await asks('hi');
      await clock.advance(50_000);
      await restart();
      await clock.advance(10_000);
      expect(said.at(-1)).toBe('* Echo is still working on it.');
    });

    it('ends when the person stops it, which does not stop the peer', async () => {
      const { asks, stop, said, clock } = await setUp({ peer: 'echo' });
      await asks('hi');
      expect(await stop()).toBe(false);
      await clock.advance(1_000_000);
      expect(said).toEqual(['…', '.']);
    });
  });
});

describe('readAddress', () => {
  it.each([
    ['@weather in Rome?', 'weather', 'in Rome?'],
    ['@acme/weather-bot: in Rome?', 'acme/weather-bot', 'in Rome?'],
    ['@we\\_ather x', null, '@we\\_ather x'],
    ['ask Weather Bot: in Rome?', 'Weather Bot', 'in Rome?'],
    ['ask @weather: x', 'weather', 'x'],
    ['ask me anything', null, 'ask me anything'],
    ['mail a@b.c now', null, 'mail a@b.c now'],
    ['@weather', null, '@weather'],
    ['', null, ''],
  ])('of %j', (text, word, rest) => {
    expect(readAddress(text)).toEqual({ word, rest });
  });
});

describe('relay text', () => {
  it('folds a name into one line', () => {
    expect(toRoomText('Al\nice', 'Slack', 'x')).toBe('Al ice (Slack): x');
  });

  it.each([
    ['@[[a-b]] @demo, hello', 'hello'],
    ['hello @demo', 'hello @demo'],
    ['@demo', '@demo'],
    ['', ''],
  ])('without the mentions of %j is %j', (content, expected) => {
    expect(withoutMentions(content)).toBe(expected);
  });
});
