import type { BandRest } from '../platform/rest/band-rest.js';

const PAGE_ROOMS = 100;
/** 5,000 rooms. */
const MAX_PAGES = 50;

/** The rooms an agent is in, merged by id since pages shift while rooms come and go. */
export async function listRooms(
  rest: Pick<BandRest, 'listChats'>,
  signal: AbortSignal,
): Promise<{ readonly ids: ReadonlySet<string>; readonly complete: boolean }> {
  const ids = new Set<string>();
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const answer = await rest.listChats({ page, pageSize: PAGE_ROOMS, signal });
    for (const { id } of answer.data) ids.add(id);
    if (page >= answer.totalPages) return { ids, complete: true };
  }
  return { ids, complete: false };
}
