import { describe, expect, it } from 'vitest';
import { ValueError } from '../../../src/base/band-errors.js';
import { Roster } from '../../../src/core/participants.js';
import { mentionHandles, resolveMentions } from '../../../src/runtime/tools/mentions.js';

const roster = new Roster();
roster.replace([
  { id: 'id-self', name: 'Gateway', type: 'Agent', handle: 'acme/gateway' },
  { id: 'id-planner', name: 'Planner', type: 'Agent', handle: '@acme/planner' },
  { id: 'id-reviewer', name: 'Planner', type: 'Agent', handle: 'acme/reviewer' },
  { id: 'id-jane', name: 'Jane Doe', type: 'User', handle: 'jane' },
  { id: 'id-owner', name: 'Owner', type: 'User', handle: null },
  { id: 'id-tricky', name: 'jane', type: 'User', handle: 'tricky' },
]);
const everyone = roster.list();
const resolve = (...mentions: Parameters<typeof resolveMentions>[0]) => resolveMentions(mentions, everyone, 'id-self');

describe('resolveMentions', () => {
  it.each([
    ['@acme/planner', { id: 'id-planner', handle: 'acme/planner' }],
    ['acme/planner', { id: 'id-planner', handle: 'acme/planner' }],
    ['@ACME/Planner', { id: 'id-planner', handle: 'acme/planner' }],
    ['Jane Doe', { id: 'id-jane', handle: 'jane' }],
    ['@Jane Doe', { id: 'id-jane', handle: 'jane' }],
    ['id-reviewer', { id: 'id-reviewer', handle: 'acme/reviewer' }],
    ['Owner', { id: 'id-owner' }],
    ['id-owner', { id: 'id-owner' }],
  ])('R-264 BND-04 %s is found by handle, then name, then id', (text, mention) => {
    expect(resolve(text)).toEqual([mention]);
  });

  it('R-264 a handle beats a name', () => {
    expect(resolve('jane')).toEqual([{ id: 'id-jane', handle: 'jane' }]);
  });

  it.each(['@nobody', '', '@', '  '])('R-264 %j is nobody, and the handles there are are listed', (text) => {
    expect(() => resolve(text)).toThrow(ValueError);
    expect(() => resolve(text)).toThrow(
      `'${text}' is not in the room; available handles: @acme/planner, @acme/reviewer, @jane, @tricky`,
    );
  });

  it('R-264 BND-04 a name that two share, and the agent itself, are refused rather than guessed', () => {
    expect(() => resolve('Planner')).toThrow(/'Planner' names several participants; available handles: @acme\/planner/);
    expect(() => resolve('@acme/gateway')).toThrow(/'@acme\/gateway' is this agent itself; available handles/);
  });

  it('R-264 an empty room offers no handles', () => {
    expect(() => resolveMentions(['@jane'], [], null)).toThrow('available handles: (none)');
  });

  it('R-265 an object with an id passes through unchanged, whoever is in the room', () => {
    const mention = { id: 'somewhere-else', handle: '@kept/as-is' };
    expect(resolve(mention, { id: 'bare' })).toEqual([mention, { id: 'bare' }]);
    expect(resolveMentions([mention], [], null)).toEqual([mention]);
  });

  it('BND-04 duplicates collapse, whichever way they are spelt', () => {
    expect(resolve('@jane', 'Jane Doe', 'id-jane', { id: 'id-jane' })).toEqual([{ id: 'id-jane', handle: 'jane' }]);
  });
});

describe('mentionHandles', () => {
  it('R-264 lists everyone with a handle except the agent, with one @ each', () => {
    expect(mentionHandles(everyone, 'id-self')).toEqual(['@acme/planner', '@acme/reviewer', '@jane', '@tricky']);
    expect(mentionHandles(everyone, null)).toContain('@acme/gateway');
  });
});
