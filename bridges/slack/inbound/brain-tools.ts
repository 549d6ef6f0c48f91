import { z } from 'zod';
import { isGatewayError } from '../../../src/base/errors.js';
import { type CustomTool, withCustomTools } from '../../../src/core/custom-tools.js';
import type { AgentToolsProtocol, ToolCallOutcome } from '../../../src/core/tools.js';
import type { MentionRule, SlackOut, ThreadRef, TurnProgress } from '../outbound/port.js';

export interface BrainToolsDeps {
  readonly out: SlackOut;
  readonly thread: ThreadRef;
  /** Names the turn over restarts; what it posts is numbered below it. */
  readonly turnId: string;
  readonly mentions: MentionRule;
  /** Resolves once it is on disk that the turn has shown something. */
  readonly show: () => Promise<void>;
  readonly readFile: (fileId: string, offset: number) => Promise<unknown>;
  /** Told of every reply that Slack has or will get; never rejects. */
  readonly mirror?: (markdown: string) => Promise<void>;
}

export const REPLY_TOOL = 'slack_send_message';
const ACCEPTANCE_WAIT_MS = 30_000;
/** Tools that end a turn in the person's sight, and are no tasks of the progress message. */
const NOT_TASKS = new Set([REPLY_TOOL, 'slack_upload_file', 'slack_no_reply', 'band_no_reply']);
const EMPTY = `${REPLY_TOOL} requires a non-empty 'content'`;

/** A bound room's tools: the room's own, and those that reach the thread (S-120). */
export function withSlackTools(tools: AgentToolsProtocol, deps: BrainToolsDeps): AgentToolsProtocol {
  return withCustomTools(tools, [sendMessage(tools, deps), uploadFile(tools, deps), readFile(deps), noReply()]);
}

function sendMessage(tools: AgentToolsProtocol, deps: BrainToolsDeps): CustomTool {
  let ordinal = 0;
  const parameters = z.object({
    content: z.string({ error: EMPTY }).trim().min(1, EMPTY).describe('The reply, in standard Markdown.'),
    broadcast: z.boolean().optional().describe('Also shows it in the channel.'),
    silent_mentions: z.boolean().optional().describe('Pages nobody, whoever is mentioned.'),
  });
  return {
    name: REPLY_TOOL,
    description: 'Answers the person in their Slack thread.',
    parameters,
    effect: 'reply',
    async run(args) {
      if (tools.turn.ended) return ENDED;
      const { content, broadcast, silent_mentions: silent } = parameters.parse(args);
      await deps.show();
      const sent = await refusable(() =>
        deps.out.reply(deps.thread, {
          id: `${deps.turnId}:reply:${(ordinal += 1)}`,
          markdown: content,
          kind: 'reply',
          waitMs: ACCEPTANCE_WAIT_MS,
          ...(silent ? {} : { mentions: deps.mentions }),
          ...(broadcast === undefined ? {} : { broadcast }),
        }),
      );
      if (sent.state !== 'failed') await deps.mirror?.(content);
      return toResult(sent, (accepted) => ({ ok: true, ts: accepted.ts, permalink: accepted.permalink }));
    },
  };
}

function uploadFile(tools: AgentToolsProtocol, deps: BrainToolsDeps): CustomTool {
  let ordinal = 0;
  const parameters = z
    .object({
      filename: z.string().min(1),
      content: z.string().optional().describe('Text of the file.'),
      base64: z.base64().optional().describe('Bytes of the file.'),
      title: z.string().optional(),
      comment: z.string().optional().describe('Markdown shown with the file.'),
    })
    .refine((file) => (file.content === undefined) !== (file.base64 === undefined), {
      error: 'give one of content and base64',
    });
  return {
    name: 'slack_upload_file',
    description: 'Posts a file in the Slack thread.',
    parameters,
    effect: 'reply',
    async run(args) {
      if (tools.turn.ended) return ENDED;
      const { filename, content, base64, title, comment } = parameters.parse(args);
      await deps.show();
      const sent = await refusable(() =>
        deps.out.upload(deps.thread, {
          id: `${deps.turnId}:file:${(ordinal += 1)}`,
          filename,
          bytes: content === undefined ? Buffer.from(base64 ?? '', 'base64') : Buffer.from(content),
          mentions: deps.mentions,
          waitMs: ACCEPTANCE_WAIT_MS,
          ...(title === undefined ? {} : { title }),
          ...(comment === undefined ? {} : { comment }),
        }),
      );
      return toResult(sent, (accepted) => ({ ok: true, file_id: accepted.fileId, permalink: accepted.permalink }));
    },
  };
}

function readFile({ readFile: read }: BrainToolsDeps): CustomTool {
  const parameters = z.object({
    file_id: z.string().min(1),
    offset: z.int().min(0).default(0).describe('First byte to read.'),
  });
  return {
    name: 'slack_read_file',
    description: 'Reads a file that was posted in the thread: text, or a description of anything else.',
    parameters,
    async run(args) {
      const { file_id: fileId, offset } = parameters.parse(args);
      return await read(fileId, offset);
    },
  };
}

function noReply(): CustomTool {
  return {
    name: 'slack_no_reply',
    description: 'Ends the turn without an answer in Slack.',
    parameters: z.object({ reason: z.string().optional() }),
    effect: 'decline',
    run: () => Promise.resolve({ status: 'no_reply' }),
  };
}

const ENDED = { ok: false, error: 'turn_ended', detail: 'This turn has ended', retryable: false };

interface Refusal {
  readonly state: 'failed';
  readonly error: string;
  readonly detail: string;
}

/** A refusal of the outbox is an answer for the brain, not the end of its turn. */
async function refusable<T>(send: () => Promise<T>): Promise<T | Refusal> {
  try {
    return await send();
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    return { state: 'failed', error: error.code, detail: error.message };
  }
}

function toResult<S extends { readonly state: 'sent' }>(
  sent: S | { readonly state: 'queued' } | Refusal,
  accepted: (sent: S) => Record<string, unknown>,
): Record<string, unknown> {
  switch (sent.state) {
    case 'sent':
      return accepted(sent);
    case 'queued':
      return { ok: true, queued: true };
    case 'failed':
      return { ok: false, error: sent.error, detail: sent.detail, retryable: false };
  }
}

/** The same tools, each call of which shows as a task of the progress message (S-123). */
export function withProgress(tools: AgentToolsProtocol, progress: TurnProgress): AgentToolsProtocol {
  let calls = 0;
  const structured = async (name: string, args: Record<string, unknown>): Promise<ToolCallOutcome> => {
    if (NOT_TASKS.has(name)) return tools.executeToolCallStructured(name, args);
    const callId = String((calls += 1));
    progress.toolStarted(callId, name);
    try {
      const outcome = await tools.executeToolCallStructured(name, args);
      progress.toolEnded(callId, outcome.ok ? null : (outcome.errorMessage ?? 'failed'));
      return outcome;
    } catch (error) {
      progress.toolEnded(callId, error instanceof Error ? error.message : String(error));
      throw error;
    }
  };
  const own = {
    executeToolCallStructured: structured,
    executeToolCall: async (name: string, args: Record<string, unknown>) => (await structured(name, args)).value,
  };
  return replacing(tools, own);
}

/** The same tools; those of a brain that goes on after its turn are told of, since each of its calls is refused. */
export function withLateCount(tools: AgentToolsProtocol, onLate: () => void): AgentToolsProtocol {
  const noted =
    <A extends unknown[], R>(call: (...args: A) => R) =>
    (...args: A): R => {
      if (tools.turn.ended) onLate();
      return call(...args);
    };
  return replacing(tools, {
    executeToolCallStructured: noted((name: string, args: Record<string, unknown>) =>
      tools.executeToolCallStructured(name, args),
    ),
    executeToolCall: noted((name: string, args: Record<string, unknown>) => tools.executeToolCall(name, args)),
    sendMessage: noted((...args: Parameters<AgentToolsProtocol['sendMessage']>) => tools.sendMessage(...args)),
    sendEvent: noted((...args: Parameters<AgentToolsProtocol['sendEvent']>) => tools.sendEvent(...args)),
  });
}

function replacing(tools: AgentToolsProtocol, own: Partial<AgentToolsProtocol>): AgentToolsProtocol {
  return new Proxy(tools, {
    get(target, key) {
      if (Object.hasOwn(own, key)) return own[key as keyof typeof own];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}
