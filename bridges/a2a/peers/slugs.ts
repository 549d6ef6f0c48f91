import type { SlugRecord } from '../engine/records.js';

/** What slugs are made from. */
export interface Nameable {
  readonly id: string;
  readonly name: string;
  readonly handle: string | null;
}

const MAX_SLUG_CHARS = 63;
export const FORMER_SLUG_DAYS = 30;
const DAY_MS = 86_400_000;

/** Lower case, every run of other characters than a–z and 0–9 as one dash, at most 63 characters; may be empty. */
export function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, MAX_SLUG_CHARS)
    .replace(/-+$/, '');
}

/** The slug a peer's own name gives: of the name, else of the handle's last segment, else of its id. */
export function baseSlug(peer: Nameable): string {
  return slugOf(peer.name) || slugOf(peer.handle?.split('/').at(-1) ?? '') || `peer-${firstHex(peer.id)}`;
}

export interface Assignment {
  readonly record: SlugRecord;
  /** The record differs from the stored one. */
  readonly changed: boolean;
}

/**
 * Gives every peer its slug. A fixed slug wins; a slug once given stays; a base slug that two newcomers claim goes to
 * neither, and one that somebody has, or had within 30 days, goes to nobody else: choosing a name takes no traffic over.
 *
 * @param fixed - slug by id or handle
 * @param stored - earlier assignments, those of peers that are gone included
 */
export function assignSlugs(
  peers: readonly Nameable[],
  fixed: Readonly<Record<string, string>>,
  stored: ReadonlyMap<string, SlugRecord>,
  now: number,
): Map<string, Assignment> {
  const taken = new Map<string, string>();
  const pinned = new Map<string, string>();
  for (const peer of peers) {
    const slug = fixed[peer.id] ?? (peer.handle === null ? undefined : fixed[peer.handle]);
    if (slug !== undefined) {
      pinned.set(peer.id, slug);
      taken.set(slug, peer.id);
    }
  }
  const keeps = new Map<string, string>();
  for (const record of stored.values()) {
    const peer = peers.find((one) => one.id === record.peerId);
    const renamed = peer !== undefined && baseSlug(peer) !== record.base;
    const claims = [record.slug, ...record.former.filter(({ until }) => until > now).map(({ slug }) => slug)];
    for (const slug of claims) if (!taken.has(slug)) taken.set(slug, record.peerId);
    if (!renamed && taken.get(record.slug) === record.peerId) keeps.set(record.peerId, record.slug);
  }
  const claimants = new Map<string, number>();
  for (const peer of peers) {
    if (pinned.has(peer.id) || keeps.has(peer.id)) continue;
    const base = baseSlug(peer);
    claimants.set(base, (claimants.get(base) ?? 0) + 1);
  }
  const assignments = new Map<string, Assignment>();
  for (const peer of peers) {
    const base = baseSlug(peer);
    const free = (slug: string): boolean => slug !== '' && (taken.get(slug) ?? peer.id) === peer.id;
    const slug = pinned.get(peer.id) ?? keeps.get(peer.id) ?? chosenSlug(peer, base, claimants.get(base) === 1, free);
    taken.set(slug, peer.id);
    assignments.set(peer.id, recordOf(peer.id, slug, base, stored.get(peer.id), now));
  }
  return assignments;
}

function chosenSlug(peer: Nameable, base: string, alone: boolean, free: (slug: string) => boolean): string {
  if (alone && free(base)) return base;
  const qualified = slugOf(peer.handle ?? '');
  return qualified !== base && free(qualified) ? qualified : `${base}-${firstHex(peer.id)}`;
}

function recordOf(peerId: string, slug: string, base: string, old: SlugRecord | undefined, now: number): Assignment {
  if (old?.slug === slug && old.base === base) return { record: old, changed: false };
  const former = (old?.former ?? []).filter((one) => one.until > now && one.slug !== slug);
  if (old && old.slug !== slug) former.push({ slug: old.slug, until: now + FORMER_SLUG_DAYS * DAY_MS });
  return { record: { peerId, slug, base, former }, changed: true };
}

function firstHex(id: string): string {
  return id
    .replace(/[^0-9a-f]/gi, '')
    .toLowerCase()
    .slice(0, 8);
}
