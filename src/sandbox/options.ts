import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import type { NewId } from '../base/ids.js';
import type { Logger } from '../base/log.js';

/** A person that a seed creates. What is left out is made up. */
export interface SeedUser {
  /** `[a-z0-9._-]+`, unique. */
  readonly handle: string;
  readonly name: string;
  /** Default `<handle>@sandbox.invalid`. */
  readonly email?: string | undefined;
  readonly id?: string | undefined;
  /** Default `band_u_` and random characters. */
  readonly apiKey?: string | undefined;
}

/** An agent that a seed creates, owned by a user of the same seed or of the world it is added to. */
export interface SeedAgent {
  readonly ownerHandle: string;
  readonly name: string;
  /** Not blank: a runtime refuses to start an agent without one. */
  readonly description: string;
  readonly id?: string | undefined;
  /** Default `band_a_` and random characters. */
  readonly apiKey?: string | undefined;
  /** Every agent and user may add it to a room. Default false. */
  readonly global?: boolean | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** Who exists before the first call. */
export interface Seed {
  readonly users: readonly SeedUser[];
  readonly agents: readonly SeedAgent[];
}

/** Upper bounds of what one sandbox holds; reaching one answers 403 `limit_reached`. */
export interface SandboxLimits {
  readonly users: number;
  readonly agents: number;
  readonly rooms: number;
  readonly participantsPerRoom: number;
  readonly messagesPerRoom: number;
  /** Over all rooms. */
  readonly messages: number;
  /** Settled ones included. */
  readonly contactRequests: number;
}

export interface SandboxOptions {
  /** 0 takes any free port. Default 4000. */
  readonly port?: number;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Folder that keeps ids, keys, rooms, messages, delivery states and stops; null keeps all in memory. Default null. */
  readonly dataDir?: string | null;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Applied to an empty world only, so a restart on a data folder keeps what is there. Default `demo`. */
  readonly seed?: Seed | 'demo' | 'empty';
  readonly newId?: NewId;
  /** Random numbers in [0, 1), for invented keys. Default: cryptographic ones. */
  readonly random?: () => number;
  readonly limits?: Partial<SandboxLimits>;
  /** Bytes that may wait for one socket's reader before that socket is cut off. Default 8 MiB. */
  readonly slowReaderBytes?: number;
  /** When set, `/dev/v1` wants it as a bearer token; otherwise that surface answers loopback callers only. */
  readonly devToken?: string;
  /**
   * Serves whatever the platform itself does not (a console page at `/`).
   *
   * @returns false when it does not know the path, which is then answered with the 404 envelope
   */
  readonly extraRoutes?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

/** A running sandbox. */
export interface Sandbox {
  /** E.g. `http://127.0.0.1:4000`. */
  readonly restUrl: string;
  /** E.g. `ws://127.0.0.1:4000/api/v1/socket/websocket`. */
  readonly wsUrl: string;
  readonly port: number;
  /** The development surface without HTTP. */
  readonly dev: SandboxDev;
  /** Closes sockets with 1012, ends open requests and gives the port and the folder back. Safe to repeat. */
  close(): Promise<void>;
}

export interface NewUser {
  readonly id: string;
  readonly handle: string;
  readonly apiKey: string;
}

export interface NewAgent extends NewUser {
  readonly ownerId: string;
}

/** Which REST calls a fault meets and what it does to them. */
export interface RestFault {
  readonly method?: string | undefined;
  /** A path; `*` stands for any run of characters. Default: every path below `/api/v1`. */
  readonly path?: string | undefined;
  /** Only calls with this agent's or user's key. */
  readonly callerId?: string | undefined;
  /** How many matching calls it meets; default 1. */
  readonly times?: number | undefined;
  /** Matching calls it lets pass first; default 0. */
  readonly skip?: number | undefined;
  /** Answers with this instead of doing anything. Absent, the call is carried out. */
  readonly status?: number | undefined;
  /** With `status`: an object is sent as JSON, a string as plain text, null as no body. Default: the error envelope. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Waits this long before anything else. */
  readonly delayMs?: number | undefined;
  /** `before`: breaks the connection without doing anything; `after`: carries the call out, then breaks it. */
  readonly drop?: 'before' | 'after' | undefined;
}

/** What happens to upgrade requests. */
export interface UpgradeFault {
  /** `refuse` answers `status`; `hold` answers nothing until the faults are cleared. */
  readonly mode: 'refuse' | 'hold';
  /** Only this agent's or user's; default everybody's. */
  readonly principalId?: string | undefined;
  /** 403 (empty body), 429 or 503; default 503. */
  readonly status?: number | undefined;
  /** Seconds, sent with 429. */
  readonly retryAfter?: number | undefined;
  /** How many upgrades it meets; default all until cleared. */
  readonly times?: number | undefined;
}

/** What happens to the next matching pushes. */
export interface PushFault {
  /** `withhold` keeps them back until {@link SandboxDev.releasePushes}; `drop` loses them for good. */
  readonly mode: 'duplicate' | 'withhold' | 'drop';
  readonly principalId?: string | undefined;
  readonly event?: string | undefined;
  /** Default 1. */
  readonly times?: number | undefined;
}

/** Switches that stay until changed. */
export interface SandboxSwitches {
  /** After an eviction, another take-over within this time is answered 429. 0 is off, the default. */
  readonly takeoverCooldownMs: number;
  /** Whether an agent's own rows in `/context` carry `delivery_status`. Default true. */
  readonly deliveryStatusOnOwnRows: boolean;
  /**
   * Whether `processing` on a message that is being processed leaves its attempt as it is, as newer platforms say they
   * do, instead of opening another. Default false.
   */
  readonly repeatedProcessingKeepsAttempt: boolean;
}

export interface DevSocket {
  readonly principalId: string;
  readonly kind: 'Agent' | 'User';
  readonly topics: readonly string[];
}

export interface DevMessage {
  readonly id: string;
  readonly content: string;
  readonly messageType: string;
  readonly senderId: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly insertedAt: string;
  /** By agent id, with attempts, as in the wire's `delivery_status`. */
  readonly deliveries: Readonly<Record<string, unknown>>;
}

export interface DevRoom {
  readonly id: string;
  readonly title: string;
  readonly participants: readonly { readonly id: string; readonly type: string; readonly role: string }[];
  readonly stopped: readonly string[];
  readonly messages: readonly DevMessage[];
}

export interface DevState {
  readonly users: readonly { readonly id: string; readonly handle: string; readonly name: string }[];
  readonly agents: readonly { readonly id: string; readonly handle: string; readonly name: string }[];
  readonly rooms: readonly DevRoom[];
  readonly sockets: readonly DevSocket[];
}

/** Adds people and agents, breaks things on purpose, and shows what is inside. */
export interface SandboxDev {
  /** @throws {GatewayError} `SANDBOX_REFUSED` when a handle, id or key is taken or malformed; so do {@link addAgent} and {@link reset} */
  addUser(user: SeedUser): NewUser;
  addAgent(agent: SeedAgent): NewAgent;
  /** Empties the world, closes every socket, clears the faults and applies the seed again. */
  reset(seed?: Seed | 'demo' | 'empty'): void;
  state(): DevState;

  /** Ends a principal's sockets with a close code; 1006 drops the TCP connection. @returns how many */
  closeSockets(principalId: string, code: number, reason?: string): number;
  /** Ends one channel of a principal with `phx_error`. @returns how many were joined */
  crashChannel(principalId: string, topic: string): number;
  faultUpgrades(fault: UpgradeFault): void;
  faultRest(fault: RestFault): void;
  faultPushes(fault: PushFault): void;
  /** Sends what was withheld, in order. @returns how many */
  releasePushes(): number;
  /** Forgets every fault; held upgrades go on, withheld pushes are sent. */
  clearFaults(): void;
  set(switches: Partial<SandboxSwitches>): void;
}
