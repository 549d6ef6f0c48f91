import { splitReply, type Guard, type MentionPolicy, type RenderForm, type ReplyPart } from '../convert/index.js';
import type { Note } from './notes.js';

/** One message or file of a reply. Its path names it in every process, whatever happened to its neighbours. */
export type Piece =
  | {
      readonly kind: 'text';
      readonly path: string;
      readonly text: string;
      readonly blocks: ReplyPart['blocks'];
      /** What it can be made anew from; null for mrkdwn, which is the end of the line. */
      readonly source: string | null;
    }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly name: string;
      readonly content: string;
      readonly comment: string;
    };

export interface PieceOptions {
  readonly form: RenderForm;
  readonly maxParts: number;
  /** See `splitReply`. */
  readonly onGuard?: (guard: Guard) => void;
}

/** How often Slack may find a part too long before it becomes a file. */
export const MOST_HALVINGS = 3;
/** What a part falls apart into is not counted as the reply's own parts. */
const MOST_SUBPARTS = 50;

/** A reply as pieces, in order, with every earlier change of form applied; the same input gives the same pieces. */
export function piecesOf(
  markdown: string,
  policy: MentionPolicy,
  { form, maxParts, onGuard }: PieceOptions,
  reshaped: Note['reshaped'],
): readonly Piece[] {
  const path = rootPath(reshaped);
  if (reshaped[path] === 'file') return [wholeFile(`${path}file`, markdown)];
  const scale = 1 / 2 ** path.length;
  const { parts, file } = splitReply(markdown, policy, { form, maxParts, scale, onGuard });
  const pieces = parts.flatMap((part, index) => grown(toPiece(part, `${path}${index}`), scale, policy, reshaped));
  return file === null ? pieces : [...pieces, { kind: 'file', path: `${path}file`, ...file }];
}

/** `s` for every time the whole reply was cut smaller. */
export function rootPath(reshaped: Note['reshaped']): string {
  let path = '';
  while (reshaped[path] === 'smaller') path += 's';
  return path;
}

function toPiece({ text, blocks }: ReplyPart, path: string): Extract<Piece, { kind: 'text' }> {
  return { kind: 'text', path, text, blocks, source: blocks?.[0]?.text ?? null };
}

function grown(
  piece: Extract<Piece, { kind: 'text' }>,
  scale: number,
  policy: MentionPolicy,
  reshaped: Note['reshaped'],
): readonly Piece[] {
  const { path, source } = piece;
  const to = reshaped[path];
  if (to === undefined || source === null) return [piece];
  if (to === 'file') return [wholeFile(`${path}file`, source)];
  const form = to === 'mrkdwn' ? 'mrkdwn' : 'markdown';
  const halved = to === 'mrkdwn' ? 1 : scale / 2;
  const { parts, file } = splitReply(source, policy, { form, maxParts: MOST_SUBPARTS, scale: halved });
  const mark = to === 'mrkdwn' ? 'm' : 's';
  const inner = parts.flatMap((part, index) =>
    grown(toPiece(part, `${path}${mark}${index}`), halved, policy, reshaped),
  );
  return file === null ? inner : [...inner, { kind: 'file', path: `${path}file`, ...file }];
}

/** How often a piece was cut smaller already. */
export const halvingsOf = (path: string): number => path.replace(/[^s]/g, '').length;

const wholeFile = (path: string, content: string): Piece => ({
  kind: 'file',
  path,
  name: 'reply.md',
  content,
  comment: 'This part is too long for a message, so it is in this file.',
});
