import { z } from 'zod';

/**
 * How a bridge carries the words of a brain out of the gateway at any time, beside the tools of one turn. Each call
 * resolves once what it was given is durable, and repeats of an id are written once.
 */
export interface Outlet {
  /** Words of somebody in the room, under their name. Markdown. Waits a while for the outside to take them. */
  answer(
    roomId: string,
    answer: {
      readonly id: string;
      readonly markdown: string;
      readonly from: { readonly id: string; readonly name: string };
    },
  ): Promise<void>;
  /** A short remark of the gateway itself. */
  notice(roomId: string, notice: { readonly id: string; readonly text: string }): Promise<void>;
  /** Shows or clears that somebody is at work; best effort. */
  waiting(roomId: string, on: boolean): void;
}

/** A brain that speaks by an {@link Outlet}; the bridge hands it over before `onStarted`. */
export interface OutsideBrain {
  connectOutlet(outlet: Outlet): void;
  /**
   * The person outside asks that work on the conversation stops.
   *
   * @returns false when the work itself goes on because this agent may not stop it
   */
  stopOutside(roomId: string): Promise<boolean>;
}

export function isOutsideBrain(adapter: object): adapter is OutsideBrain {
  return 'connectOutlet' in adapter && typeof adapter.connectOutlet === 'function';
}

const outsideSchema = z.object({
  /** Names this handing-over. A try after a crash has the same one; what somebody asks for once more has another. */
  delivery: z.string(),
  /** The world it came from, as people call it, e.g. `Slack`. */
  world: z.string(),
  /** The outside place whose settings apply, e.g. a channel's id. */
  place: z.string().nullable(),
  /** When it was written or accepted, whichever is earlier, in milliseconds since the epoch: nothing came of it before. */
  acceptedAt: z.number(),
  /** An earlier try may have reached the room: look before you write. */
  maybeDelivered: z.boolean(),
});

/** What a bridge says, under `metadata.outside`, of a message that a person wrote outside. */
export type OutsideOrigin = z.infer<typeof outsideSchema>;

/** The origin of a message from outside; null for one of the platform's. */
export function outsideOrigin(metadata: unknown): OutsideOrigin | null {
  const parsed = z.object({ outside: outsideSchema }).safeParse(metadata);
  return parsed.success ? parsed.data.outside : null;
}
