import { describe, expect, it } from 'vitest';
import {
  progressMessage,
  toolLabel,
  WRITE_TOOLS,
  type ProgressState,
  type ProgressTask,
} from '../../../../bridges/slack/outbound/progress-view.js';

const task = (name: string, state: ProgressTask['state'], error: string | null = null): ProgressTask => ({
  name,
  state,
  error,
});
const view = (more: Partial<ProgressState>) =>
  progressMessage({
    tasks: [],
    writeTools: new Set(WRITE_TOOLS),
    buttons: [],
    line: null,
    minutes: null,
    finished: false,
    ...more,
  });
const texts = (message: ReturnType<typeof view>) =>
  message.blocks.flatMap((block) => {
    const text = (block['text'] as { text: string } | undefined)?.text;
    return text === undefined ? [] : [text];
  });

describe('the progress message', () => {
  it('S-122 says that it works while it runs or is empty, and how it ended', () => {
    expect(view({}).text).toBe('Working on it…');
    expect(texts(view({}))).toEqual(['*🤖 Working on it…*']);
    const ended = view({ finished: true, tasks: [task('band_lookup_peers', 'done')] });
    expect([ended.text, ...texts(ended)]).toEqual(['Done', '*✅ Done*', '✅ Lookup peers']);
    expect(texts(view({ finished: true, tasks: [task('x', 'failed', 'no')] }))[0]).toBe('*⚠️ Done with errors*');
  });

  it('S-122 marks each task, sets writing tools in bold, and puts errors under them', () => {
    const tasks = [
      task('band_send_message', 'running'),
      task('weather', 'done'),
      task('lookup', 'failed', 'nothing there'),
      task('later', 'left'),
    ];
    expect(texts(view({ tasks })).slice(1)).toEqual([
      '⏳ ✏️ *Send message*',
      '✅ Weather',
      '❌ Lookup\n_nothing there_',
      '⏸ Later',
    ]);
  });

  it.each([
    ['band_send_message', 'Send message'],
    ['slack_add_reaction', 'Add reaction'],
    ['get_weather_for_city', 'Get weather for city'],
    ['band_', 'band_'],
    ['Über_tool', 'Über tool'],
  ])('S-122 calls %s %s', (name, label) => {
    expect(toolLabel(name)).toBe(label);
  });

  it('S-122 cuts an error at 240 characters', () => {
    const [, line] = texts(view({ tasks: [task('x', 'failed', 'e'.repeat(241))] }));
    expect(line).toBe(`❌ X\n_${'e'.repeat(237)}…_`);
    const [, whole] = texts(view({ tasks: [task('x', 'failed', 'e'.repeat(240))] }));
    expect(whole).toBe(`❌ X\n_${'e'.repeat(240)}_`);
  });

  it('S-122 holds 48 tasks, and of more says how many are not shown', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => task(`t${index}`, 'done'));
    expect(view({ tasks: many(48) }).blocks).toHaveLength(50);
    const cut = view({ tasks: many(49) });
    expect(cut.blocks).toHaveLength(50);
    expect(texts(cut).at(-1)).toBe('…and 2 more');
    expect(texts(cut)).toHaveLength(1 + 47 + 1);
  });

  it('S-122 stays within 50 blocks with buttons, a line and the time', () => {
    const tasks = Array.from({ length: 60 }, (_, index) => task(`t${index}`, 'running'));
    const { blocks } = view({ tasks, buttons: [{ action: 'stop', value: 'v' }], line: 'Stopped by Alice', minutes: 3 });
    expect(blocks).toHaveLength(50);
    expect(blocks.slice(-3).map((block) => block['type'])).toEqual(['context', 'context', 'actions']);
  });

  it('S-125 escapes and folds what tools are called and say', () => {
    const tasks = [task('evil_<!here>', 'failed', 'line one\n<@U07MEMBER01> & <b>')];
    expect(texts(view({ tasks }))[1]).toBe('❌ Evil &lt;!here&gt;\n_line one &lt;@U07MEMBER01&gt; &amp; &lt;b&gt;_');
  });

  it('has no buttons once the turn is over', () => {
    const buttons = [{ action: 'stop', value: 'v' }] as const;
    expect(view({ buttons }).blocks.at(-1)).toMatchObject({ type: 'actions' });
    expect(view({ buttons, finished: true }).blocks.at(-1)).toMatchObject({ type: 'divider' });
  });
});
