import type { ScenarioResult } from '../scenarios/index.js'
import {
  actorOf,
  isTelling,
  leadersOf,
  leasesOf,
  type Moment,
  overlapsOf,
  sentenceOf,
  stopsOf,
  tokenWords,
  verdictOf,
  words,
} from './story.js'

/** How to colour; the default leaves text as it is. */
export interface Paint {
  bold(text: string): string
  dim(text: string): string
  red(text: string): string
  green(text: string): string
  yellow(text: string): string
  /** One of a few colours, by number: each client has its own. */
  actor(n: number, text: string): string
}

const plain = (text: string) => text
export const NO_PAINT: Paint = {
  bold: plain,
  dim: plain,
  red: plain,
  green: plain,
  yellow: plain,
  actor: (_n, text) => text,
}

const LABEL = 10
const WIDTH = 66

/** A run as text: what it is about, lanes over time, what happened, and how it came out. */
export function terminalPicture(result: ScenarioResult, paint: Paint = NO_PAINT): string {
  const picture = new Picture(result, paint)
  return [picture.head(), '', picture.lanes(), '', picture.diary(), '', picture.outcome()].join('\n')
}

class Picture {
  readonly #token: (text: string) => string

  readonly #result: ScenarioResult
  readonly #paint: Paint

  constructor(result: ScenarioResult, paint: Paint) {
    this.#result = result
    this.#paint = paint
    this.#token = tokenWords(result)
  }

  head(): string {
    const { bold, dim } = this.#paint
    const { scenario, title, text, reference } = this.#result
    const lines = wrapped(text, WIDTH + LABEL).map((line) => `  ${line}`)
    return [
      `${bold(scenario)}  ${bold(title)}`,
      ...lines,
      ...wrapped(reference, 110).map((line) => `  ${dim(line)}`),
    ].join('\n')
  }

  lanes(): string {
    const { clients, members, resources } = this.#result.lanes
    const leaders = leadersOf(this.#result)
    const stirred = members.filter(
      (name) =>
        leaders.some(({ who }) => who === name) ||
        this.#result.timeline.some((moment) => moment.at >= 0 && touches(moment, name)),
    )
    return [
      row('', this.#paint.dim(this.#scale())),
      ...clients.flatMap((name, n) => this.#client(name, n)),
      ...stirred.map((name) => this.#member(name)),
      ...resources.map((name) => this.#resource(name)),
      ...this.#violations(),
    ].join('\n')
  }

  diary(): string {
    const { dim } = this.#paint
    return this.#result.timeline
      .filter(isTelling)
      .map((moment) => {
        const actor = actorOf(moment)
        const text = this.#coloured(moment, words(sentenceOf(moment, this.#token), this.#token))
        return `  ${dim(moment.at.toFixed(3).padStart(8))}  ${this.#named(actor, actor.padEnd(4))} ${text}`
      })
      .join('\n')
  }

  outcome(): string {
    const { bold, dim, green, red, yellow } = this.#paint
    const { observed, differences, seed, traceHash } = this.#result
    const verdict = verdictOf(this.#result)
    const colour = { shown: yellow, clean: green, wrong: red }[verdict.kind]
    const facts = [
      ...Object.entries(observed.units).map(([name, outcome]) => `${name} ${outcome}`),
      ...Object.entries(observed.values).map(([name, value]) => `${name} = ${value}`),
      ...(observed.approximate ? ['holds are approximate'] : []),
    ]
    return [
      `  ${bold(colour(verdict.text))}`,
      `  ${facts.join(' · ')}`,
      ...differences.map((line) => `  ${red(line)}`),
      `  ${dim(`seed ${seed} · trace ${traceHash}`)}`,
    ].join('\n')
  }

  #client(name: string, n: number): string[] {
    const paint = this.#paint
    const result = this.#result
    const colour = (text: string) => paint.actor(n, text)
    const lane = new Lane()
    const own = result.timeline.filter((moment) => moment.kind === 'client' && moment.who === name && moment.at >= 0)
    const [first] = own
    const last = own.at(-1)
    if (first !== undefined) lane.fill(this.#column(first.at), this.#column(last?.at ?? first.at), colour('█'))
    for (const stop of stopsOf(result).filter(({ who }) => who === name)) {
      const mark = stop.kind === 'paused' ? paint.yellow('░') : paint.dim('✝')
      lane.fill(this.#column(stop.from), stop.kind === 'down' ? this.#column(stop.from) : this.#column(stop.to), mark)
    }
    const leases = leasesOf(result).filter(({ who }) => who === name)
    const stopped = stopsOf(result).some(({ who, kind }) => who === name && kind === 'paused')
    const line = row(name, `${lane}${stopped ? `  ${paint.dim('░ stopped')}` : ''}`)
    if (leases.length === 0) return [line]
    const bars = new Lane()
    for (const { from, to } of leases) bars.fill(this.#column(from), this.#column(to), colour('━'))
    for (const { who, from, to } of overlapsOf(result)) {
      if (who === name) bars.fill(this.#column(from), this.#column(to), paint.red('━'))
    }
    const last2 = leases.at(-1)
    const tokens = leases.flatMap(({ token }) => (token === undefined ? [] : [this.#token(token)]))
    const said =
      tokens.length === 0 ? '' : ` token ${tokens.length > 3 ? `${tokens[0]} … ${tokens.at(-1)}` : tokens.join(', ')}`
    return [line, row(`  holds ${last2?.lock}`, `${bars} ${colour(said)}`)]
  }

  #member(name: string): string {
    const paint = this.#paint
    const result = this.#result
    const lane = new Lane()
    for (const stop of stopsOf(result).filter(({ who }) => who === name)) {
      lane.fill(
        this.#column(stop.from),
        this.#column(stop.to),
        stop.kind === 'paused' ? paint.yellow('░') : paint.dim('✝'),
      )
    }
    for (const moment of result.timeline) {
      if (moment.kind === 'fault' && moment.who === name && moment.at >= 0)
        lane.put(this.#column(moment.at), paint.yellow('⚡'))
    }
    const led = leadersOf(result).filter(({ who }) => who === name)
    for (const { at } of led) lane.put(this.#column(at), paint.bold('★'))
    return row(name, `${lane}${led.length > 0 ? `  ${paint.dim('★ leads')}` : ''}`)
  }

  #resource(name: string): string {
    const paint = this.#paint
    const result = this.#result
    const lane = new Lane()
    for (const moment of result.timeline) {
      if (moment.kind !== 'resource' || moment.resource !== name || moment.at < 0) continue
      const n = result.lanes.clients.indexOf(moment.by)
      const column = this.#column(moment.at)
      if (!moment.accepted) lane.put(column, paint.red('✗'))
      else if (moment.action === 'write' || moment.action === 'effect')
        lane.put(column, paint.actor(n, moment.value?.slice(-1) ?? '●'))
      else if (lane.isFree(column)) lane.put(column, paint.actor(n, '·'))
    }
    return row(name, `${lane}  ${paint.dim('· reads  ✗ refuses')}`)
  }

  #violations(): string[] {
    const { violations } = this.#result
    if (violations.length === 0) return []
    const lane = new Lane()
    for (const { at } of violations) lane.put(this.#column(at), this.#paint.red('▲'))
    return [row('', `${lane}  ${this.#paint.red('▲ violation')}`)]
  }

  #scale(): string {
    const { until } = this.#result
    const step = [0.1, 0.5, 1, 2, 5, 10, 20, 50, 100].find((one) => until / one <= 8) ?? until / 8
    let text = ''
    for (let at = 0; at <= until; at += step) {
      const start = this.#column(at)
      const mark = `${Number(at.toFixed(3))}s`
      if (start >= text.length && start + mark.length <= WIDTH) text = text.padEnd(start) + mark
    }
    return text
  }

  #column(at: number): number {
    return Math.max(0, Math.min(WIDTH - 1, Math.floor((at / this.#result.until) * WIDTH)))
  }

  #coloured(moment: Moment, text: string): string {
    const { red, yellow, bold } = this.#paint
    if (moment.kind === 'violation') return bold(red(text))
    if (moment.kind === 'fault') return yellow(text)
    return moment.kind === 'resource' && !moment.accepted ? red(text) : text
  }

  #named(actor: string, text: string): string {
    const n = this.#result.lanes.clients.indexOf(actor)
    return n < 0 ? this.#paint.bold(text) : this.#paint.actor(n, text)
  }
}

/** A row of cells, blank where nothing was drawn. */
class Lane {
  readonly #cells: string[] = new Array<string>(WIDTH).fill(' ')

  fill(from: number, to: number, mark: string): void {
    for (let i = from; i <= Math.min(to, WIDTH - 1); i++) this.#cells[i] = mark
  }

  put(at: number, mark: string): void {
    this.#cells[Math.min(at, WIDTH - 1)] = mark
  }

  isFree(at: number): boolean {
    return this.#cells[at] === ' '
  }

  toString(): string {
    return this.#cells.join('')
  }
}

function touches(moment: Moment, name: string): boolean {
  return (moment.kind === 'fault' || moment.kind === 'process') && moment.who === name
}

function row(label: string, text: string): string {
  return `  ${label.padEnd(LABEL)} ${text}`.trimEnd()
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ').filter((one) => one !== '')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}
