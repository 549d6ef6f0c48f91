import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSeed } from '../../src/sandbox/index.js';
import { sandboxLab } from '../support/sandbox-lab.js';
import { tempFolder } from '../support/temp-folder.js';

const SEED = `
users:
  - { handle: ada, name: Ada L, id: 11111111-1111-4111-8111-111111111111, api_key: band_u_ada }
agents:
  - owner_handle: ada
    name: Helper
    description: Helps
    id: aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa
    api_key: band_a_helper
    global: true
    tags: [kind]
`;

async function seedFile(content: string): Promise<string> {
  const file = join(await tempFolder(), 'seed.yaml');
  await writeFile(file, content);
  return file;
}

describe('a seed file', () => {
  it('creates people and agents with fixed ids and keys, known before the start', async () => {
    const { agent, person } = await sandboxLab({ seed: await readSeed(await seedFile(SEED)) });
    expect((await agent('band_a_helper').get('/me')).body).toMatchObject({
      data: { id: 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', handle: 'ada/helper', tags: ['kind'] },
    });
    expect((await person('band_u_ada').get('/profile')).body).toMatchObject({ data: { handle: 'ada' } });
  });

  it('may be JSON, and may name people only', async () => {
    expect(await readSeed(await seedFile('{"users":[{"handle":"ada","name":"Ada"}]}'))).toMatchObject({
      users: [{ handle: 'ada' }],
      agents: [],
    });
  });

  it.each([
    ['users: [', /cannot be read/],
    ['users: [{ handle: ada }]', /users\[0\].name/],
    ['users: []\nrooms: []', /rooms/],
    ['', /not valid/],
  ])('that says %j is refused with what is wrong', async (content, reason) => {
    await expect(readSeed(await seedFile(content))).rejects.toMatchObject({
      code: 'SANDBOX_REFUSED',
      message: expect.stringMatching(reason) as string,
    });
  });

  it('that is not there is refused', async () => {
    await expect(readSeed('/nowhere/seed.yaml')).rejects.toMatchObject({ code: 'SANDBOX_REFUSED' });
  });
});
