import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LineCounter, parseDocument } from 'yaml';
import { BandConfigError } from '../base/band-errors.js';

export interface AgentCredentials {
  readonly agentId: string;
  readonly apiKey: string;
}

const DEFAULT_FILE = 'agent_config.yaml';
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * An agent's credentials from a YAML file: `agent_id` and `api_key` under the top-level key `name`, or, when the file
 * does not have that key, at the top level of a file about one agent. Everything else in the file is ignored
 * . No error text carries the API key.
 *
 * @param options.configPath - default `agent_config.yaml` in the working folder at this moment
 * @throws {BandConfigError} with `code` `file_not_found`, `invalid_file` (unreadable, or no YAML), `invalid_shape` (no
 *   mapping, or a credential that is no text), `agent_not_found`, or `missing_fields`
 */
export function loadAgentConfig(
  name: string,
  options: { readonly configPath?: string | URL | null | undefined } = {},
): AgentCredentials {
  const path = pathOf(options.configPath);
  const file = mappingOf(parseYaml(readText(path), path), path, 'the file');
  const entry = file.get(name);
  if (!isEmpty(entry)) return credentialsOf(mappingOf(entry, path, name), name, path);
  if (file.has('agent_id')) return credentialsOf(file, name, path);
  if (file.has(name)) return credentialsOf(new Map(), name, path);
  throw new BandConfigError(`Agent '${name}' not found in ${path}`, { code: 'agent_not_found' });
}

function pathOf(configPath: string | URL | null | undefined): string {
  if (configPath instanceof URL) return fileURLToPath(configPath);
  return resolve(configPath ?? DEFAULT_FILE);
}

function readText(path: string): string {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) {
      throw new BandConfigError(`${path} is larger than ${MAX_FILE_BYTES} bytes`, { code: 'invalid_file' });
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof BandConfigError) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new BandConfigError(`${path} not found; copy agent_config.yaml.example to it and fill it in`, {
        code: 'file_not_found',
        cause: error,
      });
    }
    throw new BandConfigError(`${path} could not be read as UTF-8 text`, { code: 'invalid_file', cause: error });
  }
}

/** Plain data only, mappings as Map: keys such as `__proto__` are ordinary. */
function parseYaml(text: string, path: string): unknown {
  const lineCounter = new LineCounter();
  // Pretty errors quote the line they complain about, which may hold the key.
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' });
  const [error] = document.errors;
  if (error) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    throw new BandConfigError(`${path} is not valid YAML (line ${line}, column ${col})`, {
      code: 'invalid_file',
      cause: error,
    });
  }
  try {
    return document.toJS({ mapAsMap: true });
  } catch (cause) {
    throw new BandConfigError(`${path} is not valid YAML`, { code: 'invalid_file', cause });
  }
}

function mappingOf(value: unknown, path: string, what: string): ReadonlyMap<unknown, unknown> {
  if (value === null || value === undefined) return new Map();
  if (value instanceof Map) return value;
  throw new BandConfigError(`${path}: ${what} is not a mapping`, { code: 'invalid_shape' });
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (value instanceof Map && value.size === 0);
}

function credentialsOf(entry: ReadonlyMap<unknown, unknown>, name: string, path: string): AgentCredentials {
  const fields = { agent_id: entry.get('agent_id'), api_key: entry.get('api_key') };
  for (const [field, value] of Object.entries(fields)) {
    if (!isEmpty(value) && typeof value !== 'string') {
      throw new BandConfigError(`${path}: ${field} of agent '${name}' is not a text; put it in quotes`, {
        code: 'invalid_shape',
      });
    }
  }
  const { agent_id: agentId, api_key: apiKey } = fields;
  if (typeof agentId === 'string' && agentId !== '' && typeof apiKey === 'string' && apiKey !== '') {
    return { agentId, apiKey };
  }
  const missing = Object.entries(fields)
    .filter(([, value]) => isEmpty(value))
    .map(([field]) => field);
  throw new BandConfigError(`Agent '${name}' in ${path} has no ${missing.join(' and no ')}`, {
    code: 'missing_fields',
  });
}
