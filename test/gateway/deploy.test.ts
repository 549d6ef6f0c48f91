import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { a2aSettings } from '../../bridges/a2a/settings.js';
import { acpSettings } from '../../bridges/acp/settings.js';
import { slackSettings } from '../../bridges/slack/settings.js';
import { relaySettings } from '../../src/adapters/relay-settings.js';
import { loadConfig } from '../../src/config/load.js';
import { tempFolder } from '../support/temp-folder.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

/** TypeScript files below some folders, from the root. */
function sourceFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => path.join(folder, name)),
  );
}

const GROUPS = { slack: [slackSettings, relaySettings], a2a: [a2aSettings], acp: [acpSettings] };

/** Loads a settings file as the program would, with every secret file it names in place. */
async function load(text: string, env: Record<string, string> = {}) {
  const folder = await tempFolder();
  const secrets = path.join(folder, 'secrets');
  mkdirSync(secrets);
  const moved = text.replaceAll(/\{ file: (\S+) \}/g, (_, file: string) => {
    const copy = path.join(secrets, path.basename(file));
    writeFileSync(copy, 'a-secret-of-some-length\n');
    return `{ file: ${copy} }`;
  });
  writeFileSync(path.join(folder, 'gateway.yaml'), moved);
  return loadConfig({
    env,
    cwd: folder,
    bridgeNames: Object.keys(GROUPS),
    bridgeGroups: async (name) => GROUPS[name as keyof typeof GROUPS],
  });
}

describe('settings files that are shown to operators load', () => {
  it('the one in the README', async () => {
    const yaml = [...read('README.md').matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text);
    const file = yaml.find((text) => text.includes('agents:')) ?? '';
    const env = { SLACK_BOT_TOKEN: 'xoxb-1', SLACK_APP_TOKEN: 'xapp-1', FRONT_DOOR_KEY: 'kkkkkkkk' };
    const { agents } = await load(file, env);
    expect(agents.map(({ name, options }) => [name, options.bridge])).toEqual([
      ['helpdesk', 'slack'],
      ['front-door', 'a2a'],
    ]);
  });

  it('the one of the Kubernetes manifests', async () => {
    const { data } = z
      .object({ data: z.record(z.string(), z.string()) })
      .parse(parse(read('deploy/kubernetes/config.yaml')));
    const { agents, service } = await load(data['gateway.yaml'] ?? '');
    expect(agents).toHaveLength(1);
    const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(read('deploy/kubernetes/deployment.yaml'))?.[1]);
    expect(grace).toBeGreaterThan(service.shutdown.delayMs / 1_000 + service.shutdown.timeoutSeconds + 8);
  });
});

describe('the Kubernetes manifests', () => {
  const files = readdirSync(path.join(ROOT, 'deploy/kubernetes'));

  it.each(files)('%s is one valid object', (file) => {
    const documents = parseAllDocuments(read(`deploy/kubernetes/${file}`));
    expect(documents).toHaveLength(1);
    const schema = z.object({ apiVersion: z.string(), kind: z.string() });
    for (const document of documents) {
      expect(document.errors).toEqual([]);
      schema.parse(document.toJS());
    }
  });

  it('name every file in the kustomization', () => {
    const { resources } = z
      .object({ resources: z.array(z.string()) })
      .parse(parse(read('deploy/kubernetes/kustomization.yaml')));
    expect(resources.toSorted()).toEqual(files.filter((file) => file !== 'kustomization.yaml').toSorted());
  });

  it('run one pod at a time, without rights, on a read-only root', () => {
    const text = read('deploy/kubernetes/deployment.yaml');
    for (const line of [
      'strategy: { type: Recreate }',
      'replicas: 1',
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'allowPrivilegeEscalation: false',
      'capabilities: { drop: [ALL] }',
      'path: /readyz',
      'path: /healthz',
    ]) {
      expect(text).toContain(line);
    }
  });
});

describe('the image', () => {
  const dockerfile = read('deploy/Dockerfile');

  it('runs as a user without rights, needs no shell, and writes to /data only', () => {
    expect(dockerfile).toMatch(/^USER 1000:1000$/m);
    expect(dockerfile).toMatch(/^ENTRYPOINT \["node", "\/app\/dist\/src\/cli\/bin\.js"\]$/m);
    expect(dockerfile).toMatch(/^CMD \["start"\]$/m);
    expect(dockerfile).toMatch(/^ +CMD \["node", "-e"/m);
    expect(dockerfile).toMatch(/DATA_DIR=\/data/);
    expect(dockerfile).toMatch(/TMPDIR=\/data/);
    expect(dockerfile).toMatch(/^STOPSIGNAL SIGTERM$/m);
  });

  it('is made of what the build needs and nothing else', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    for (const name of allowed) expect(existsSync(path.join(ROOT, name)), name).toBe(true);
    for (const [, copied = ''] of dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)) {
      for (const name of copied.split(' ')) expect(allowed).toContain(name.replace('./', ''));
    }
  });
});

it('systemd does not restart what wrong settings ended, and waits longer than the service takes to stop', () => {
  const unit = read('deploy/systemd/band-gateway.service');
  expect(unit).toContain('RestartPreventExitStatus=2');
  expect(Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1])).toBeGreaterThan(28);
  expect(unit).toContain('ProtectSystem=strict');
});

describe('the alerts', () => {
  const rules = read('deploy/alerts/band-gateway.rules.yml');

  it('speak of figures that exist', () => {
    const names = new Set(rules.match(/\bband_[a-z0-9_]+/g));
    const sources = ['src/gateway/metrics-door.ts', 'src/gateway/http-host.ts'].map(read).join('\n');
    for (const name of names) expect(sources, name).toContain(`'${name}'`);
    expect(names.size).toBeGreaterThan(3);
  });

  it('and the dashboard speaks of figures and labels that exist', () => {
    const dashboard = read('deploy/grafana/band-gateway.json');
    const names = new Set(dashboard.match(/\b(?:band|slack)_[a-z0-9_]+(?=[ ({[)\\])/g));
    const sources = sourceFiles(['src', 'bridges']).map(read).join('\n');
    for (const name of names) expect(sources, name).toContain(`'${name.replace(/_bucket$/, '')}'`);
    expect(names.size).toBeGreaterThan(6);
  });

  it('each have a summary and say where to look', () => {
    const schema = z.object({
      groups: z.array(
        z.object({
          rules: z.array(
            z.object({
              alert: z.string(),
              expr: z.string(),
              labels: z.object({ severity: z.enum(['warning', 'critical']) }),
              annotations: z.object({ summary: z.string(), description: z.string() }),
            }),
          ),
        }),
      ),
    });
    expect(schema.parse(parse(rules)).groups[0]?.rules.length).toBeGreaterThan(5);
  });

  it.skipIf(!existsSync('/usr/bin/promtool'))('pass promtool', () => {
    const said = execFileSync('/usr/bin/promtool', [
      'check',
      'rules',
      path.join(ROOT, 'deploy/alerts/band-gateway.rules.yml'),
    ]);
    expect(said.toString()).toContain('SUCCESS');
  });
});
