import { isGatewayError } from '../../../src/base/errors.js';
import type { Logger } from '../../../src/base/log.js';
import { postMessage } from '../web-methods.js';
import { ownMetadata, withControls } from './compose.js';
import type { OutInstallation } from './faults.js';
import { digest } from './jobs.js';
import type { LookUpPlace } from './look-up.js';
import type { ControlButton } from './port.js';
import { CONTROLS_TEXT } from './post-steps.js';

/** The buttons of a drawing that Slack takes as a text alone: a message of their own, as long as there are any. */
export class LooseControls {
  readonly #name: string;
  readonly #log: Logger;
  #shown = '[]';
  #ts: string | null = null;

  /** @param name - of what is drawn, in every process */
  constructor(name: string, log: Logger) {
    this.#name = name;
    this.#log = log;
  }

  /** Best effort, as the drawing itself: never throws, except for an abort. */
  async show(
    { client }: OutInstallation,
    { channel, threadTs }: LookUpPlace,
    buttons: readonly ControlButton[],
    signal: AbortSignal,
  ): Promise<void> {
    const wanted = JSON.stringify(buttons);
    if (wanted === this.#shown) return;
    // What fails is not tried again for the same buttons: a second row of them would be worse than none.
    this.#shown = wanted;
    const message = { channel, text: CONTROLS_TEXT, blocks: withControls(CONTROLS_TEXT, buttons) };
    const ts = this.#ts;
    try {
      if (ts !== null && buttons.length > 0) await client.call('chat.update', { ...message, ts }, { signal });
      else if (ts !== null) {
        this.#ts = null;
        await client.call('chat.delete', { channel, ts }, { signal });
      } else if (buttons.length > 0) {
        const thread = threadTs === null ? {} : { thread_ts: threadTs };
        const metadata = ownMetadata(digest('controls', this.#name), 'control');
        this.#ts = (await postMessage(client, { ...message, ...thread, metadata }, { signal })).ts;
      }
    } catch (error) {
      if (signal.aborted || !isGatewayError(error)) throw error;
      this.#log.info({ err: error, channel }, 'buttons of a drawing not shown');
    }
  }
}
