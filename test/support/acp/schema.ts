import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Frame } from './lab.js';

const ANSWERS: Readonly<Record<string, string>> = {
  initialize: 'InitializeResponse',
  authenticate: 'AuthenticateResponse',
  'session/new': 'NewSessionResponse',
  'session/load': 'LoadSessionResponse',
  'session/resume': 'ResumeSessionResponse',
  'session/list': 'ListSessionsResponse',
  'session/close': 'CloseSessionResponse',
  'session/delete': 'DeleteSessionResponse',
  'session/set_mode': 'SetSessionModeResponse',
  'session/set_config_option': 'SetSessionConfigOptionResponse',
  'session/prompt': 'PromptResponse',
};

const require = createRequire(import.meta.url);
const sdk = dirname(require.resolve('@agentclientprotocol/sdk/schema/v1/schema.json'));
const schema = JSON.parse(readFileSync(join(sdk, 'schema.json'), 'utf8')) as Record<string, unknown>;
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema({ ...schema, $id: 'acp' });
const validators = new Map<string, ValidateFunction>();

function check(definition: string, value: unknown): void {
  let validate = validators.get(definition);
  if (!validate) {
    validate = ajv.compile({ $ref: `acp#/$defs/${definition}` });
    validators.set(definition, validate);
  }
  if (!validate(value)) {
    throw new Error(`not a ${definition}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value, null, 1)}`);
  }
}

/**
 * Throws unless every frame an agent sent fits the protocol's own schema.
 *
 * @param asked - the method of each request by its id
 */
export function checkFrames(frames: readonly Frame[], asked: ReadonlyMap<unknown, string>): void {
  for (const frame of frames) {
    if (frame.jsonrpc !== '2.0') throw new Error(`not JSON-RPC: ${JSON.stringify(frame)}`);
    if (frame.method === 'session/update') check('SessionNotification', frame.params);
    else if (frame.method !== undefined) throw new Error(`a call that no client offered: ${frame.method}`);
    else if (frame.error) {
      if (!Number.isInteger(frame.error.code) || typeof frame.error.message !== 'string') {
        throw new Error(`not an error: ${JSON.stringify(frame)}`);
      }
      if (typeof frame.error.data?.reason !== 'string' || typeof frame.error.data.retryable !== 'boolean') {
        throw new Error(`an error without reason: ${JSON.stringify(frame)}`);
      }
    } else {
      const definition = ANSWERS[asked.get(frame.id) ?? ''];
      if (definition === undefined) throw new Error(`an answer to nothing: ${JSON.stringify(frame)}`);
      check(definition, frame.result);
    }
  }
}
