import { describe, expect, it } from 'vitest';
import { expandShortFlags } from '../../src/cli/acp-flags.js';

describe('short flags of the acp command', () => {
  it('are spelled out as settings', () => {
    const { args, problems } = expandShortFlags([
      '--peer',
      'ana/codex',
      '--peer=ana/reviewer',
      '--slash',
      'fix=ana/codex',
      '--slash=look=ana/reviewer',
      '--mode',
      'code=codex:Write code',
      '--mode=chat=',
      '--context',
      'never',
      '--fallback=none',
      '--turn-timeout',
      '1.5',
      '--push',
      'never',
    ]);
    expect(problems).toEqual([]);
    expect(args).toEqual([
      '--modes',
      '[{"id":"code","peer":"codex","name":"Write code"},{"id":"chat"}]',
      '--slash-commands',
      '{"fix":"ana/codex","look":"ana/reviewer"}',
      '--peers',
      'ana/codex',
      '--peers',
      'ana/reviewer',
      '--context-preamble',
      'never',
      '--fallback-routing',
      'none',
      '--turn-idle-timeout-ms',
      '1500',
      '--push',
      'never',
    ]);
  });

  it.each([
    [['--slash', 'fix'], '--slash fix'],
    [['--slash', '=x'], '--slash =x'],
    [['--slash', 'fix= '], '--slash fix= '],
    [['--mode', 'x y=z'], '--mode x y=z'],
    [['--mode', 'code'], '--mode code'],
    [['--turn-timeout', '0'], '--turn-timeout 0'],
    [['--turn-timeout', ''], '--turn-timeout '],
    [['--peer'], '--peer needs a value'],
  ])('P-013 %j is a problem that is named', (args, named) => {
    const { problems } = expandShortFlags(args);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(named);
  });

  it('leaves what follows -- alone', () => {
    expect(expandShortFlags(['--', '--peer', 'x']).args).toEqual(['--', '--peer', 'x']);
  });
});
