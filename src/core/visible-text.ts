/**
 * True when a reader would see something. White space, control characters and characters without a shape of their own
 * (zero-width spaces, joiners, byte-order marks, fillers) do not count: the platform refuses a post made only of them.
 */
export function hasVisibleText(text: string): boolean {
  return VISIBLE.test(text);
}

// U+2800, the empty braille pattern, is a symbol by its category and blank to the eye.
const VISIBLE = /[^\s\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
