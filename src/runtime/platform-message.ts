import type { PlatformMessageFields } from '../core/platform-message.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A room's message as the runtime handles it: the nine fields of what adapters get, free to change. Adapters get the
 * frozen class of the same name from the core entry.
 */
export class PlatformMessage implements Mutable<PlatformMessageFields> {
  id: string;
  roomId: string;
  content: string;
  senderId: string;
  senderType: string;
  senderName: string | null;
  messageType: string;
  metadata: unknown;
  createdAt: Date;

  constructor(fields: PlatformMessageFields) {
    this.id = fields.id;
    this.roomId = fields.roomId;
    this.content = fields.content;
    this.senderId = fields.senderId;
    this.senderType = fields.senderType;
    this.senderName = fields.senderName;
    this.messageType = fields.messageType;
    this.metadata = fields.metadata;
    this.createdAt = fields.createdAt;
  }

  /** `[<sender>]: <content>`; the sender is the name, else the type. */
  formatForLlm(): string {
    return `[${[this.senderName, this.senderType].find((name) => name) ?? ''}]: ${this.content}`;
  }
}
