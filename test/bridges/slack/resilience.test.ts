import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../src/base/errors.js';
import type { OutsideBrain } from '../../../src/core/outside.js';
import { SimpleAdapter } from '../../../src/core/simple-adapter.js';
import type { AgentToolsProtocol } from '../../../src/core/tools.js';
import { createMemoryStore } from '../../../src/store/memory.js';
import { prefixRange } from '../../../src/store/port.js';
import { createManualClock } from '../../../src/testing/manual-clock.js';
import { say, startBridge, type BridgeLab } from '../../support/slack/bridge-lab.js';

const gate = () => {
  let open = (): void => undefined;
  const closed = new Promise<void>((resolve) => (open = resolve));
  return { closed, open };
};
const clocked = () => {
  const clock = createManualClock(Date.now());
  return { clock, acme: { clock } };
};
/** Moves the clock by `stepMs`, again and again, until `wanted` holds. */
async function passing(
  lab: BridgeLab,
  clock: { advance(ms: number): Promise<void> },
  stepMs: number,
  wanted: () => boolean,
) {
  for (let step = 0; step < 60 && !wanted(); step += 1) {
    await clock.advance(stepMs);
    await lab.slack.settled();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(wanted()).toBe(true);
}

/** A brain like the relay: it settles its turn, and cannot always. */
class Relaying extends SimpleAdapter implements OutsideBrain {
  tries = 0;
  readonly looked: boolean[] = [];
  outages: GatewayError[] = [];

  connectOutlet(): void {
    // Nothing will be said.
  }

  stopOutside(): Promise<boolean> {
    return Promise.resolve(true);
  }

  onMessage(message: { readonly metadata: unknown }, tools: AgentToolsProtocol): Promise<void> {
    this.tries += 1;
    this.looked.push((message.metadata as { outside: { maybeDelivered: boolean } }).outside.maybeDelivered);
    const outage = this.outages.shift();
    if (outage) return Promise.reject(outage);
    tools.turn.settle();
    return Promise.resolve();
  }
}

describe('when Band does not take a message', () => {
  it('the relay’s message waits however long it takes, and its author hears of it', async () => {
    const { clock, acme } = clocked();
    const inner = new Relaying();
    inner.outages = Array.from({ length: 8 }, () => new GatewayError('BAND_UNAVAILABLE'));
    const lab = await startBridge({ inner, clock, acme });
    const said = lab.alice.says('#general', '@gateway hello');
    await expect.poll(() => inner.tries).toBe(1);
    await passing(lab, clock, 31_000, () => inner.tries === 9);
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
    expect(lab.answers(said)).toEqual([
      'I am having trouble reaching Band. Your message is kept and goes on as soon as that works.',
    ]);
    // What may have reached the room is looked for from the second try on.
    expect(inner.looked).toEqual([false, ...Array.from({ length: 8 }, () => true)]);
  });

  it('another brain’s turn ends with a word and a Retry, never silently', async () => {
    const { clock, acme } = clocked();
    const lab = await startBridge({
      clock,
      acme,
      onTurn: () => Promise.reject(new GatewayError('BAND_TIMEOUT')),
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.slack.until(() => lab.heard.length === 1);
    await passing(lab, clock, 200_000, () => lab.answers(said).some((text) => text.startsWith('I could not finish')));
    expect(lab.heard).toHaveLength(5);
    expect(await lab.adapter.deadLetters.list()).toMatchObject([{ queue: 'inbox', code: 'BAND_TIMEOUT' }]);
  });

  it('something else that Band does not know is not taken for the room', async () => {
    const lab = await startBridge({ onTurn: () => Promise.reject(new GatewayError('BAND_NOT_FOUND')) });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.answered(said);
    await lab.idle();
    expect(lab.answers(said)[0]).toMatch(/^I could not finish this/);
    expect(lab.heard).toEqual(['hello']);
    expect(await lab.rooms_()).toHaveLength(1);
  });
});

describe('a dead letter of the inbox', () => {
  it('S-044 has its turn again when an operator retries it, and its answer is written', async () => {
    let fails = true;
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (fails) throw new Error('no');
        await say(turn, 'at last');
      },
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.answered(said);
    await expect.poll(async () => (await lab.adapter.deadLetters.list()).length).toBe(1);
    fails = false;
    const [letter] = await lab.adapter.deadLetters.list();
    expect(await lab.adapter.deadLetters.retry(letter!.id)).toBe(true);
    await lab.slack.until(() => lab.answers(said).includes('at last'));
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
    expect(await lab.adapter.deadLetters.retry(letter!.id)).toBe(false);
  });
});

describe('a thread in which too much waits', () => {
  it('refuses a message with a word to its author, and takes the others in order', async () => {
    const { closed, open } = gate();
    const lab = await startBridge({
      settings: { maxQueuedPerThread: 2 },
      onTurn: async (turn) => {
        await closed;
        await say(turn, `done ${turn.message.content}`);
      },
    });
    const said = lab.alice.says('dm', 'one');
    await lab.slack.until(() => lab.heard.length === 1);
    for (const text of ['two', 'three', 'four']) {
      lab.alice.replies(said, text);
      await lab.slack.settled();
    }
    await lab.slack.until(() => lab.slack.ephemerals(said.channel, lab.alice.id).length === 1);
    expect(lab.slack.ephemerals(said.channel, lab.alice.id)[0]!.text).toContain('did not take this one');
    open();
    await lab.answered(said, 3);
    await lab.idle();
    expect(lab.answers(said)).toEqual(['done one', 'done two', 'done three']);
  });
});

describe('bots that answer each other', () => {
  it('S-064 the cap posts one notice, and a person lifts it', async () => {
    const lab = await startBridge({ settings: { allowBots: ['U07MEMBER02'], botTurnCap: 2 } });
    const root = lab.alice.says('#general', '@gateway start');
    await lab.answered(root);
    const botSays = async (text: string) => {
      lab.bob.saysRaw('#general', {
        text,
        threadTs: root.ts,
        subtype: 'bot_message',
      });
      await lab.slack.settled();
    };
    for (const text of ['b1', 'b2']) await botSays(text);
    await lab.answered(root, 3);
    for (const text of ['b3', 'b4', 'b5']) await botSays(text);
    await lab.answered(root, 4);
    await lab.idle();
    expect(lab.answers(root).slice(3)).toEqual([
      'Other bots have written here many times in a row. I go on when a person writes.',
    ]);
    lab.alice.replies(root, 'go on');
    await lab.answered(root, 5);
    await botSays('b6');
    await lab.answered(root, 6);
    expect(lab.heard).toEqual(['start', 'b1', 'b2', 'go on', 'b6']);
  });
});

describe('a stop sign', () => {
  const working = async () => {
    const cut: string[] = [];
    const lab = await startBridge({
      onTurn: async (turn) => {
        if (turn.message.content !== 'work') {
          await say(turn, `done ${turn.message.content}`);
          return;
        }
        await new Promise<void>((resolve) => {
          turn.signal.addEventListener('abort', () => {
            cut.push('work');
            resolve();
          });
        });
      },
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.answered(said);
    const reply = lab.alice.replies(said, 'work');
    await lab.slack.until(() => lab.heard.includes('work'));
    return { lab, cut, said, reply };
  };

  it('S-155 on a reply stops the turn of its thread', async () => {
    const { lab, cut, reply } = await working();
    lab.alice.reacts(reply, 'octagonal_sign');
    await expect.poll(() => cut).toEqual(['work']);
  });

  it('S-155 from somebody who has no part in the thread, or where no room stands behind it, does nothing', async () => {
    const { lab, cut, said } = await working();
    lab.bob.reacts(said, 'octagonal_sign');
    const aside = lab.bob.says('#general', 'just talking');
    lab.bob.reacts(aside, 'octagonal_sign');
    await lab.answered(lab.bob.says('#rooms', '@gateway meanwhile'));
    expect(cut).toEqual([]);
    expect(lab.answers(aside)).toEqual([]);
  });
});

describe('edits of what is not for the agent', () => {
  it('leave nothing behind in the store', async () => {
    const { clock, acme } = clocked();
    const store = createMemoryStore();
    const lab = await startBridge({ clock, acme, store });
    const aside = lab.bob.says('#general', 'just talking');
    await lab.slack.settled();
    lab.bob.edits(aside, 'just talking a little');
    await lab.slack.settled();
    await clock.advance(11_000);
    await lab.slack.settled();
    const left = () => store.range(prefixRange('slack/lab/changes/'));
    await expect.poll(async () => (await left()).length).toBe(0);
    expect(lab.heard).toEqual([]);
  });

  it('S-150 an old message that was answered long ago is not answered again for an edit', async () => {
    const { clock, acme } = clocked();
    const lab = await startBridge({ clock, acme, settings: { dedupTtlHours: 1 } });
    const said = lab.alice.says('dm', 'hello');
    await lab.answered(said);
    await clock.advance(3 * 3_600_000);
    await lab.slack.settled();
    lab.alice.edits(said, 'hello!');
    await lab.slack.settled();
    await clock.advance(11_000);
    await lab.idle();
    expect(lab.heard).toEqual(['hello']);
  });
});

describe('a turn that is cut while it is prepared', () => {
  it('S-136 ends there: the brain never hears of it, and it is not tried again', async () => {
    const { clock, acme } = clocked();
    const lab = await startBridge({ clock, acme });
    lab.slack.fault({
      method: 'users.info',
      effect: { kind: 'status', status: 429, headers: { 'retry-after': '3600' } },
    });
    const said = lab.alice.says('#general', '@gateway hello');
    await lab.slack.until(() => lab.slack.calls('users.info').length > 0);
    const inbox = () => lab.adapter.report().queues.find(({ name }) => name === 'inbox')!.depth;
    lab.alice.stopsAgent(said);
    await expect.poll(inbox).toBe(0);
    await clock.advance(20_000);
    await lab.idle();
    expect(lab.heard).toEqual([]);
    expect(await lab.adapter.deadLetters.list()).toEqual([]);
  });
});

describe('a turn that is stopped after it has shown something', () => {
  it('S-165 S-089 is not run again by Resume, but may be by Retry', async () => {
    const { closed, open } = gate();
    const lab = await startBridge({
      onTurn: async (turn) => {
        await say(turn, `part ${lab.heard.length}`);
        await Promise.race([
          closed,
          new Promise<void>((resolve) => {
            turn.signal.addEventListener('abort', () => {
              resolve();
            });
          }),
        ]);
      },
    });
    const said = lab.alice.says('#general', '@gateway work');
    await lab.answered(said);
    lab.alice.reacts(said, 'octagonal_sign');
    await lab.slack.until(() => lab.answers(said).some((text) => text.startsWith('This was stopped')));
    open();
    lab.alice.reacts(said, 'arrow_forward');
    await lab.idle();
    expect(lab.heard).toEqual(['work']);
    lab.alice.clicks('Retry', { channel: said.channel, threadTs: said.ts });
    await lab.slack.until(() => lab.answers(said).includes('part 2'));
    expect(lab.heard).toEqual(['work', 'work']);
  });
});
