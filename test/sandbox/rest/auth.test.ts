import { describe, expect, it } from 'vitest';
import { DEMO } from '../../../src/sandbox/index.js';
import { callRest } from '../../support/rest-call.js';
import { sandboxLab, verdictOf } from '../../support/sandbox-lab.js';
import { errorShape } from '../../support/wire-shapes.js';

const NOBODY = 'band_a_nobody';

describe('credentials', () => {
  it.each([
    ['an agent key in X-API-Key', '/api/v1/agent/me', { 'x-api-key': DEMO.echo.apiKey }, '200'],
    ['an agent key as bearer token', '/api/v1/agent/me', { authorization: `Bearer ${DEMO.echo.apiKey}` }, '200'],
    ['a user key in X-API-Key', '/api/v1/me/profile', { 'x-api-key': DEMO.user.apiKey }, '200'],
    ['a user key as bearer token', '/api/v1/me/profile', { authorization: `bearer ${DEMO.user.apiKey}` }, '200'],
    [
      'both headers, of which X-API-Key wins',
      '/api/v1/agent/me',
      { 'x-api-key': DEMO.echo.apiKey, authorization: `Bearer ${NOBODY}` },
      '200',
    ],
    [
      'a wrong X-API-Key beside a right bearer token',
      '/api/v1/agent/me',
      { 'x-api-key': NOBODY, authorization: `Bearer ${DEMO.echo.apiKey}` },
      '401 unauthorized',
    ],
    ['none', '/api/v1/agent/me', {}, '401 unauthorized'],
    ['none, on the human surface', '/api/v1/me/profile', {}, '401 unauthorized'],
    ['an unknown key', '/api/v1/agent/me', { 'x-api-key': NOBODY }, '401 unauthorized'],
    ['a placeholder', '/api/v1/agent/me', { 'x-api-key': 'proxy-managed' }, '401 unauthorized'],
    ['basic credentials', '/api/v1/agent/me', { authorization: 'Basic YTpi' }, '401 unauthorized'],
    ['a user key on the agent surface', '/api/v1/agent/me', { 'x-api-key': DEMO.user.apiKey }, '403 forbidden'],
    ['an agent key on the human surface', '/api/v1/me/profile', { 'x-api-key': DEMO.echo.apiKey }, '403 forbidden'],
  ])('%s', async (_name, path, headers, verdict) => {
    const { sandbox } = await sandboxLab();
    const answer = await callRest(sandbox.restUrl, 'GET', path, null, undefined, headers);
    expect(verdictOf(answer)).toBe(verdict);
    if (answer.status !== 200) errorShape.parse(answer.body);
  });
});
