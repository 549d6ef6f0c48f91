import type { Execution, Message, Participant, Profile, Room } from './wire.js';

/** The platform said no; the message is for the person at the page. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface MessagePage {
  /** Oldest first. */
  readonly messages: readonly Message[];
  /** Where older ones go on; null when there are none. */
  readonly older: string | null;
}

/** The human surface of the platform, one function per call. Each throws a {@link Refusal} for a non-2xx answer. */
export function createApi(apiKey: string) {
  async function call(method: string, path: string, body?: unknown): Promise<Envelope> {
    const response = await fetch(`/api/v1/me${path}`, {
      method,
      headers: { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json().catch(() => ({}))) as Envelope;
    if (!response.ok)
      throw new Refusal(response.status, answer.error?.message ?? `The platform answered ${response.status}`);
    return answer;
  }
  const data = async <T>(method: string, path: string, body?: unknown): Promise<T> =>
    (await call(method, path, body)).data as T;

  return {
    profile: () => data<Profile>('GET', '/profile'),
    rooms: () => data<readonly Room[]>('GET', '/chats?limit=100'),
    createRoom: (title: string) => data<Room>('POST', '/chats', { chat: { title: title === '' ? null : title } }),
    deleteRoom: (roomId: string) => data<unknown>('DELETE', `/chats/${roomId}`),
    participants: (roomId: string) => data<readonly Participant[]>('GET', `/chats/${roomId}/participants?limit=100`),
    addParticipant: (roomId: string, participantId: string) =>
      data<Participant>('POST', `/chats/${roomId}/participants`, { participant: { participant_id: participantId } }),
    removeParticipant: (roomId: string, participantId: string) =>
      data<unknown>('DELETE', `/chats/${roomId}/participants/${participantId}`),
    addable: (roomId: string) => data<readonly Participant[]>('GET', `/peers?not_in_chat=${roomId}&page_size=100`),
    async messages(roomId: string, cursor: string | null): Promise<MessagePage> {
      const more = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { data: newest, metadata } = await call('GET', `/chats/${roomId}/messages?limit=100${more}`);
      return {
        messages: (newest as Message[]).toReversed(),
        older: metadata?.has_more ? (metadata.next_cursor ?? null) : null,
      };
    },
    post: (roomId: string, content: string, mentionIds: readonly string[]) =>
      data<unknown>('POST', `/chats/${roomId}/messages`, {
        message: { content, mentions: mentionIds.map((id) => ({ id })) },
      }),
    executions: (agentId: string) => data<readonly Execution[]>('GET', `/agents/${agentId}/executions`),
    control: (roomId: string, agentId: string | null, mode: 'stop' | 'play' | 'interrupt') =>
      data<unknown>('POST', `/chats/${roomId}/agents/${agentId === null ? '' : `${agentId}/`}${mode}`),
  };
}

export type Api = ReturnType<typeof createApi>;

interface Envelope {
  readonly data?: unknown;
  readonly metadata?: Page;
  readonly error?: { readonly message?: string };
}

interface Page {
  readonly has_more?: boolean;
  readonly next_cursor?: string | null;
}
