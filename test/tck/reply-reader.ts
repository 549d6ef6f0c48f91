import { z } from 'zod';
import { closingBlock, readReply, type ReadReply } from '../../bridges/a2a/convert/directive.js';

const directive = z.strictObject({
  parts: z.array(z.record(z.string(), z.unknown())).optional(),
  artifact: z
    .object({ id: z.string(), append: z.boolean(), lastChunk: z.boolean(), name: z.string() })
    .partial()
    .optional(),
  final: z.boolean().optional(),
  as: z.literal('message').optional(),
});

/** The name of an artifact that the suite's front turns into a plain Message. */
export const AS_MESSAGE = 'as-message';

/** The product's reader, and on top of it the further artifact fields that the suite's scripted peer needs. */
export const readSuiteReply: ReadReply = (text) => {
  const block = closingBlock(text);
  if (!block) return readReply(text);
  const parsed = directive.safeParse(JSON.parse(block.body));
  if (!parsed.success) return readReply(text);
  const { parts, artifact, final, as } = parsed.data;
  return {
    text: block.text,
    state: null,
    final: final ?? null,
    directed: true,
    ...(parts && { parts: parts }),
    artifact: {
      ...(artifact?.id !== undefined && { id: artifact.id }),
      ...(artifact?.append !== undefined && { append: artifact.append }),
      ...(artifact?.lastChunk !== undefined && { lastChunk: artifact.lastChunk }),
      ...(as && { name: AS_MESSAGE }),
    },
  };
};
