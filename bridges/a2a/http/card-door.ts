import type { CardBook } from '../cards/card-book.js';
import type { CardContext } from '../cards/card.js';
import type { PublishedPeer } from '../peers/directory.js';
import type { A2AOptions } from '../settings.js';
import { requestedVersion, unsupported, type Dialect } from '../versions.js';
import type { Exchange } from './exchange.js';

export interface CardDeps {
  readonly cards: CardBook;
  readonly options: A2AOptions;
  readonly context: (baseUrl: string) => CardContext;
}

const MAX_AGE_SECONDS = 300;

/**
 * Serves a peer's card with what caches need. Without a version it is the 1.0 card.
 *
 * @param legacy - the path that has always meant the 0.3 card
 * @throws {GatewayError} `A2A_VERSION`
 */
export async function serveCard(
  exchange: Exchange,
  peer: PublishedPeer,
  legacy: boolean,
  baseUrl: string,
  { cards, options, context }: CardDeps,
): Promise<void> {
  const { request, response, method } = exchange;
  const card = await cards.card(peer, dialectOf(exchange, legacy, options.versions), context(baseUrl));
  const accept = request.headers.accept?.toLowerCase() ?? '';
  const lastModified = new Date(card.changedAt).toUTCString();
  response.removeHeader('cache-control');
  const headers = {
    etag: card.etag,
    'last-modified': lastModified,
    'cache-control': `${options.cardsPublic ? 'public' : 'private'}, max-age=${MAX_AGE_SECONDS}`,
  };
  response.appendHeader('vary', 'A2A-Version, Accept');
  if (isUnchanged(exchange, card.etag, card.changedAt)) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  response.writeHead(200, {
    ...headers,
    'content-type': accept.includes('application/a2a+json') ? 'application/a2a+json' : 'application/json',
    'content-length': String(card.bytes.length),
  });
  response.end(method === 'HEAD' ? undefined : card.bytes);
}

function dialectOf({ request, query }: Exchange, legacy: boolean, versions: readonly Dialect[]): Dialect {
  const header = request.headers['a2a-version'];
  const asked = requestedVersion(Array.isArray(header) ? header.join(', ') : header, query, versions);
  if (legacy) {
    if (!versions.includes('0.3')) throw unsupported(versions);
    return '0.3';
  }
  return asked ?? (versions.includes('1.0') ? '1.0' : '0.3');
}

function isUnchanged({ request }: Exchange, etag: string, changedAt: number): boolean {
  const match = request.headers['if-none-match'];
  // The tag is the stronger of the two; when it is given, the date does not count.
  if (match !== undefined) {
    return match.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
  }
  const since = Date.parse(request.headers['if-modified-since'] ?? '');
  return !Number.isNaN(since) && changedAt <= since;
}
