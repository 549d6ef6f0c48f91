import { describe, expect, it } from 'vitest';
import { dice, echo, withoutMention } from '../../src/sandbox/demo-agents.js';

const self = { id: '00000000-0000-4000-8000-000000000003', handle: 'demo/dice', name: 'Dice' };
const replies = (steps: ReturnType<typeof dice>) =>
  steps.flatMap((step) => (step.kind === 'reply' ? [step.content] : []));

describe('echo', () => {
  it('repeats the text without its own mention, however that is spelled', () => {
    for (const content of [`@[[${self.id}]] hello`, '@demo/dice hello', '@Dice hello', 'hello @dice']) {
      expect(replies(echo(content, self))).toEqual(['echo: hello']);
    }
    expect(replies(echo('@Dice ask @Dicey and @demo/dice-2', self))).toEqual(['echo: ask @Dicey and @demo/dice-2']);
  });
});

describe('dice', () => {
  it('shows a thought and a tool event, then says the sum', () => {
    const numbers = [0, 0.999];
    const steps = dice('@Dice 2d6 please', self, () => numbers.shift() ?? 0);
    expect(steps.map((step) => (step.kind === 'event' ? step.messageType : step.kind))).toEqual([
      'thought',
      'tool_call',
      'tool_result',
      'reply',
    ]);
    expect(steps[2]).toMatchObject({ content: '1, 6' });
    expect(replies(steps)).toEqual(['2d6: 7']);
  });

  it.each([
    ['d20', '1d20: 11'],
    ['3W6', '3d6: 12'],
    ['roll it', 'Say what to roll, for example 2d6.'],
    ['0d6', 'I roll 1 to 100 dice with at least 2 sides each.'],
    ['101d6', 'I roll 1 to 100 dice with at least 2 sides each.'],
    ['2d1', 'I roll 1 to 100 dice with at least 2 sides each.'],
  ])('answers %j with %j', (content, reply) => {
    expect(replies(dice(content, self, () => 0.5))).toEqual([reply]);
  });
});

describe('a mention of oneself', () => {
  it('is taken out as text, not as a pattern', () => {
    expect(withoutMention('@a.*b axxb', { id: 'i', handle: 'o/h', name: 'a.*b' })).toBe('axxb');
  });
});
