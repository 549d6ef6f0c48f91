import { z } from 'zod';
import type { BandMemories, WireRecord } from './band-rest.js';
import { dataOf } from './answers.js';
import { badAnswer, creating, marking, path, reading, type Transport } from './transport.js';

const recordSchema = z.record(z.string(), z.unknown());
const listSchema = z.looseObject({ data: z.array(recordSchema), metadata: recordSchema.nullish() });

export function createMemories(send: Transport): BandMemories {
  return {
    async list(filters = {}, call) {
      const query = plainValues(filters);
      const answer = await send(reading('/memories', query), call);
      const parsed = listSchema.safeParse(answer.json);
      if (!parsed.success) throw badAnswer(answer.request, 'there is no list', parsed.error);
      return { data: parsed.data.data, metadata: parsed.data.metadata ?? {} };
    },

    async store(memory, call) {
      const body = { memory };
      const answer = await send(creating('/memories', body), call);
      return dataOf(answer, recordSchema);
    },

    async get(memoryId, call) {
      const answer = await send(reading(path`/memories/${memoryId}`), call);
      return dataOf(answer, recordSchema);
    },

    async supersede(memoryId, call) {
      const where = path`/memories/${memoryId}/supersede`;
      return dataOf(await send(marking(where), call), recordSchema);
    },

    async archive(memoryId, call) {
      const where = path`/memories/${memoryId}/archive`;
      return dataOf(await send(marking(where), call), recordSchema);
    },
  };
}

/** A query holds texts and numbers only; a filter without a value is no filter. */
function plainValues(filters: WireRecord): Record<string, string | number> {
  const query: Record<string, string | number> = {};
  for (const [key, value] of Object.entries(filters)) {
    if (typeof value === 'string' || typeof value === 'number') query[key] = value;
    else if (typeof value === 'boolean') query[key] = String(value);
  }
  return query;
}
