import pc from 'picocolors'

/** Whether a stream is a terminal: only there are colours and live views used. */
export function isTerminal(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env.TERM !== 'dumb'
}

/** The colours of one stream: on for a terminal, unless `NO_COLOR` is set. `FORCE_COLOR` turns them on elsewhere. */
export function coloursOf(stream: { readonly isTTY?: boolean }): ReturnType<typeof pc.createColors> {
  const { NO_COLOR, FORCE_COLOR } = process.env
  const forced = FORCE_COLOR !== undefined && FORCE_COLOR !== '' && FORCE_COLOR !== '0'
  return pc.createColors((NO_COLOR ?? '') === '' && (forced || isTerminal(stream)))
}

export const outColours = coloursOf(process.stdout)
export const errorColours = coloursOf(process.stderr)
