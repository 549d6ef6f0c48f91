import { ValueError } from '../../base/band-errors.js';
import type { BandRest, CallOptions } from '../../platform/rest/band-rest.js';
import type { Peer } from '../../platform/wire/objects.js';
import { bareHandle } from '../../core/participants.js';
import { matching } from './mentions.js';

const PAGE_SIZE = 100;
const MAX_PAGES = 50;

/** The agent's peers, read page by page as far as a search has to look, and kept for the rest of the turn. */
export class PeerDirectory {
  readonly #rest: BandRest;
  readonly #call: CallOptions;
  readonly #known: Peer[] = [];
  #nextPage: number | null = 1;

  constructor(rest: BandRest, call: CallOptions) {
    this.#rest = rest;
    this.#call = call;
  }

  /**
   * The one peer that `identifier` names: the first with that handle or id, else the only one with that name.
   *
   * @throws {ValueError} when there is none, or when several share the name
   */
  async find(identifier: string): Promise<Peer> {
    const wanted = bareHandle(identifier.trim()).toLowerCase();
    if (wanted !== '') {
      for await (const peer of this.#peers()) {
        if (peer.id.toLowerCase() === wanted || bareHandle(peer.handle).toLowerCase() === wanted) return peer;
      }
    }
    const [found, another] = matching(identifier, this.#known);
    if (!found) throw new ValueError(`no peer is called '${identifier}'; look them up with band_lookup_peers`);
    if (another) {
      throw new ValueError(
        `several peers are called '${identifier}'; use a handle, such as @${bareHandle(found.handle)} ` +
          `or @${bareHandle(another.handle)}`,
      );
    }
    return found;
  }

  async *#peers(): AsyncGenerator<Peer, void, void> {
    for (let at = 0; ; at += 1) {
      while (at >= this.#known.length && this.#nextPage !== null) await this.#readPage(this.#nextPage);
      const peer = this.#known[at];
      if (!peer) return;
      yield peer;
    }
  }

  async #readPage(page: number): Promise<void> {
    const { data, totalPages } = await this.#rest.listPeers({ page, pageSize: PAGE_SIZE, ...this.#call });
    this.#known.push(...data);
    this.#nextPage = page < Math.min(totalPages, MAX_PAGES) ? page + 1 : null;
  }
}
