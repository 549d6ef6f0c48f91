import type { Seed } from './options.js';

/** The fixed identities of the demo: one person and five agents of theirs. */
export const DEMO = {
  user: { id: '00000000-0000-4000-8000-000000000100', handle: 'demo', apiKey: 'band_u_demo' },
  gateway: { id: '00000000-0000-4000-8000-000000000001', handle: 'demo/gateway', apiKey: 'band_a_demo_gateway' },
  echo: { id: '00000000-0000-4000-8000-000000000002', handle: 'demo/echo', apiKey: 'band_a_demo_echo' },
  dice: { id: '00000000-0000-4000-8000-000000000003', handle: 'demo/dice', apiKey: 'band_a_demo_dice' },
  editor: { id: '00000000-0000-4000-8000-000000000004', handle: 'demo/editor', apiKey: 'band_a_demo_editor' },
  helpdesk: { id: '00000000-0000-4000-8000-000000000005', handle: 'demo/helpdesk', apiKey: 'band_a_demo_helpdesk' },
} as const;

const agent = (who: { id: string; apiKey: string }, name: string, description: string) => ({
  ownerHandle: DEMO.user.handle,
  id: who.id,
  apiKey: who.apiKey,
  name,
  description,
});

export const DEMO_SEED: Seed = {
  users: [{ ...DEMO.user, name: 'Demo Person', email: 'demo@sandbox.invalid' }],
  agents: [
    agent(DEMO.gateway, 'Gateway', 'Carries messages between the outside and the rooms'),
    agent(DEMO.echo, 'Echo', 'Repeats what it is told'),
    agent(DEMO.dice, 'Dice', 'Rolls dice, for example 2d6'),
    agent(DEMO.editor, 'Editor', 'Answers for a person in an editor'),
    agent(DEMO.helpdesk, 'Helpdesk', 'Answers for a team in a Slack workspace'),
  ],
};

export const EMPTY_SEED: Seed = { users: [], agents: [] };

/** A seed, or the one that a name stands for. */
export function seedOf(seed: Seed | 'demo' | 'empty'): Seed {
  if (seed === 'demo') return DEMO_SEED;
  return seed === 'empty' ? EMPTY_SEED : seed;
}
