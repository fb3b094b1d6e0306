/** Control characters that change the state of a terminal or the direction of text. */
const CONTROLS = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const INVISIBLE = /^[\p{M}\p{Cf}]$/u
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u

/** Replaces control characters in a text of another client (a lock's name, a client's name, a reason). */
export function harmless(text: string): string {
  return text.replace(CONTROLS, '\ufffd')
}

/** Returns the number of terminal columns of a text. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** Cuts a text to at most `width` columns, and marks the cut with an ellipsis. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    const columns = columnsOf(character)
    if (used + columns > width - 1) break
    kept += character
    used += columns
  }
  return width < 1 ? '' : `${kept}…`
}

/** Cuts or pads a text to exactly `width` columns. */
export function fit(text: string, width: number): string {
  const short = cut(text, width)
  return short + ' '.repeat(Math.max(0, width - widthOf(short)))
}

function columnsOf(character: string): number {
  if (INVISIBLE.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
