import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { z } from 'zod';
import { GatewayError } from '../base/errors.js';
import type { Seed } from './options.js';

const optional = z.string().optional();
const seedFile = z
  .strictObject({
    users: z.array(
      z.strictObject({ handle: z.string(), name: z.string(), email: optional, id: optional, api_key: optional }),
    ),
    agents: z
      .array(
        z.strictObject({
          owner_handle: z.string(),
          name: z.string(),
          description: z.string(),
          id: optional,
          api_key: optional,
          global: z.boolean().optional(),
          tags: z.array(z.string()).optional(),
        }),
      )
      .default([]),
  })
  .transform(({ users, agents }): Seed => ({
    users: users.map(({ api_key: apiKey, ...user }) => ({ ...user, apiKey })),
    agents: agents.map(({ api_key: apiKey, owner_handle: ownerHandle, ...agent }) => ({
      ...agent,
      apiKey,
      ownerHandle,
    })),
  }));

/**
 * A seed from a YAML or JSON file, in the wire's spelling: `users` with `handle`, `name`, `email`, `id`, `api_key`;
 * `agents` with `owner_handle`, `name`, `description`, `id`, `api_key`, `global`, `tags`.
 *
 * @throws {GatewayError} `SANDBOX_REFUSED` when the file cannot be read, or with every field that is wrong
 */
export async function readSeed(file: string): Promise<Seed> {
  let content: unknown;
  try {
    content = parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new GatewayError('SANDBOX_REFUSED', { message: `The seed ${file} cannot be read.`, cause: error });
  }
  const parsed = seedFile.safeParse(content);
  if (parsed.success) return parsed.data;
  throw new GatewayError('SANDBOX_REFUSED', {
    message: `The seed ${file} is not valid:\n${z.prettifyError(parsed.error)}`,
    cause: parsed.error,
  });
}
