import { ApiError } from '../base/band-errors.js';
import { type Clock, systemClock } from '../base/clock.js';
import { GatewayError, isGatewayError } from '../base/errors.js';
import { type Logger, silentLogger } from '../base/log.js';
import { parseOptions } from '../config/setting.js';
import { optionsBeside } from '../core/adapter-options.js';
import type { HistoryProvider } from '../core/history.js';
import { type Outlet, outsideOrigin, type OutsideBrain, type OutsideOrigin } from '../core/outside.js';
import type { PlatformMessage } from '../core/platform-message.js';
import { type MessageContext, SimpleAdapter } from '../core/simple-adapter.js';
import type { AgentToolsProtocol } from '../core/tools.js';
import type { BandRest } from '../platform/rest/band-rest.js';
import { createMemoryStore } from '../store/memory.js';
import type { StateStore } from '../store/port.js';
import { configuredPeer, RelayPeers, type RelayPeer } from './relay-peers.js';
import { type RelayOptions, type RelayOptionsInput, relaySettings } from './relay-settings.js';
import { findInRoom } from './relay-room.js';
import { RelayTalks, type Talk, type Try } from './relay-talks.js';
import { readAddress, toRoomText, withoutMentions } from './relay-text.js';
import { RelayWatch } from './relay-watch.js';

export interface RelayPorts {
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Where the relay remembers whom a conversation talks to; default memory. */
  readonly store?: StateStore;
  /** Where its records stand in the store; default `relay`. */
  readonly prefix?: string;
}

/**
 * A brain with no model: what a person writes outside is posted to a Band peer, and the peer's words go back.
 *
 * Out: bridge → `onMessage` → whom is it for → peer brought into the room → one message that mentions it → the turn is
 * settled. Back: platform → `onMessage` → `outlet.answer`. The two are different messages: nobody waits for a return.
 */
export class RelayAdapter extends SimpleAdapter implements OutsideBrain {
  /** A message is handed over in a moment; who works on it is the peer. */
  readonly reportsWorkingState = false;

  readonly #options: RelayOptions;
  readonly #ports: { clock: Clock; log: Logger };
  readonly #talks: RelayTalks;
  #outlet: Outlet | null = null;
  #rest: BandRest | null = null;
  #peers: RelayPeers | null = null;
  #watch: RelayWatch | null = null;

  /**
   * @throws {TypeError} for an option it does not have (R-152)
   * @throws {ValidationError} for a bad value, or an unknown field inside an option
   */
  constructor(options: RelayOptionsInput = {}, ports: RelayPorts = {}) {
    super(optionsBeside(relaySettings, options));
    this.#options = parseOptions(relaySettings, options, 'RelayAdapter');
    this.#ports = { clock: ports.clock ?? systemClock, log: ports.log ?? silentLogger };
    this.#talks = new RelayTalks(ports.store ?? createMemoryStore(), ports.prefix ?? 'relay');
  }

  connectOutlet(outlet: Outlet): void {
    this.#outlet = outlet;
  }

  override async onStarted(name: string, description: string): Promise<void> {
    await super.onStarted(name, description);
    const { clock, log } = this.#ports;
    this.#rest = this.buildRestClient();
    this.#peers = new RelayPeers(this.#rest, clock, this.#options.allow);
    this.#watch = new RelayWatch({
      clock,
      talks: this.#talks,
      outlet: this.#need(this.#outlet),
      slowAfterMs: this.#options.slowAfterSeconds * 1_000,
      timeoutMs: this.#options.timeoutSeconds * 1_000,
      onError: (error) => {
        log.warn({ err: error }, 'the relay could not say that an answer takes long');
      },
    });
    for (const { roomId, talk } of await this.#talks.waiting()) this.#watch.set(roomId, talk.waits);
  }

  async onMessage(
    message: PlatformMessage,
    tools: AgentToolsProtocol,
    _history: HistoryProvider,
    _participantsMsg: string | null,
    _contactsMsg: string | null,
    { roomId, signal }: MessageContext,
  ): Promise<void> {
    const origin = outsideOrigin(message.metadata);
    if (origin) await this.#ask(roomId, message, origin, signal);
    else await this.#answer(roomId, message);
    tools.turn.settle();
  }

  /** Nobody is waited for any longer; the agent API has no call that stops another agent, so its work goes on. */
  async stopOutside(roomId: string): Promise<boolean> {
    await this.#talks.change(roomId, (talk) => ({ ...talk, waits: [] }));
    this.#watch?.set(roomId, []);
    this.#need(this.#outlet).waiting(roomId, false);
    return false;
  }

  override async onCleanup(roomId: string, context?: { readonly reason: string }): Promise<void> {
    if (context?.reason === 'shutdown') return;
    this.#watch?.set(roomId, []);
    await this.#talks.forget(roomId);
  }

  override async cleanupAll(): Promise<void> {
    this.#watch?.stop();
    await super.cleanupAll();
  }

  async #ask(roomId: string, message: PlatformMessage, origin: OutsideOrigin, signal: AbortSignal): Promise<void> {
    const outlet = this.#need(this.#outlet);
    const { delivery } = origin;
    const talk = await this.#talks.get(roomId);
    if (talk.posted.some((one) => one.delivery === delivery)) {
      if (talk.waits.some(({ messageId }) => messageId === delivery)) outlet.waiting(roomId, true);
      return;
    }
    const tries = talk.tries.filter((one) => one.delivery === delivery);
    const chosen = await this.#choose(talk, message.content, origin, signal);
    const now = chosen && {
      peer: chosen.peer,
      content: toRoomText(message.senderName ?? 'Somebody', origin.world, chosen.text),
    };
    const earlier = await this.#findEarlier(roomId, tries, now, origin, signal);
    if (earlier) {
      await this.#noteAsked(roomId, { delivery, id: earlier.id }, earlier.from);
      outlet.waiting(roomId, true);
      return;
    }
    if (!now) {
      await outlet.notice(roomId, { id: `${delivery}:nobody`, text: await this.#whoThereIs(signal) });
      return;
    }
    const { peer, content } = now;
    let posted: string;
    try {
      if (!talk.peerIds.includes(peer.id)) await this.#bringIn(roomId, peer, signal);
      posted = await this.#postOnce(roomId, delivery, peer, content, signal);
    } catch (error) {
      if (!isGatewayError(error, 'RELAY_PEER_GONE')) throw error;
      const text = `${peer.name} cannot be reached from here any more.`;
      await outlet.notice(roomId, { id: `${delivery}:gone`, text });
      await this.#talks.change(roomId, (before) => withoutTries(withoutPeer(before, peer.id), delivery));
      return;
    }
    await this.#noteAsked(roomId, { delivery, id: posted }, peer);
    outlet.waiting(roomId, true);
  }

  /** What an earlier try of the same handing-over left in the room: in the words of that try, or in those of now. */
  async #findEarlier(
    roomId: string,
    tries: readonly Try[],
    now: { readonly peer: RelayPeer; readonly content: string } | null,
    origin: OutsideOrigin,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly from: RelayPeer } | null> {
    if (tries.length === 0 && !origin.maybeDelivered) return null;
    const sought = [...tries, ...(now ? [now] : [])].map(({ content, peer }) => ({ content, from: peer }));
    const sentAt = tries.length === 0 ? null : Math.max(...tries.map(({ at }) => at));
    const { agentId } = this.requirePlatform();
    const room = { ...this.#ports, rest: this.#need(this.#rest), talks: this.#talks, agentId };
    return await findInRoom(room, roomId, sought, sentAt, origin, signal);
  }

  /** The first that applies: who is addressed, who this conversation talks to, the place's peer, the usual peer. */
  async #choose(
    talk: Talk,
    content: string,
    { place }: OutsideOrigin,
    signal: AbortSignal,
  ): Promise<{ peer: RelayPeer; text: string } | null> {
    const peers = this.#need(this.#peers);
    const { word, rest } = readAddress(content);
    const addressed = word === null ? null : await peers.find(word, signal);
    if (addressed) return { peer: addressed, text: rest };
    const text = content.trim();
    const known = talk.peerId === null ? null : await peers.find(talk.peerId, signal);
    if (known) return { peer: known, text };
    const configured = (place === null ? undefined : this.#options.channels[place]) ?? this.#options.peer;
    return configured === undefined ? null : { peer: await configuredPeer(peers, configured, signal), text };
  }

  async #whoThereIs(signal: AbortSignal): Promise<string> {
    const peers = await this.#need(this.#peers).all(signal);
    if (peers.length === 0) return 'There is nobody here yet whom I could ask.';
    const names = peers.map(({ handle, name }) => `• ${name}${handle === null ? '' : ` (@${handle})`}`);
    return `Whom shall I ask? Begin your message with a name, for example "ask ${peers[0]?.name ?? ''}: …"\n${names.join('\n')}`;
  }

  async #bringIn(roomId: string, peer: RelayPeer, signal: AbortSignal): Promise<void> {
    const rest = this.#need(this.#rest);
    try {
      await rest.addParticipant(roomId, { participantId: peer.id }, { signal });
    } catch (error) {
      // Already there: somebody else brought it in.
      if (isGatewayError(error, 'BAND_CONFLICT')) return;
      if (!isGatewayError(error, 'BAND_NOT_FOUND') && !isGatewayError(error, 'BAND_FORBIDDEN')) throw error;
      // The same answer stands for a room that is gone; that one the bridge has to know as it is.
      await rest.getChat(roomId, { signal });
      throw new GatewayError('RELAY_PEER_GONE', { cause: error, details: { peerId: peer.id } });
    }
  }

  /**
   * Posts what is on disk first: a process that ends here knows afterwards what to look for in the room.
   *
   * @returns the message's id in the room
   */
  async #postOnce(
    roomId: string,
    delivery: string,
    peer: RelayPeer,
    content: string,
    signal: AbortSignal,
  ): Promise<string> {
    const { id, name, handle } = peer;
    const at = this.#ports.clock.now();
    await this.#talks.change(roomId, (talk) => ({
      ...talk,
      tries: [...talk.tries, { delivery, peer: { id, name, handle }, content, at }],
    }));
    try {
      return await this.#post(roomId, peer, content, signal);
    } catch (error) {
      if (isGatewayError(error) && error.undelivered) {
        await this.#talks.change(roomId, (talk) => ({
          ...talk,
          tries: talk.tries.filter((one) => one.delivery !== delivery || one.at !== at),
        }));
      }
      throw error;
    }
  }

  /**
   * Posts; a peer that somebody took out of the room meanwhile is brought in once more.
   *
   * @returns the message's id in the room
   */
  async #post(roomId: string, peer: RelayPeer, content: string, signal: AbortSignal): Promise<string> {
    const mention = { id: peer.id, ...(peer.handle === null ? {} : { handle: peer.handle }) };
    const post = () => this.#need(this.#rest).postMessage(roomId, { content, mentions: [mention] }, { signal });
    try {
      return (await post()).id;
    } catch (error) {
      if (!isNotInRoom(error)) throw error;
      await this.#bringIn(roomId, peer, signal);
      return (await post()).id;
    }
  }

  async #noteAsked(
    roomId: string,
    asked: { readonly delivery: string; readonly id: string },
    peer: RelayPeer,
  ): Promise<void> {
    const { clock } = this.#ports;
    const { waits } = await this.#talks.change(roomId, (talk) => ({
      ...withoutTries(talk, asked.delivery),
      peerId: peer.id,
      peerIds: [...new Set([...talk.peerIds, peer.id])],
      hops: 0,
      posted: [...talk.posted, asked],
      waits: [
        ...talk.waits,
        { peerId: peer.id, peerName: peer.name, messageId: asked.delivery, since: clock.now(), told: 'nothing' },
      ],
    }));
    this.#watch?.set(roomId, waits);
  }

  async #answer(roomId: string, message: PlatformMessage): Promise<void> {
    const outlet = this.#need(this.#outlet);
    const { hops } = await this.#talks.get(roomId);
    const name = message.senderName ?? message.senderType;
    if (hops >= this.#options.hopLimit) {
      const text = `${name} keeps writing, and nothing more is shown until somebody answers here.`;
      if (hops === this.#options.hopLimit) await outlet.notice(roomId, { id: `${message.id}:hops`, text });
    } else {
      const markdown = withoutMentions(message.content);
      await outlet.answer(roomId, { id: message.id, markdown, from: { id: message.senderId, name } });
    }
    const { waits } = await this.#talks.change(roomId, (talk) => ({
      ...talk,
      hops: talk.hops + 1,
      waits: talk.waits.filter((wait) => wait.peerId !== message.senderId),
    }));
    this.#watch?.set(roomId, waits);
    if (waits.length === 0) outlet.waiting(roomId, false);
  }

  #need<T>(part: T | null): T {
    if (part === null) throw new GatewayError('RELAY_NOT_STARTED');
    return part;
  }
}

function isNotInRoom(error: unknown): boolean {
  const answer = isGatewayError(error, 'BAND_INVALID') ? error.cause : null;
  return answer instanceof ApiError && answer.code === 'mentioned_participant_not_in_room';
}

const withoutTries = (talk: Talk, delivery: string): Talk => ({
  ...talk,
  tries: talk.tries.filter((one) => one.delivery !== delivery),
});

function withoutPeer(talk: Talk, peerId: string): Talk {
  return {
    ...talk,
    peerId: talk.peerId === peerId ? null : talk.peerId,
    peerIds: talk.peerIds.filter((id) => id !== peerId),
  };
}
