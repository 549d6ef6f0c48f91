import { systemClock, type Clock } from '../../../src/base/clock.js';
import { takeAck } from './acks.js';
import * as admin from './administration.js';
import type { AppSpec, InstallSpec } from './app-specs.js';
import { createCore, type Core, type Ping } from './core.js';
import { Deliveries, signedRequest, type Delivery } from './delivery.js';
import { DoubleServer, type OtherRequest } from './double-server.js';
import { emitLifecycle, watchWorld, type Outgoing } from './events.js';
import { Faults, type FaultSpec } from './faults.js';
import { visibleStatus } from './methods-other.js';
import { Objections } from './objections.js';
import { createPerson, type Person } from './people.js';
import * as population from './population.js';
import { SocketDoor } from './sockets.js';
import { openModals, visibleEphemerals, visibleMessages, type VisibleMessage } from './visible.js';
import { Watchers } from './watchers.js';
import { WebApi, type LoggedCall } from './web-api.js';
import {
  createWorld,
  messageJson,
  type App,
  type Channel,
  type Installation,
  type Json,
  type Message,
  type SlackFileRecord,
  type Team,
  type User,
  type World,
} from './world.js';

export { USUAL_EVENTS, USUAL_SCOPES, type AppSpec, type InstallSpec } from './app-specs.js';
export type { VisibleMessage } from './visible.js';
export type { Said, Person } from './people.js';
export type { Delivery } from './delivery.js';
export type { FaultSpec, FaultEffect } from './faults.js';
export type { LoggedCall } from './web-api.js';
export type { App, Channel, Installation, Json, Message, Team, User } from './world.js';

export interface SlackDoubleOptions {
  readonly clock?: Clock;
  /** Counts and refuses as Slack does; default true. */
  readonly rates?: boolean;
  /** Default Math.random; a seeded one makes a run repeatable. */
  readonly random?: () => number;
}

const LAST_CALLS = 8;

/**
 * Slack on loopback: the real SDKs talk to it by HTTP and WebSocket. It keeps a world, enforces Slack's limits and
 * rules, makes the faults it is told to, and lets tests act as people.
 */
export class SlackDouble {
  readonly world: World;
  readonly core: Core;
  readonly faults: Faults;
  readonly web: WebApi;
  readonly sockets: SocketDoor;
  readonly events: Deliveries;
  readonly clock: Clock;
  /** For `slackApiUrl`. */
  apiUrl = '';
  origin = '';
  readonly #server: DoubleServer;
  readonly #objections: Objections;
  readonly #watchers: Watchers;
  #rates: boolean;

  constructor({ clock = systemClock, rates = true, random = Math.random }: SlackDoubleOptions = {}) {
    this.clock = clock;
    this.#rates = rates;
    this.world = createWorld(clock);
    this.core = createCore(this.world);
    this.faults = new Faults(random);
    this.#objections = new Objections(this.core, this.faults);
    this.#watchers = new Watchers(() =>
      this.calls()
        .slice(-LAST_CALLS)
        .map((call) => `${call.method}=${call.outcome}`)
        .join(', '),
    );
    const touched = () => {
      this.#watchers.touch();
    };
    this.sockets = new SocketDoor({ world: this.world, random, touched });
    this.events = new Deliveries({
      clock,
      sockets: this.sockets,
      touched,
      acked: (outgoing, payload) => {
        takeAck(this.core, outgoing, payload);
      },
    });
    this.web = new WebApi({
      core: this.core,
      faults: this.faults,
      enforceRates: () => this.#rates,
      openSocketUrl: (app) => this.sockets.ticket(app),
      touched,
    });
    watchWorld(this.core, this.#emit);
    this.core.watchers.push(touched);
    this.#server = new DoubleServer({
      core: this.core,
      faults: this.faults,
      web: this.web,
      sockets: this.sockets,
      touched,
    });
  }

  async start(): Promise<this> {
    await this.#server.start();
    this.origin = this.#server.origin;
    this.apiUrl = `${this.origin}/api/`;
    this.world.baseUrl = this.origin;
    return this;
  }

  async stop(): Promise<void> {
    await this.events.stop();
    await this.sockets.stop();
    await this.#server.stop();
  }

  // The world

  team(spec: Partial<Team> = {}): Team {
    return population.addTeam(this.world, spec);
  }

  app(spec: AppSpec = {}): App {
    return population.addApp(this.world, spec);
  }

  install(app: App, team: Team, spec: InstallSpec = {}): Installation {
    return population.installApp(this.world, app, team, spec);
  }

  user(team: Team, spec: Partial<User> & { name: string }): User {
    return population.addUser(this.world, team, spec);
  }

  channel(team: Team, spec: population.ChannelSpec): Channel {
    return population.addChannel(this.world, team, spec);
  }

  /** The direct-message channel of a person with an app's bot. */
  directChannel(user: User, installation: Installation): Channel {
    return population.directChannel(this.world, user, installation);
  }

  /** @param app - whose buttons and commands the person uses; default the first app */
  person(user: User, app?: App): Person {
    const own = () => app ?? [...this.world.apps.values()][0]!;
    return createPerson(
      {
        core: this.core,
        app: own,
        send: (outgoing) => this.events.send(outgoing),
        placeOf: (place, who) => population.channelAt(this.world, place, who, own()),
      },
      user,
    );
  }

  /** A message of another bot. */
  otherBotSays(channel: Channel, fields: admin.OtherBotFields): Message {
    return admin.otherBotSays(this.core, channel, fields);
  }

  archive(channel: Channel, archived: boolean): void {
    admin.archive(this.core, channel, archived, this.#emit);
  }

  invite(channel: Channel, userId: string): void {
    channel.members.add(userId);
    this.core.change({ kind: 'joined', channel, user: userId });
  }

  changeUser(user: User, change: Partial<User>): void {
    admin.changeUser(this.core, user, change, this.#emit);
  }

  uninstall(installation: Installation): void {
    admin.uninstall(this.core, installation, this.#emit);
  }

  readonly #emit = (outgoing: Outgoing): void => {
    this.events.send(outgoing);
  };

  /** Any event, in a correct envelope. */
  emitEvent(app: App, teamId: string, event: Json): void {
    emitLifecycle(this.core, teamId, event, (outgoing) => {
      if (outgoing.app === app) this.events.send(outgoing);
    });
  }

  /** A payload exactly as given, signed and delivered by the app's transport with Slack's repeats. */
  deliverRaw(app: App, body: Json, kind: Outgoing['kind'] = 'events_api'): Delivery | null {
    return this.events.send({
      app,
      kind,
      eventId: typeof body['event_id'] === 'string' ? body['event_id'] : null,
      type: String(body['type']),
      body,
    });
  }

  /** The signed request for a payload, to be sent by the test itself. */
  signed(
    app: App,
    body: Json,
    kind: Outgoing['kind'] = 'events_api',
  ): { headers: Record<string, string>; body: Buffer } {
    return signedRequest(app, { kind, body }, this.clock.now());
  }

  // Faults

  fault(spec: FaultSpec): { readonly hits: () => number; disarm(): void } {
    return this.faults.arm(spec);
  }

  /** The next requests to response URLs are answered with 503, and still count as uses. */
  respondFails(times: number): void {
    this.#server.respondFails(times);
  }

  /** New connections are reset, live ones cut, until switched off. */
  refuseConnections(refusing: boolean): void {
    this.#server.refuseConnections(refusing);
  }

  enforceRates(on: boolean): void {
    this.#rates = on;
  }

  // What there is to see

  /** A channel's top level, or a thread with its root, as a person sees it. */
  messages(channel: string | Channel, threadTs?: string, viewer?: string): VisibleMessage[] {
    return visibleMessages(this.world, this.#channel(channel), threadTs, viewer);
  }

  /** Only what an app wrote into a thread. */
  botMessages(channel: string | Channel, threadTs: string): VisibleMessage[] {
    return this.messages(channel, threadTs).filter((one) => one.fromBot);
  }

  /** Everything only this person sees. */
  ephemerals(channel: string | Channel, viewer: string): VisibleMessage[] {
    return visibleEphemerals(this.world, this.#channel(channel), viewer);
  }

  #channel(channel: string | Channel): Channel {
    return typeof channel === 'string' ? this.world.channels.get(channel)! : channel;
  }

  /** The modals a person has before them, the newest last. */
  modals(user: string): Json[] {
    return openModals(this.world, user);
  }

  raw(channel: Channel, ts: string): Json | null {
    const message = channel.messages.find((one) => one.ts === ts);
    return message ? messageJson(this.world, channel, message, true) : null;
  }

  status(channel: string, threadTs: string): string | null {
    return visibleStatus(this.world, channel, threadTs);
  }

  calls(method?: string): LoggedCall[] {
    return method === undefined ? this.web.calls : this.web.calls.filter((call) => call.method === method);
  }

  /** Requests to places other than the Web API: uploads, downloads, response URLs. */
  get otherRequests(): readonly OtherRequest[] {
    return this.#server.otherRequests;
  }

  deliveries(): readonly Delivery[] {
    return this.events.log;
  }

  files(): SlackFileRecord[] {
    return [...this.world.files.values()];
  }

  pings(): readonly Ping[] {
    return this.core.pings;
  }

  /** The test means this mention to be live. */
  expectPing(id: string): void {
    this.#objections.expectPing(id);
  }

  /** The test means this violation, leak or unknown method to happen. */
  allow(pattern: RegExp): void {
    this.#objections.allow(pattern);
  }

  violations(): readonly string[] {
    return this.core.violations;
  }

  leaks(): readonly string[] {
    return this.core.leaks;
  }

  /** Throws when a limit was broken, a token leaked, somebody was paged unexpectedly, or an armed fault never met. */
  check(): void {
    this.#objections.check();
  }

  /** Resolves as soon as `holds` is true, looking again after everything that happens. */
  async until(holds: () => boolean, what = 'the expected state', limitMs = 8_000): Promise<void> {
    await this.#watchers.until(holds, what, limitMs);
  }

  /** Nothing is on its way in either direction; `idle` adds what the bridge says about itself. */
  async settled(...idle: (() => Promise<void>)[]): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await this.until(() => this.web.inFlight === 0 && this.events.inFlight === 0, 'quiet');
      for (const wait of idle) await wait();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

export async function startSlackDouble(options?: SlackDoubleOptions): Promise<SlackDouble> {
  return await new SlackDouble(options).start();
}
