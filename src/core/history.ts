/** One entry of a room's past, oldest first in a list. */
export interface RawHistoryMessage {
  readonly id: string;
  /** `assistant` for every agent's words, `user` for everyone else's. */
  readonly role: 'assistant' | 'user';
  readonly content: string;
  readonly senderName: string | null;
  readonly senderType: string;
  readonly messageType: string;
  readonly metadata: unknown;
  readonly createdAt: Date;
}

/** Turns raw history into what a model or framework wants. */
export interface HistoryConverter<T> {
  convert(raw: readonly RawHistoryMessage[]): T;
  /** Tells the converter who "assistant" is, before the first conversion. */
  setAgentName?(name: string): void;
}

/** A room's past, kept raw and converted only when somebody asks; frozen. */
export class HistoryProvider {
  readonly raw: readonly RawHistoryMessage[];

  constructor(raw: readonly RawHistoryMessage[]) {
    this.raw = Object.freeze(raw.map((entry) => Object.freeze({ ...entry })));
    Object.freeze(this);
  }

  get length(): number {
    return this.raw.length;
  }

  get isEmpty(): boolean {
    return this.raw.length === 0;
  }

  /** Converts now; each call converts again. */
  convert<T>(converter: HistoryConverter<T>): T {
    return converter.convert(this.raw);
  }
}

/** No past at all: what every turn after a session's first one gets. */
export const NO_HISTORY = new HistoryProvider([]);
