/** What makes a {@link PlatformMessage}. */
export interface PlatformMessageFields {
  readonly id: string;
  readonly roomId: string;
  readonly content: string;
  readonly senderId: string;
  readonly senderType: string;
  readonly senderName: string | null;
  readonly messageType: string;
  readonly metadata: unknown;
  readonly createdAt: Date;
}

/**
 * A message as adapters get it: nine fields, frozen. `metadata` is handed on as it came and belongs to its
 * author; mention tokens in `content` are already handles.
 */
export class PlatformMessage implements PlatformMessageFields {
  readonly id: string;
  readonly roomId: string;
  readonly content: string;
  readonly senderId: string;
  /** `User`, `Agent` or `System`. */
  readonly senderType: string;
  readonly senderName: string | null;
  readonly messageType: string;
  readonly metadata: unknown;
  readonly createdAt: Date;

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
    Object.freeze(this);
  }

  /** `[<sender>]: <content>`; the sender is the name, else the type, else `Unknown`. */
  formatForLlm(): string {
    // An empty name is as good as none.
    const sender = [this.senderName, this.senderType].find((name) => name) ?? 'Unknown';
    return `[${sender}]: ${this.content}`;
  }
}
