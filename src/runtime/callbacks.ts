import type { ContactEvent, ParticipantAddedEvent, ParticipantRemovedEvent } from '../core/events.js';
import type { ContactTools } from '../core/tools.js';

/** Takes one contact event, with tools to answer it. A throw is logged, and the event may be handed over again. */
export type ContactEventCallback = (event: ContactEvent, tools: ContactTools) => Promise<void> | void;

/** Somebody joined a room of the agent. Awaited; a throw is logged and never stops the room. */
export type ParticipantAddedCallback = (roomId: string, event: ParticipantAddedEvent) => Promise<void> | void;

/** Somebody left a room of the agent. Awaited; a throw is logged and never stops the room. */
export type ParticipantRemovedCallback = (roomId: string, event: ParticipantRemovedEvent) => Promise<void> | void;
