import { onTestFinished } from 'vitest';
import { DEMO, startSandbox, type Sandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { openRawSocket, type RawSocket } from './raw-socket.js';
import { callRest, type RestAnswer } from './rest-call.js';

export type Json = Record<string, unknown>;

/** Somebody with a key, at one surface of a sandbox. */
export interface Caller {
  readonly apiKey: string;
  readonly get: (path: string) => Promise<RestAnswer>;
  readonly post: (path: string, body?: unknown) => Promise<RestAnswer>;
  readonly put: (path: string, body?: unknown) => Promise<RestAnswer>;
  readonly patch: (path: string, body?: unknown) => Promise<RestAnswer>;
  readonly delete: (path: string) => Promise<RestAnswer>;
  /** An open socket, closed when the test has finished. */
  readonly socket: (query?: string) => Promise<RawSocket>;
}

export interface SandboxLab {
  readonly sandbox: Sandbox;
  readonly user: Caller;
  readonly echo: Caller;
  readonly dice: Caller;
  readonly gateway: Caller;
  readonly agent: (apiKey: string) => Caller;
  readonly person: (apiKey: string) => Caller;
  /** A room of the demo person with these participants. @returns its id */
  readonly room: (...participantIds: string[]) => Promise<string>;
  /** A text of the demo person that mentions these ids. @returns its id */
  readonly say: (roomId: string, content: string, ...mentionIds: string[]) => Promise<string>;
}

/** A sandbox for one test, with the demo seed unless told otherwise, and its inhabitants. */
export async function sandboxLab(options: SandboxOptions = {}): Promise<SandboxLab> {
  const sandbox = await startSandbox({ port: 0, ...options });
  onTestFinished(() => sandbox.close());
  const caller = (surface: string, apiKey: string): Caller => {
    const call = (method: string) => (path: string, body?: unknown) =>
      callRest(sandbox.restUrl, method, `/api/v1/${surface}${path}`, apiKey, body);
    return {
      apiKey,
      get: call('GET'),
      post: call('POST'),
      put: call('PUT'),
      patch: call('PATCH'),
      delete: call('DELETE'),
      async socket(query = '') {
        const socket = await openRawSocket(`${sandbox.wsUrl}?api_key=${apiKey}&vsn=2.0.0${query}`);
        onTestFinished(() => {
          socket.drop();
        });
        return socket;
      },
    };
  };
  const user = caller('me', DEMO.user.apiKey);
  return {
    sandbox,
    user,
    echo: caller('agent', DEMO.echo.apiKey),
    dice: caller('agent', DEMO.dice.apiKey),
    gateway: caller('agent', DEMO.gateway.apiKey),
    agent: (apiKey) => caller('agent', apiKey),
    person: (apiKey) => caller('me', apiKey),
    async room(...participantIds) {
      const roomId = idOf(await user.post('/chats', { chat: {} }));
      for (const participantId of participantIds) {
        accepted(await user.post(`/chats/${roomId}/participants`, { participant: { participant_id: participantId } }));
      }
      return roomId;
    },
    say: async (roomId, content, ...mentionIds) =>
      idOf(
        await user.post(`/chats/${roomId}/messages`, {
          message: { content, mentions: mentionIds.map((id) => ({ id })) },
        }),
      ),
  };
}

/** The answer, if it is a success. */
export function accepted(answer: RestAnswer): RestAnswer {
  if (answer.status >= 300) throw new Error(`expected a success, got ${answer.status} ${answer.text}`);
  return answer;
}

export const dataOf = (answer: RestAnswer): Json => (accepted(answer).body as { data: Json }).data;
export const rowsOf = (answer: RestAnswer): Json[] => (accepted(answer).body as { data: Json[] }).data;
export const idOf = (answer: RestAnswer): string => String(dataOf(answer)['id']);
export const metadataOf = (answer: RestAnswer): Json => (accepted(answer).body as { metadata: Json }).metadata;

/** Status and error code of an answer, e.g. `422 mentions_required`; the status alone for a success. */
export function verdictOf({ status, body }: RestAnswer): string {
  if (status < 300) return String(status);
  const { error } = body as { error: { code: string; request_id: string; message: string } };
  if (!error.request_id || !error.message) throw new Error('an error envelope without request_id or message');
  return `${status} ${error.code}`;
}

/** The fields that a 422 complains about, as JSON pointers. */
export const pointersOf = ({ body }: RestAnswer): string[] =>
  Object.keys((body as { error: { details?: Json } }).error.details ?? {});
