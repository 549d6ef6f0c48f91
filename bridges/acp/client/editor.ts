import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { ClientInfo } from '../conversation.js';

/** One editor's connection, as the sessions see it. */
export interface Editor {
  readonly id: string;
  /** Whose sessions it may see; null is the person at this host. */
  readonly principal: string | null;
  readonly client: ClientInfo | null;
  /** Whether the editor said that it shows notices. */
  readonly showsNotices: boolean;
  readonly isClosed: boolean;
  /** Queues an update in order; resolves when it was written or the connection is gone, never rejects. */
  update(sessionId: string, update: SessionUpdate): Promise<void>;
}
