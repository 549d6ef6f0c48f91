import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

const packageSchema = z.object({ name: z.literal('band-gateway'), version: z.string() });

/** This package's version, from its `package.json`, wherever the compiled or the source file lies. */
export function packageVersion(): string {
  for (const up of ['../../', '../../../']) {
    const file = new URL(`${up}package.json`, import.meta.url);
    if (!existsSync(file)) continue;
    const found = packageSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (found.success) return found.data.version;
  }
  return 'unknown';
}
