import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What each part may import beside itself. The order of the list is the order of the arrows. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  'src/base': [],
  'src/platform/wire': ['src/base'],
  'src/platform': ['src/base'],
  'src/store': ['src/base'],
  'src/config': ['src/base', 'src/platform', 'src/store'],
  'src/sandbox': ['src/base', 'src/platform/wire'],
  'src/core': ['src/base', 'src/platform', 'src/store', 'src/config'],
  'src/adapters': ['src/base', 'src/platform', 'src/store', 'src/config', 'src/core'],
  'src/runtime': ['src/base', 'src/platform', 'src/store', 'src/config', 'src/core'],
  'src/agent.ts': ['src/base', 'src/platform', 'src/store', 'src/config', 'src/core', 'src/runtime'],
  'src/index.ts': ['src/base', 'src/platform', 'src/config', 'src/core', 'src/runtime', 'src/agent.ts'],
  'src/testing': ['src/base', 'src/platform', 'src/store', 'src/config', 'src/core', 'src/runtime', 'src/sandbox'],
  bridges: [
    'src/base',
    'src/platform',
    'src/store',
    'src/config',
    'src/core',
    'src/adapters',
    'src/runtime',
    'src/agent.ts',
  ],
  'src/gateway': [
    'src/base',
    'src/platform',
    'src/store',
    'src/config',
    'src/sandbox',
    'src/core',
    'src/adapters',
    'src/runtime',
    'src/agent.ts',
  ],
  'src/cli': [
    'src/base',
    'src/platform',
    'src/store',
    'src/config',
    'src/sandbox',
    'src/core',
    'src/adapters',
    'src/runtime',
    'src/agent.ts',
    'src/gateway',
  ],
};
const BRIDGE_DOOR = 'src/cli/bin.ts';

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(join(root, path)).isDirectory()) return sources(path);
    return path.endsWith('.ts') ? [path] : [];
  });

/** Paths of the project's own files that `file` imports, by any form of import. */
function importsOf(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(root, resolve(root, dirname(file), name)).replace(/\.js$/, '.ts'));
}

/** The most exact part that holds `file`. */
const partOf = (file: string): string =>
  Object.keys(MAY_IMPORT)
    .filter((part) => file === part || file.startsWith(`${part}/`))
    .sort((a, b) => b.length - a.length)[0] ?? file;

const inside = (file: string, part: string) => file === part || file.startsWith(`${part}/`);
const files = [...sources('src'), ...sources('bridges')];

describe('import boundaries', () => {
  it('every file belongs to a part', () => {
    expect(files.filter((file) => !(partOf(file) in MAY_IMPORT))).toEqual([]);
  });

  it('arrows between parts point one way', () => {
    const wrong = files.flatMap((file) =>
      importsOf(file)
        .filter((target) => {
          const part = partOf(file);
          const allowed = [part, ...(MAY_IMPORT[part] ?? [])];
          if (file === BRIDGE_DOOR && inside(target, 'bridges')) return false;
          return !allowed.some((prefix) => inside(target, prefix));
        })
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('a bridge imports no other bridge', () => {
    const bridge = (file: string) => file.split('/').slice(0, 2).join('/');
    const wrong = files
      .filter((file) => inside(file, 'bridges'))
      .flatMap((file) =>
        importsOf(file)
          .filter((target) => inside(target, 'bridges') && bridge(target) !== bridge(file))
          .map((target) => `${file} imports ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  it('one file of src/ imports bridges', () => {
    const importers = files.filter(
      (file) => inside(file, 'src') && importsOf(file).some((target) => inside(target, 'bridges')),
    );
    expect(importers.filter((file) => file !== BRIDGE_DOOR)).toEqual([]);
  });
});
