import type { AnyMessage } from '@agentclientprotocol/sdk';
import type { JsonRpcId } from '../client/json-rpc.js';
import { ACP_FAULTS, type AcpReason } from '../wire-faults.js';
import { createLineSplitter, idInHead, type LineSplitter } from './lines.js';

/** One line of the protocol: its bytes as they came, and what they say. */
export interface Frame {
  readonly bytes: Uint8Array;
  readonly message: AnyMessage;
}

export interface FrameHandlers {
  onFrame(frame: Frame): void;
  /** A line that is no frame, with the answer it gets. */
  onFault(answer: AnyMessage): void;
}

/** Reads frames out of bytes; what is broken is answered, and reading goes on. */
export function createFrameReader(maxBytes: number, handlers: FrameHandlers): LineSplitter {
  // Broken UTF-8 is refused rather than turned into replacement characters.
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return createLineSplitter(maxBytes, {
    onLine(bytes) {
      let message: unknown;
      try {
        message = JSON.parse(utf8.decode(bytes));
      } catch {
        handlers.onFault(faultAnswer(null, 'parse_error'));
        return;
      }
      if (typeof message !== 'object' || message === null || Array.isArray(message)) {
        handlers.onFault(faultAnswer(null, 'invalid_request'));
      } else handlers.onFrame({ bytes, message: message as AnyMessage });
    },
    onTooLong(head) {
      handlers.onFault(faultAnswer(idInHead(head), 'frame_too_large', { maxBytes }));
    },
  });
}

export function faultAnswer(id: JsonRpcId, reason: AcpReason, extra: Record<string, unknown> = {}): AnyMessage {
  const row: { readonly code: number; readonly text: string; readonly retryable?: boolean } = ACP_FAULTS[reason];
  const data = { reason, retryable: row.retryable ?? false, ...extra };
  return { jsonrpc: '2.0', id, error: { code: row.code, message: row.text, data } };
}

/** Separators that some readers take for line ends although JSON allows them in strings. */
const LINE_SEPARATORS = /[\u0085\u2028\u2029]/g;

/** A frame as one line, whatever is in it. */
export function encodeFrame(message: AnyMessage): string {
  const text = JSON.stringify(message);
  const safe = LINE_SEPARATORS.test(text)
    ? text.replace(LINE_SEPARATORS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : text;
  return `${safe}\n`;
}
