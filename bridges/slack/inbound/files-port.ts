import type { SlackMessage } from '../messages.js';
import type { ThreadRef } from '../outbound/port.js';

/** Files that people post, as a brain gets them. Nothing here throws for a file that cannot be had: it says why. */
export interface FilesIn {
  /**
   * Takes the files of a message in.
   *
   * @returns one entry per file for the message's metadata, and text files as Markdown to stand below the message
   */
  take(
    thread: ThreadRef,
    message: SlackMessage,
    signal: AbortSignal,
  ): Promise<{ readonly listed: readonly Readonly<Record<string, unknown>>[]; readonly inline: string }>;
  /** Text of a file from an offset in bytes, at most 256 KiB, or a description of a file that is not text. */
  read(thread: ThreadRef, fileId: string, offset: number, signal: AbortSignal): Promise<unknown>;
}
