import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { createCore, emptyMessage, type Core, type Ping } from './core.js';
import { Deliveries, signedRequest, type Delivery } from './delivery.js';
import { emitLifecycle, watchWorld, type Outgoing } from './events.js';
import { Faults, type FaultSpec } from './faults.js';
import { USUAL_EVENTS, USUAL_SCOPES, type AppSpec, type InstallSpec } from './app-specs.js';
import { answerOther } from './other-routes.js';
import { takeAck } from './acks.js';
import { visibleMessage, type VisibleMessage } from './visible.js';
import { visibleStatus } from './methods-other.js';
import { createPerson, type Person } from './people.js';
import { SocketDoor } from './sockets.js';
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
  /** Requests to places other than the Web API: uploads, downloads, response URLs. */
  readonly otherRequests: { path: string; authorization: string | null; status: number }[] = [];
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  readonly #watchers = new Set<() => void>();
  #responseFailures = 0;
  readonly #expectedPings = new Set<string>();
  readonly #allowed: RegExp[] = [];
  #rates: boolean;
  #refusing = false;

  constructor({ clock = systemClock, rates = true, random = Math.random }: SlackDoubleOptions = {}) {
    this.clock = clock;
    this.#rates = rates;
    this.world = createWorld(clock);
    this.core = createCore(this.world);
    this.faults = new Faults(random);
    const touched = () => {
      this.#touch();
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
    watchWorld(this.core, (outgoing) => {
      this.events.send(outgoing);
    });
    this.core.watchers.push(touched);
    this.#server = createServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket, head: Buffer) => {
      this.sockets.upgrade(request, socket, head);
    });
    this.#server.on('connection', (socket: Socket) => {
      if (this.#refusing) {
        socket.resetAndDestroy();
        return;
      }
      this.#connections.add(socket);
      socket.on('close', () => this.#connections.delete(socket));
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo;
    this.origin = `http://127.0.0.1:${port}`;
    this.apiUrl = `${this.origin}/api/`;
    this.world.baseUrl = this.origin;
    return this;
  }

  async stop(): Promise<void> {
    await this.events.stop();
    await this.sockets.stop();
    for (const socket of this.#connections) socket.destroy();
    await new Promise<void>((resolve) =>
      this.#server.close(() => {
        resolve();
      }),
    );
  }

  // The world

  team(spec: Partial<Team> = {}): Team {
    const team: Team = {
      id: spec.id ?? this.world.nextId('T'),
      name: spec.name ?? 'Acme',
      domain: spec.domain ?? 'acme',
      enterpriseId: spec.enterpriseId ?? null,
    };
    this.world.teams.set(team.id, team);
    return team;
  }

  app(spec: AppSpec = {}): App {
    const app: App = {
      id: spec.id ?? this.world.nextId('A'),
      name: spec.name ?? 'gateway',
      signingSecret: spec.signingSecret ?? this.world.nextId('signing-secret-'),
      appToken: spec.appToken ?? `xapp-1-${this.world.nextId('A')}-secret`,
      clientId: this.world.nextId('client.'),
      clientSecret: this.world.nextId('client-secret-'),
      surface: spec.surface ?? 'none',
      distributed: spec.distributed ?? false,
      subscriptions: new Set(spec.events ?? USUAL_EVENTS),
      commands: new Map((spec.commands ?? ['/band']).map((name) => [name, { escape: true }])),
      shortcuts: new Set(spec.shortcuts ?? ['band_ask']),
      urls: null,
      socketMode: spec.socketMode ?? false,
      delayedEvents: false,
      subscriptionOff: false,
    };
    this.world.apps.set(app.id, app);
    return app;
  }

  install(app: App, team: Team, spec: InstallSpec = {}): Installation {
    const botUserId = spec.botUserId ?? this.world.nextId('U');
    this.user(team, { id: botUserId, name: app.name, realName: app.name, displayName: app.name, kind: 'bot' });
    const installation: Installation = {
      app,
      team,
      orgWide: spec.orgWide ?? false,
      botUserId,
      botId: spec.botId ?? this.world.nextId('B'),
      scopes: new Set(spec.scopes ?? USUAL_SCOPES),
      tokens: [{ value: spec.botToken ?? `xoxb-${this.world.nextId('T')}-secret`, expiresAt: null, revoked: false }],
      refreshToken: null,
      active: true,
    };
    this.world.installations.push(installation);
    return installation;
  }

  user(team: Team, spec: Partial<User> & { name: string }): User {
    const user: User = {
      id: this.world.nextId('U'),
      teamId: team.id,
      realName: spec.name,
      displayName: '',
      email: `${spec.name}@example.test`,
      kind: 'human',
      admin: false,
      guest: false,
      stranger: false,
      deleted: false,
      ...spec,
    };
    this.world.users.set(user.id, user);
    return user;
  }

  channel(
    team: Team,
    spec: { name: string; members: readonly string[] } & Partial<Omit<Channel, 'members' | 'name'>>,
  ): Channel {
    const { members, ...rest } = spec;
    const channel: Channel = {
      id: this.world.nextId('C'),
      teamId: team.id,
      kind: 'channel',
      archived: false,
      readOnly: false,
      threadOnly: false,
      nonThreadable: false,
      messagesTab: true,
      lockedThreads: new Set(),
      sharedWith: new Set(),
      messages: [],
      lastTs: 0,
      ...rest,
      members: new Set(members),
    };
    this.world.channels.set(channel.id, channel);
    return channel;
  }

  /** The direct-message channel of a person with an app's bot. */
  directChannel(user: User, installation: Installation): Channel {
    const found = [...this.world.channels.values()].find(
      (one) => one.kind === 'im' && one.members.has(user.id) && one.members.has(installation.botUserId),
    );
    return (
      found ??
      this.channel(
        { ...installation.team, id: user.teamId },
        { id: this.world.nextId('D'), name: '', kind: 'im', members: [user.id, installation.botUserId] },
      )
    );
  }

  /** @param app - whose buttons and commands the person uses; default the first app */
  person(user: User, app?: App): Person {
    const own = () => app ?? [...this.world.apps.values()][0]!;
    return createPerson(
      {
        core: this.core,
        app: own,
        send: (outgoing) => this.events.send(outgoing),
        placeOf: (place, who) => this.#place(place, who, own()),
      },
      user,
    );
  }

  #place(place: string, user: User, app: App): Channel {
    if (place === 'dm') {
      const installation = this.world.installations.find((one) => one.app === app);
      if (!installation) throw new Error('no installation to write to');
      return this.directChannel(user, installation);
    }
    const name = place.replace(/^#/, '');
    const channel =
      this.world.channels.get(place) ??
      [...this.world.channels.values()].find((one) => one.name === name && one.members.has(user.id));
    if (!channel) throw new Error(`${user.name} sees no ${place}`);
    return channel;
  }

  /** A message of another bot. */
  otherBotSays(
    channel: Channel,
    fields: { botId: string; userId: string; text: string; threadTs?: string; subtype?: string | null; appId?: string },
  ): Message {
    const message: Message = {
      ...emptyMessage(this.world.nextTs(channel), this.clock.now()),
      user: fields.userId,
      botId: fields.botId,
      appId: fields.appId ?? 'A0OTHERBOT',
      text: fields.text,
      threadTs: fields.threadTs ?? null,
      subtype: fields.subtype ?? null,
    };
    // Other apps' pings are their own affair.
    channel.messages.push(message);
    this.core.change({ kind: 'posted', channel, message });
    return message;
  }

  archive(channel: Channel, archived: boolean): void {
    channel.archived = archived;
    emitLifecycle(
      this.core,
      channel.teamId,
      { type: archived ? 'channel_archive' : 'channel_unarchive', channel: channel.id, user: 'U0ADMIN' },
      this.#emit,
    );
  }

  invite(channel: Channel, userId: string): void {
    channel.members.add(userId);
    this.core.change({ kind: 'joined', channel, user: userId });
  }

  changeUser(user: User, change: Partial<User>): void {
    Object.assign(user, change);
    emitLifecycle(
      this.core,
      user.teamId,
      { type: 'user_change', user: { id: user.id, team_id: user.teamId, name: user.name } },
      this.#emit,
    );
  }

  uninstall(installation: Installation): void {
    emitLifecycle(this.core, installation.team.id, { type: 'app_uninstalled' }, this.#emit);
    emitLifecycle(
      this.core,
      installation.team.id,
      { type: 'tokens_revoked', tokens: { oauth: [], bot: [installation.botUserId] } },
      this.#emit,
    );
    installation.active = false;
  }

  readonly #emit = (outgoing: Outgoing): void => {
    this.events.send(outgoing);
  };

  /** Any event, in a correct envelope. */
  emitEvent(app: App, teamId: string, event: Json): void {
    emitLifecycle({ ...this.core, world: this.world }, teamId, event, (outgoing) => {
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
    this.#responseFailures = times;
  }

  /** New connections are reset, live ones cut, until switched off. */
  refuseConnections(refusing: boolean): void {
    this.#refusing = refusing;
    if (refusing) for (const socket of this.#connections) socket.destroy();
  }

  enforceRates(on: boolean): void {
    this.#rates = on;
  }

  // What there is to see

  /** A channel's top level, or a thread with its root, as a person sees it. */
  messages(channel: string | Channel, threadTs?: string, viewer?: string): VisibleMessage[] {
    const place = typeof channel === 'string' ? this.world.channels.get(channel)! : channel;
    return place.messages
      .filter((one) => !one.deleted && (one.ephemeralTo === null || one.ephemeralTo === viewer))
      .filter((one) =>
        threadTs === undefined
          ? one.threadTs === null || one.broadcast
          : one.ts === threadTs || one.threadTs === threadTs,
      )
      .map((one) => visibleMessage(this.world, one));
  }

  /** Only what an app wrote into a thread. */
  botMessages(channel: string | Channel, threadTs: string): VisibleMessage[] {
    return this.messages(channel, threadTs).filter((one) => one.fromBot);
  }

  /** Everything only this person sees. */
  ephemerals(channel: string | Channel, viewer: string): VisibleMessage[] {
    const place = typeof channel === 'string' ? this.world.channels.get(channel)! : channel;
    return place.messages
      .filter((one) => one.ephemeralTo === viewer && !one.deleted)
      .map((one) => visibleMessage(this.world, one));
  }

  /** The modals a person has before them, the newest last. */
  modals(user: string): Json[] {
    return [...this.world.views.values()]
      .filter((one) => one.user === user && one.open && one.view['type'] === 'modal')
      .map((one) => ({ ...one.view, id: one.id }));
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
    this.#expectedPings.add(id);
  }

  /** The test means this violation, leak or unknown method to happen. */
  allow(pattern: RegExp): void {
    this.#allowed.push(pattern);
  }

  violations(): readonly string[] {
    return this.core.violations;
  }

  leaks(): readonly string[] {
    return this.core.leaks;
  }

  /** Throws when a limit was broken, a token leaked, somebody was paged unexpectedly, or an armed fault never met. */
  check(): void {
    const allowed = (line: string) => this.#allowed.some((pattern) => pattern.test(line));
    const problems = [
      ...this.core.violations.map((line) => `violation: ${line}`),
      ...this.core.leaks.map((line) => `leak: ${line}`),
      ...this.core.unknownMethods.map((line) => `unknown method: ${line}`),
      ...this.core.pings
        .filter((ping) => !this.#expectedPings.has(ping.id))
        .map((ping) => `unexpected ping: ${ping.kind} ${ping.id}`),
      ...this.faults.unmet().map((line) => `fault never met: ${line}`),
    ].filter((line) => !allowed(line));
    if (problems.length > 0) throw new Error(`The Slack double objects:\n${problems.join('\n')}`);
  }

  /** Resolves as soon as `holds` is true, looking again after everything that happens. */
  async until(holds: () => boolean, what = 'the expected state', limitMs = 8_000): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const done = () => {
        if (!holds()) return;
        clearTimeout(timer);
        this.#watchers.delete(done);
        resolve();
      };
      const timer = setTimeout(() => {
        this.#watchers.delete(done);
        reject(
          new Error(
            `${what} did not come within ${limitMs} ms; last calls: ${this.web.calls
              .slice(-8)
              .map((call) => `${call.method}=${call.outcome}`)
              .join(', ')}`,
          ),
        );
      }, limitMs);
      this.#watchers.add(done);
    });
  }

  /** Nothing is on its way in either direction; `idle` adds what the bridge says about itself. */
  async settled(...idle: (() => Promise<void>)[]): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await this.until(() => this.web.inFlight === 0 && this.events.inFlight === 0, 'quiet');
      for (const wait of idle) await wait();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #touch(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  // The server

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.origin);
    try {
      const body = await readBody(request);
      if (url.pathname.startsWith('/api/')) {
        await this.web.handle(url.pathname.slice('/api/'.length), request, response, body);
        return;
      }
      const authorization = request.headers.authorization ?? null;
      if (url.pathname.startsWith('/response/') && this.#responseFailures > 0) {
        this.#responseFailures -= 1;
        const place = this.world.responseUrls.get(url.pathname.slice('/response/'.length));
        if (place) place.uses += 1;
        response.writeHead(503).end();
        this.otherRequests.push({ path: url.pathname, authorization, status: 503 });
        return;
      }
      const status = answerOther(this.core, url, request, response, body, authorization);
      this.otherRequests.push({ path: url.pathname, authorization, status });
      this.#touch();
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end();
      this.core.violations.push(
        `the double failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      );
      this.#touch();
    }
  }
}

export async function startSlackDouble(options?: SlackDoubleOptions): Promise<SlackDouble> {
  return await new SlackDouble(options).start();
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
