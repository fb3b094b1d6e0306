import type { ScenarioResult } from '../../scenarios/index.js'

/** A message in the picture. */
export interface Arrow {
  readonly from: string
  readonly to: string
  readonly sent: number
  readonly arrived: number
  readonly label: string
  readonly token: string | undefined
  readonly lost: boolean
}

/** Small change: shown only when something is the matter with it. */
const ROUTINE = /^(renew|replicate|not deleted|deleted|unlock)$/
const SLOW_SECONDS = 0.5
/** A picture with more arrows than this is not readable: of those that are alike only the first of each pair is shown. */
const ARROWS_MAX = 160

/** The messages that a picture shows, in the order of their arrival. */
export function arrowsOf(result: ScenarioResult): Arrow[] {
  const shown = new Set([...result.lanes.clients, ...result.lanes.members, ...result.lanes.resources])
  const arrows = result.timeline.flatMap((moment): Arrow[] => {
    if (moment.kind !== 'message' || !shown.has(moment.from) || !shown.has(moment.to)) return []
    const sent = moment.at - (moment.atUs - moment.sentUs) / 1_000_000
    const { at: arrived, from, to, label, token, outcome } = moment
    const isRoutine = ROUTINE.test(label) && arrived - sent < SLOW_SECONDS
    if (sent < -0.000_001 || isRoutine) return []
    return [{ from, to, sent, arrived, label, token, lost: outcome === 'lost' }]
  })
  return arrows.length <= ARROWS_MAX ? arrows : firstOfEach(arrows).slice(0, ARROWS_MAX)
}

/** What load repeats again and again says nothing new; what is slow or lost does. */
function firstOfEach(arrows: readonly Arrow[]): Arrow[] {
  const seen = new Set<string>()
  return arrows.filter(({ from, to, sent, arrived, label, lost }) => {
    const alike = `${from} ${to} ${label.replace(/[0-9]+/g, '')}`
    if (lost || arrived - sent > SLOW_SECONDS) return true
    if (seen.has(alike)) return false
    seen.add(alike)
    return true
  })
}
