import type { AgentInput } from '../core/agent-input.js';
import type { PlatformEvent } from '../core/events.js';
import type { ExecutionContext, Preprocessor } from '../core/preprocessor.js';

/** Hands every message to the adapter, with its history and notices; other events never reach it. */
export class DefaultPreprocessor implements Preprocessor {
  async process(ctx: ExecutionContext, event: PlatformEvent): Promise<AgentInput | null> {
    if (event.kind !== 'message_created') return null;
    return ctx.createInput(ctx.toMessage(event));
  }
}
