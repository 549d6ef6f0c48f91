import type { Root } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';

// Slack users write ~/path: a single tilde strikes nothing out.
const extensions = [gfm({ singleTilde: false })];
const mdastExtensions = gfmFromMarkdown();

/** CommonMark with GitHub's tables, tasks, strikethrough, footnotes and bare links. May throw on hostile nesting. */
export function parseMarkdown(source: string): Root {
  return fromMarkdown(source, { extensions, mdastExtensions });
}
