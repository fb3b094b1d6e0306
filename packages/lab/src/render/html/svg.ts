import type { ScenarioResult } from '../../scenarios/index.js'
import { leadersOf, leasesOf, overlapsOf, stopsOf, tokenWords } from '../story.js'
import { type Arrow, arrowsOf } from './arrows.js'
import { Scale } from './scale.js'
import { PICTURE_STYLE } from './style.js'
import { escape } from './text.js'

const LEFT = 86
const RIGHT = 60
const TOP = 54
const LANE = 62
const BAR = 12
const LABELS_APART = 46
const SLOW_SECONDS = 0.5
const FAULT_WORDS_MAX = 44
/** Where along an arrow its words may stand. */
const PLACES = [0.3, 0.45, 0.6, 0.18, 0.75]

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The lanes over time: members, clients with their leases, resources; messages as arrows; violations in red. */
export function svgOf(result: ScenarioResult): string {
  return new Drawing(result).toString('')
}

/** The same as an image that needs no page around it. */
export function svgImage(result: ScenarioResult): string {
  return `${new Drawing(result).toString(`<style>${PICTURE_STYLE}</style><rect width="100%" height="100%" rx="10" class="card"/>`)}\n`
}

interface LaneOf {
  readonly name: string
  readonly y: number
  readonly kind: 'member' | 'client' | 'resource'
}

class Drawing {
  readonly #scale: Scale
  readonly #arrows: readonly Arrow[]
  readonly #lanes: readonly LaneOf[]
  readonly #token: (text: string) => string
  readonly #height: number

  readonly #result: ScenarioResult

  constructor(result: ScenarioResult) {
    this.#result = result
    this.#arrows = arrowsOf(result)
    this.#token = tokenWords(result)
    const { clients, members, resources } = result.lanes
    const named = [
      ...members.filter((name) => this.#appears(name)).map((name) => ({ name, kind: 'member' as const })),
      ...clients.map((name) => ({ name, kind: 'client' as const })),
      ...resources.map((name) => ({ name, kind: 'resource' as const })),
    ]
    this.#lanes = named.map((lane, i) => ({ ...lane, y: TOP + i * LANE + LANE / 2 }))
    this.#height = TOP + named.length * LANE + 16
    const times = result.timeline.filter((moment) => moment.at >= 0 && moment.kind !== 'message').map(({ at }) => at)
    this.#scale = new Scale([...times, ...this.#arrows.flatMap(({ sent, arrived }) => [sent, arrived])], result.until)
  }

  toString(under: string): string {
    const width = LEFT + this.#scale.width + RIGHT
    const parts = [
      this.#axis(),
      ...this.#lanes.map((lane) => this.#lane(lane)),
      ...this.#arrowLines(),
      ...this.#leases(),
      ...this.#stops(),
      ...this.#arrowWords(),
      ...this.#faults(),
      ...this.#leaders(),
      ...this.#effects(),
      ...this.#violations(),
    ]
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${n(width)} ${n(this.#height)}" width="${n(width)}" height="${n(this.#height)}" role="img" aria-label="${escape(this.#result.title)}">
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" class="tip"/></marker>
<pattern id="stopped" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3" height="7" class="stripe"/></pattern>
</defs>${under}
${parts.join('\n')}
</svg>`
  }

  #axis(): string {
    const bottom = this.#height - 10
    return this.#scale
      .ticks(LABELS_APART)
      .map(({ at, x }) => {
        const text = at.toFixed(2)
        return `<line x1="${n(LEFT + x)}" x2="${n(LEFT + x)}" y1="${TOP - 22}" y2="${bottom}" class="grid"/><text x="${n(LEFT + x)}" y="${TOP - 28}" class="tick">${text}</text>`
      })
      .join('')
  }

  #lane({ name, y, kind }: LaneOf): string {
    const end = LEFT + this.#scale.width + 10
    return `<text x="10" y="${y + 5}" class="name ${kind} ${this.#colour(name)}">${escape(name)}</text><line x1="${LEFT - 12}" x2="${n(end)}" y1="${y}" y2="${y}" class="lane ${kind}"/>`
  }

  #leases(): string[] {
    const overlaps = overlapsOf(this.#result).map(({ who, from, to }) => {
      const y = this.#y(who) + 9
      return `<rect x="${n(this.#x(from))}" y="${y}" width="${n(Math.max(3, this.#x(to) - this.#x(from)))}" height="${BAR}" class="overlap"><title>two clients call the lock theirs</title></rect>`
    })
    const bars = leasesOf(this.#result).map(({ who, from, to, token, lock, end }) => {
      const y = this.#y(who) + 9
      const width = Math.max(3, this.#x(to) - this.#x(from))
      const text = token === undefined ? lock : `${lock} · ${this.#token(token)}`
      const label =
        width > 34
          ? `<text x="${n(this.#x(from) + 5)}" y="${y + BAR - 2.5}" class="bar-text">${escape(text)}</text>`
          : ''
      const title = `${who} calls ${text} its own, ${from.toFixed(3)} s to ${to.toFixed(3)} s${end === undefined ? '' : `: ${end}`}`
      return `<g><title>${escape(title)}</title><rect x="${n(this.#x(from))}" y="${y}" width="${n(width)}" height="${BAR}" rx="3" class="bar ${this.#colour(who)}"/>${label}</g>`
    })
    return [...bars, ...overlaps]
  }

  #stops(): string[] {
    return stopsOf(this.#result)
      .filter(({ who, to }) => to >= 0 && this.#has(who))
      .map(({ who, kind, from, to }) => {
        const x = this.#x(from)
        const width = Math.max(4, this.#x(to) - x)
        const y = this.#y(who) - 8
        const word = kind === 'paused' ? 'stopped' : 'down'
        const text = width > 50 ? `<text x="${n(x + width / 2)}" y="${y + 12}" class="stop-text">${word}</text>` : ''
        return `<g class="${kind}"><title>${escape(who)} is ${word}, ${from.toFixed(3)} s to ${to.toFixed(3)} s</title><rect x="${n(x)}" y="${y}" width="${n(width)}" height="16" class="stop"/>${text}</g>`
      })
  }

  #arrowLines(): string[] {
    return this.#arrows.map((arrow) => {
      const { from, to, sent, arrived, lost } = arrow
      const [x1, x2] = [this.#x(sent), this.#x(arrived)]
      const [y1, y2] = [this.#y(from), this.#y(to)]
      const title = `${from} → ${to}: ${this.#wordsOf(arrow)}${lost ? ' (lost)' : ''}, ${sent.toFixed(3)} s to ${arrived.toFixed(3)} s`
      const more = `${lost ? ' lost' : ''}${arrived - sent > SLOW_SECONDS ? ' slow' : ''}`
      const end = lost ? { x: (x1 + x2) / 2, y: y1 + (y2 - y1) * 0.45 } : { x: x2, y: y2 }
      const tip = lost ? '' : ' marker-end="url(#tip)"'
      return `<g class="arrow ${this.#about(arrow)}${more}"><title>${escape(title)}</title><line x1="${n(x1)}" y1="${n(y1)}" x2="${n(end.x)}" y2="${n(end.y)}"${tip}/></g>`
    })
  }

  /** Beside their arrows, each at the first place along it where nothing else is written. */
  #arrowWords(): string[] {
    const taken: Box[] = [...this.#leaseBoxes(), ...this.#faultBoxes()]
    const said = new Set<string>()
    return this.#arrows.flatMap((arrow) => {
      const words = this.#wordsOf(arrow)
      // The same words of one moment are written once: a question to five nodes, or their answers.
      const asked = `${words} from ${arrow.from} at ${arrow.sent.toFixed(3)}`
      const answered = `${words} to ${arrow.to} at ${arrow.arrived.toFixed(3)}`
      if (arrow.lost || said.has(asked) || said.has(answered)) return []
      said.add(asked).add(answered)
      const [x1, x2] = [this.#x(arrow.sent), this.#x(arrow.arrived)]
      const [y1, y2] = [this.#y(arrow.from), this.#y(arrow.to)]
      for (const part of PLACES) {
        const box = {
          x: x1 + (x2 - x1) * part + 5,
          y: y1 + (y2 - y1) * part - 6,
          width: words.length * 5.4,
          height: 11,
        }
        if (taken.some((other) => meet(box, other))) continue
        taken.push(box)
        return [
          `<text x="${n(box.x)}" y="${n(box.y + 9)}" class="message ${this.#about(arrow)}">${escape(words)}</text>`,
        ]
      }
      return []
    })
  }

  #leaseBoxes(): Box[] {
    return leasesOf(this.#result).map(({ who, from, to }) => {
      const x = this.#x(from)
      return { x, y: this.#y(who) + 8, width: this.#x(to) - x, height: BAR + 2 }
    })
  }

  /** Where the words of faults stand. */
  #faultBoxes(): (Box & { readonly text: string })[] {
    const boxes: (Box & { readonly text: string })[] = []
    for (const moment of this.#result.timeline) {
      if (moment.kind !== 'fault' || moment.at < 0 || !this.#has(moment.who)) continue
      if (moment.text.startsWith('is paused')) continue
      const text = moment.text.replace(/^its /, '').replace(/:.*$/, '').slice(0, FAULT_WORDS_MAX)
      const box = { text, x: this.#x(moment.at) + 9, y: this.#y(moment.who) - 24, width: text.length * 5.6, height: 12 }
      while (boxes.some((other) => meet(box, other))) box.y -= box.height
      boxes.push(box)
    }
    return boxes
  }

  /** Under the lane of a member: since when it leads. */
  #leaders(): string[] {
    return leadersOf(this.#result)
      .filter(({ who }) => this.#has(who))
      .map(
        ({ who, at, text }) =>
          `<text x="${n(this.#x(at))}" y="${this.#y(who) + 14}" class="leads"><title>${escape(`${who} ${text}`)}</title>★ ${escape(text)}</text>`,
      )
  }

  #wordsOf({ label, token }: Arrow): string {
    if (token === undefined) return label
    return /[0-9]$/.test(label) && label.endsWith(` ${token}`) ? label : `${label} · ${this.#token(token)}`
  }

  #about({ from, to }: Arrow): string {
    return this.#colour(from) || this.#colour(to)
  }

  #faults(): string[] {
    const words = this.#faultBoxes().map(
      ({ x, y, text }) => `<text x="${n(x)}" y="${n(y + 9)}" class="fault-text">${escape(text)}</text>`,
    )
    const marks = this.#result.timeline.flatMap((moment) => {
      if (moment.kind !== 'fault' || moment.at < 0 || !this.#has(moment.who)) return []
      const [x, y] = [this.#x(moment.at), this.#y(moment.who)]
      return [
        `<g class="fault"><title>${escape(`${moment.at.toFixed(3)} s: ${moment.who} ${moment.text}`)}</title><path d="M${n(x + 1)} ${y - 21}l-6 11h5l-2 9 8-12h-5l3-8z"/></g>`,
      ]
    })
    return [...marks, ...words]
  }

  #effects(): string[] {
    return this.#result.timeline.flatMap((moment) => {
      if (moment.kind !== 'resource' || !this.#has(moment.resource)) return []
      const [x, y] = [this.#x(moment.at), this.#y(moment.resource)]
      const token = moment.token === undefined ? '' : `, token ${this.#token(moment.token)}`
      const mark = moment.mark === undefined ? '' : `, mark ${this.#token(moment.mark)}`
      const title = `<title>${escape(`${moment.at.toFixed(3)} s: ${moment.action} of ${moment.by}${token}${mark}`)}</title>`
      const colour = this.#colour(moment.by)
      if (!moment.accepted) {
        const why =
          moment.token === undefined || moment.mark === undefined
            ? 'refused'
            : `${this.#token(moment.token)} < ${this.#token(moment.mark)}`
        return [
          `<g class="refused">${title}<circle cx="${n(x)}" cy="${y}" r="8"/><path d="M${n(x - 4)} ${y - 4}l8 8m0 -8l-8 8"/><text x="${n(x)}" y="${y + 23}">${why}</text></g>`,
        ]
      }
      if (moment.action === 'write' || moment.action === 'effect') {
        return [
          `<g class="effect ${colour}">${title}<circle cx="${n(x)}" cy="${y}" r="9"/><text x="${n(x)}" y="${y + 4}">${escape(moment.value ?? '')}</text></g>`,
        ]
      }
      return [`<g class="look ${colour}">${title}<circle cx="${n(x)}" cy="${y}" r="4"/></g>`]
    })
  }

  #violations(): string[] {
    return this.#result.violations.map(({ at, rule, text, who }) => {
      const x = this.#x(at)
      const rings = who
        .filter((name) => this.#has(name))
        .map((name) => `<circle cx="${n(x)}" cy="${this.#y(name)}" r="14"/>`)
      return `<g class="violation"><title>${escape(`${at.toFixed(3)} s: ${text}`)}</title><line x1="${n(x)}" x2="${n(x)}" y1="${TOP - 18}" y2="${this.#height - 10}"/>${rings.join('')}<text x="${n(x)}" y="14">✗ ${escape(rule)}</text></g>`
    })
  }

  #appears(name: string): boolean {
    const inTimeline = this.#result.timeline.some((moment) => moment.at >= 0 && 'who' in moment && moment.who === name)
    if (leadersOf(this.#result).some(({ who }) => who === name)) return true
    return inTimeline || this.#arrows.some((arrow) => arrow.from === name || arrow.to === name)
  }

  #has(name: string): boolean {
    return this.#lanes.some((lane) => lane.name === name)
  }

  #x(at: number): number {
    return LEFT + this.#scale.x(at)
  }

  #y(name: string): number {
    return this.#lanes.find((lane) => lane.name === name)?.y ?? TOP
  }

  /** Clients have colours; everything else takes that of the client that it is about. */
  #colour(name: string): string {
    const i = this.#result.lanes.clients.indexOf(name)
    return i < 0 ? '' : `c${i % 4}`
  }
}

function meet(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10)
}
