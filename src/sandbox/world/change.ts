import { apply, type Fact } from './facts.js';
import type { Message, World } from './world.js';

/** A frame for somebody's socket, sent after the facts of the same change are kept. */
export interface Push {
  /** User or agent ids; those who are not connected or have not joined the topic get nothing. */
  readonly to: readonly string[];
  readonly topic: string;
  readonly event: string;
  /** Asked at most once, and only when somebody is there to read it. */
  readonly payload: () => object;
  /** The room whose members alone may get it; checked again at the moment of sending. */
  readonly roomId?: string;
  /** Getting the push counts as delivery of this message. */
  readonly delivers?: Message;
}

/** What one command does: facts, true at once, and the pushes that tell of them. */
export class Change {
  readonly world: World;
  readonly facts: Fact[] = [];
  readonly pushes: Push[] = [];

  constructor(world: World) {
    this.world = world;
  }

  add(fact: Fact): void {
    apply(this.world, fact);
    this.facts.push(fact);
  }

  push(push: Push): void {
    if (push.to.length > 0) this.pushes.push(push);
  }
}
