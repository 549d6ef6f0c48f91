import { randomUUID } from 'node:crypto';

interface Answer {
  readonly result?: {
    readonly task?: {
      readonly id: string;
      readonly status: { readonly state: string };
      readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[];
    };
  };
}

/**
 * Sends a blocking A2A message to a peer behind a gateway.
 *
 * @returns the HTTP status, the task's state, and the text of its first artifact
 */
export async function a2aSend(
  gatewayUrl: string,
  peer: string,
  text: string,
  key?: string,
  messageId: string = randomUUID(),
  contextId?: string,
): Promise<{ status: number; state: string | null; taskId: string | null; text: string | null }> {
  const response = await fetch(`${gatewayUrl}/agents/${peer}`, {
    method: 'POST',
    headers: {
      'A2A-Version': '1.0',
      'Content-Type': 'application/json',
      ...(key === undefined ? {} : { 'X-API-Key': key }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: { messageId, role: 'ROLE_USER', parts: [{ text }], ...(contextId !== undefined && { contextId }) },
      },
    }),
  });
  const answer = (await response.json().catch(() => ({}))) as Answer;
  const task = answer.result?.task;
  return {
    status: response.status,
    state: task?.status.state ?? null,
    taskId: task?.id ?? null,
    text: task?.artifacts?.[0]?.parts[0]?.text ?? null,
  };
}
