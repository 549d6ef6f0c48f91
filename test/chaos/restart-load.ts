import { a2aClient, type Body, type Stream } from '../support/a2a/client.js';
import type { AcpCommand } from '../support/acp/command.js';
import { PARTNER_KEY } from '../support/whole-service.js';
import { aMoment, type RestartWorld } from './restart-world.js';

/** How a task ended for a client that does not give up. */
export interface Ended {
  readonly text: string;
  readonly state: string | null;
  readonly answer: string | null;
  /** Streams that broke off in the middle instead of ending. */
  readonly cut: number;
}

const ENDS = ['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED'];

function clientOf({ url }: RestartWorld) {
  return a2aClient(url, { headers: { 'x-api-key': PARTNER_KEY } });
}

/** A blocking send, asked again under the same id until the task has ended. */
export async function send(world: RestartWorld, text: string, deadline: number): Promise<Ended> {
  for (let state: string | null = null; ;) {
    const task = await clientOf(world)
      .rpc('slow', 'SendMessage', { message: { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }] } })
      .then(({ body }) => taskOf(body))
      .catch(() => null);
    state = task?.state ?? state;
    if (task !== null && ENDS.includes(task.state)) return { text, ...task, cut: 0 };
    if (Date.now() > deadline) return { text, state, answer: null, cut: 0 };
    await aMoment();
  }
}

/** A stream, taken up again by subscription, until the task has ended. */
export async function stream(world: RestartWorld, text: string, deadline: number): Promise<Ended> {
  const message = { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }] };
  let taskId: string | null = null;
  let cut = 0;
  for (let state: string | null = null; ;) {
    const client = clientOf(world);
    const opened: Stream | null = await (
      taskId === null
        ? client.stream('slow', 'SendStreamingMessage', { message })
        : client.stream('slow', 'SubscribeToTask', { id: taskId })
    ).catch(() => null);
    try {
      for (const event of (await opened?.rest()) ?? []) taskId = taskIdOf(event) ?? taskId;
    } catch {
      cut += 1;
    }
    const task = await (taskId === null ? null : client.rpc('slow', 'GetTask', { id: taskId }))
      ?.then(({ body }) => stateOf(body.result))
      .catch(() => null);
    state = task?.state ?? state;
    if (task && ENDS.includes(task.state)) return { text, ...task, cut };
    if (Date.now() > deadline) return { text, state, answer: null, cut };
    await aMoment();
  }
}

function taskOf(body: Body): { state: string; answer: string | null } | null {
  return stateOf((body.result as Body['result'] | undefined)?.task);
}

function stateOf(task: Body['task'] | undefined): { state: string; answer: string | null } | null {
  if (!task) return null;
  const part = task.artifacts?.[0]?.parts[0] as { readonly text?: string } | undefined;
  return { state: task.status.state, answer: part?.text ?? null };
}

function taskIdOf({ result }: Body): string | null {
  const found = result as Partial<Body['result']> | undefined;
  return found?.task?.id ?? found?.statusUpdate?.taskId ?? found?.artifactUpdate?.taskId ?? null;
}

/** A prompt and how it ended: `answered`, or the reason that the editor was given. */
export interface Prompted {
  readonly text: string;
  readonly outcome: string;
}

/** A person in an editor, who asks one thing after another. */
export interface EditorUser {
  readonly prompts: readonly Prompted[];
  /** Resolves when so many were answered since now. */
  answered(count: number): Promise<void>;
  /** Lets the prompt under way end, then closes the editor. */
  close(): Promise<void>;
}

export function useEditor(command: AcpCommand, sessionId: string, name: string): EditorUser {
  const prompts: Prompted[] = [];
  let closing = false;
  const asking = (async () => {
    for (let n = 0; !closing; n += 1) {
      const text = `${name}-${n}`;
      const { result, error } = await command.prompt(sessionId, text);
      const reason = (error?.data as { readonly reason?: string } | undefined)?.reason;
      const stop = (result as { readonly stopReason?: string } | undefined)?.stopReason;
      prompts.push({
        text,
        outcome: error ? (reason ?? error.message) : stop === 'end_turn' ? 'answered' : String(stop),
      });
      await aMoment();
    }
  })();
  const failed = asking.catch((error: unknown) => error);
  const count = () => prompts.filter(({ outcome }) => outcome === 'answered').length;
  return {
    prompts,
    async answered(more) {
      const wanted = count() + more;
      await command.until(
        () => count() >= wanted,
        `${more} answers for ${name} (${JSON.stringify(prompts.slice(-3))})`,
      );
    },
    async close() {
      closing = true;
      const error = await failed;
      if (error !== undefined) throw error as Error;
      command.checkOutput();
      command.child.stdin.end();
      await command.ended();
    },
  };
}

/** What an editor shows of a session after loading it. */
export async function loadTranscript(
  command: AcpCommand,
  sessionId: string,
): Promise<{ readonly asked: readonly string[]; readonly said: readonly string[] }> {
  const from = command.frames.length;
  const { error } = await command.request('session/load', { sessionId, cwd: '/projects/demo', mcpServers: [] });
  if (error) throw new Error(JSON.stringify(error));
  const texts = (kind: string) =>
    command.frames.slice(from).flatMap(({ params }) => {
      const update = params?.['update'] as { sessionUpdate?: string; content?: { text?: string } } | undefined;
      return update?.sessionUpdate === kind ? [update.content?.text ?? ''] : [];
    });
  return { asked: texts('user_message_chunk'), said: texts('agent_message_chunk') };
}
