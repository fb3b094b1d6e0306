// Words that the project does not use for machines: see the list of words in CONTRIBUTING.md.

export const DIALECT =
  /\b(nobody|somebody|whoever|anew|for good|muster|comes? about|gives? back|given back|puts? aside|takes? away|taken away|looks? after|goes on|go on|is over|are over|who)\b/gi

/** The places of such words in a text. */
export function dialectWords(text) {
  return [...text.matchAll(DIALECT)].map((match) => ({
    word: match[0].toLowerCase(),
    line: text.slice(0, match.index).split('\n').length,
  }))
}
