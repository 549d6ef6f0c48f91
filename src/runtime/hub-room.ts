import type { Clock } from '../base/clock.js';
import type { NewId } from '../base/ids.js';
import type { Logger } from '../base/log.js';
import type { ContactEvent } from '../core/events.js';
import { CONTACT_EVENTS_SENDER } from '../core/synthetic.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import type { AgentRuntime } from './agent-runtime.js';
import { contactEventText, HUB_INSTRUCTION, type RequestFacts } from './contact-text.js';

export interface HubRoomDeps {
  readonly rest: Pick<BandRest, 'createChat' | 'postEvent'>;
  readonly runtime: Pick<AgentRuntime, 'presence' | 'pushSynthetic' | 'whenLive'> & { hubRoomId: string | null };
  readonly clock: Clock;
  readonly newId: NewId;
  readonly log: Logger;
  readonly taskId: string | null;
}

/**
 * The room that exists only to show contact events to the adapter. Each becomes a message that no platform knows, and
 * a task event that the room's history keeps.
 */
export class HubRoom {
  readonly #deps: HubRoomDeps;
  #instructed = false;

  constructor(deps: HubRoomDeps) {
    this.#deps = deps;
  }

  /** Makes the room and joins it. */
  async open(signal?: AbortSignal): Promise<void> {
    const { rest, runtime, taskId } = this.#deps;
    const { id } = await rest.createChat(taskId === null ? {} : { taskId }, { signal });
    runtime.hubRoomId = id;
    await runtime.presence.add(id);
  }

  /** Shows one event to the adapter, once the room is live. */
  async post(event: ContactEvent, facts: RequestFacts, signal: AbortSignal): Promise<void> {
    const { rest, runtime, clock, newId, log } = this.#deps;
    const roomId = runtime.hubRoomId;
    if (roomId === null) throw new Error('The hub room is not open.');
    await runtime.whenLive(roomId, signal);
    const text = contactEventText(event, facts);
    try {
      await rest.postEvent(
        roomId,
        { content: text, messageType: 'task', metadata: { contact_event: event.kind } },
        { signal },
      );
    } catch (error) {
      // The adapter is to see the event all the same; only the room's record of it is missing.
      log.warn({ err: error, roomId, kind: event.kind }, 'a contact event could not be written into the hub room');
    }
    const at = new Date(clock.now()).toISOString();
    runtime.pushSynthetic(roomId, {
      id: newId(),
      content: this.#instructed ? text : `${HUB_INSTRUCTION}\n\n${text}`,
      message_type: 'text',
      sender_id: CONTACT_EVENTS_SENDER.senderId,
      sender_type: CONTACT_EVENTS_SENDER.senderType,
      sender_name: CONTACT_EVENTS_SENDER.senderName,
      chat_room_id: roomId,
      metadata: {},
      inserted_at: at,
      updated_at: at,
    });
    this.#instructed = true;
  }
}
