import type { ComponentChildren, JSX } from 'preact'
import {
  type ClientView,
  type MachineView,
  type MemberView,
  type ResourceView,
  TTL_MS,
} from '../view-model/view-model.js'
import type { Spot } from './layout.js'

interface BoxProps {
  readonly view: MachineView
  readonly spot: Spot
  readonly what: string
  readonly tone: string
  readonly label: string
  readonly selected: boolean
  readonly onSelect: (name: string) => void
  readonly children: ComponentChildren
}

/** A machine: a card that can be selected. */
function Box({ view, spot, what, tone, label, selected, onSelect, children }: BoxProps): JSX.Element {
  const { x, y, w, h } = spot
  const { name, state } = view
  return (
    <g
      class={`box ${what} ${tone} ${state} ${selected ? 'selected' : ''}`}
      transform={`translate(${x - w / 2} ${y - h / 2})`}
      role="button"
      tabindex={0}
      data-who={name}
      data-state={state}
      aria-label={label}
      aria-pressed={selected}
      onClick={() => onSelect(name)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return
        event.preventDefault()
        onSelect(name)
      }}
    >
      <rect class="card" width={w} height={h} rx="10" />
      {children}
      {state === 'paused' && <rect class="stopped" width={w} height={h} rx="10" />}
      {state !== 'up' && <Stamp x={w / 2} y={h} text={state === 'paused' ? 'paused' : 'not running'} />}
      <ClockTag view={view} w={w} />
    </g>
  )
}

function Stamp({ x, y, text }: { readonly x: number; readonly y: number; readonly text: string }): JSX.Element {
  const w = text.length * 7 + 18
  return (
    <g class="stamp">
      <rect x={x - w / 2} y={y - 11} width={w} height="20" rx="10" />
      <text x={x} y={y + 3.5}>
        {text}
      </text>
    </g>
  )
}

/** A clock that is not right. */
function ClockTag({ view, w }: { readonly view: MachineView; readonly w: number }): JSX.Element | null {
  const { clockOff, drift } = view
  const off = clockOff === 0 ? '' : `${clockOff > 0 ? '+' : ''}${clockOff.toFixed(Math.abs(clockOff) < 10 ? 1 : 0)} s`
  const rate = drift === 0 ? '' : ` ${drift > 0 ? '+' : ''}${drift} %`
  const words = [off, rate, view.isolated ? 'cut off' : ''].filter((part) => part !== '').join(' ')
  if (words === '') return null
  const text = off + rate === '' ? words : `clock ${words}`
  const width = text.length * 6.2 + 14
  return (
    <g class="tag">
      <rect x={w - width - 6} y={-9} width={width} height="18" rx="9" />
      <text x={w - width / 2 - 6} y={3.5}>
        {text}
      </text>
    </g>
  )
}

export interface CommonProps {
  readonly spot: Spot
  readonly narrow: boolean
  readonly selected: boolean
  readonly onSelect: (name: string) => void
}

/** Width below which a box has room for a sign, and not for words. */
const TIGHT = 100
/** Entries of the log that are drawn. */
const CELLS = 12

export function Member(props: CommonProps & { readonly view: MemberView; readonly newest: number }): JSX.Element {
  const { view, spot, narrow, newest } = props
  const { name, role, term, commit, last, diskBytes } = view
  const leads = role === 'leader'
  const runs = view.state !== 'down' && view.trouble === undefined
  const node = view.kind === 'node'
  const label = node
    ? `node ${name}, ${view.state}, ${view.key === undefined ? 'free' : `has the key of ${view.key.owner}`}`
    : `member ${name}, ${runs ? `${role}, term ${term}, commit index ${commit}` : 'not running'}`
  return (
    <Box {...props} view={view} what={`member ${leads && runs ? 'leader' : ''}`} tone="" label={label}>
      <text class="name" x="12" y="23">
        {name}
      </text>
      {!node && runs && (
        <>
          <RoleBadge x={spot.w - 10} role={role} narrow={narrow} tight={spot.w < TIGHT} />
          <text class="small" x="12" y="42">
            {narrow ? `term ${term}` : `term ${term} · commit ${commit}`}
          </text>
          <Log x={12} y={50} w={spot.w - 24} commit={commit} last={last} newest={newest} />
          <text class="faint" x="12" y="84">
            {narrow ? `commit ${commit}` : `log to ${last} · disk ${Math.round(diskBytes / 1024)} kB`}
          </text>
        </>
      )}
      {node && <Key view={view} spot={spot} />}
    </Box>
  )
}

function Key({ view, spot }: { readonly view: MemberView; readonly spot: Spot }): JSX.Element {
  const { key } = view
  if (key === undefined) {
    return (
      <text class="small" x="12" y="46">
        {view.state === 'down' ? '' : 'no key'}
      </text>
    )
  }
  return (
    <g class={`c${key.owner.slice(1)}`}>
      <text class="small ink" x="12" y="46">{`key: ${key.owner}`}</text>
      <Bar x={12} y={56} w={spot.w - 24} remainingMs={key.remainingMs} kind="lease" />
      <text
        class="faint"
        x="12"
        y="86"
      >{`${(key.remainingMs / 1000).toFixed(1)} s${spot.w < TIGHT ? '' : ' by its clock'}`}</text>
    </g>
  )
}

const CANDIDATE = ['asks for votes', 'asks', '?'] as const

function RoleBadge(props: {
  readonly x: number
  readonly role: string
  readonly narrow: boolean
  readonly tight: boolean
}): JSX.Element | null {
  const { x, role, narrow, tight } = props
  if (tight && role === 'follower') return null
  const text =
    role === 'leader' ? (tight ? '★' : '★ leader') : role !== 'candidate' ? role : CANDIDATE[tight ? 2 : narrow ? 1 : 0]
  const width = text.length * 6.3 + 14
  return (
    <g class={`badge ${role}`}>
      <rect x={x - width} y={9} width={width} height="19" rx="9.5" />
      <text x={x - width / 2} y={22.5}>
        {text}
      </text>
    </g>
  )
}

/** The end of the log: full cells are committed, open ones are not yet. */
function Log(props: {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly commit: number
  readonly last: number
  readonly newest: number
}): JSX.Element {
  const { x, y, w, commit, last, newest } = props
  const first = Math.max(1, newest - CELLS + 1)
  const step = w / CELLS
  return (
    <g class="cells">
      {Array.from({ length: CELLS }, (_, i) => {
        const index = first + i
        const kind = index <= commit ? 'committed' : index <= last ? 'written' : 'missing'
        return <rect key={i} class={kind} x={x + i * step} y={y} width={step - 2} height="18" rx="2.5" />
      })}
    </g>
  )
}

function Bar(props: {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly remainingMs: number
  readonly kind: 'belief' | 'lease'
}): JSX.Element {
  const { x, y, w, remainingMs, kind } = props
  const part = Math.max(0, Math.min(1, remainingMs / TTL_MS))
  return (
    <g class={`bar ${kind}`}>
      <rect class="trough" x={x} y={y} width={w} height="9" rx="4.5" />
      {part > 0 && <rect class="rest" x={x} y={y} width={Math.max(4, w * part)} height="9" rx="4.5" />}
    </g>
  )
}

export function Client(props: CommonProps & { readonly view: ClientView }): JSX.Element {
  const { view, spot, narrow } = props
  const { name, hold, lease } = view
  const state = stateText(view)
  const rest = (ms: number | undefined): string => (ms === undefined ? '–' : `${(ms / 1000).toFixed(1)} s`)
  const belief =
    hold === undefined ? 'does not hold the lock' : `believes that it holds it for ${rest(hold.remainingMs)}`
  const label = `client ${name}, ${view.state}, ${state}, ${belief}, lease at the service ${rest(lease?.remainingMs)}`
  const wide = spot.w - 24
  return (
    <Box {...props} view={view} what="client" tone={`c${name.slice(1)}`} label={label}>
      <text class="name" x="12" y="24">
        {name}
      </text>
      <text class={hold?.remainingMs === 0 ? 'token over' : 'token'} x={spot.w - 12} y="24">
        {hold === undefined ? '' : tokenWords(hold, narrow)}
      </text>
      <text class="small" x="12" y="44">
        {narrow ? shorten(state, 18) : state}
      </text>
      <text class="faint" x="12" y="64">
        {narrow ? 'it believes' : 'what it believes'}
      </text>
      <text class="faint right" x={spot.w - 12} y="64">
        {rest(hold?.remainingMs)}
      </text>
      <Bar x={12} y={69} w={wide} remainingMs={hold?.remainingMs ?? 0} kind="belief" />
      {view.served && (
        <>
          <text class="faint" x="12" y="96">
            {narrow ? 'service' : 'its lease at the service'}
          </text>
          <text class="faint right" x={spot.w - 12} y="96">
            {rest(lease?.remainingMs)}
          </text>
          <Bar x={12} y={101} w={wide} remainingMs={lease?.remainingMs ?? 0} kind="lease" />
        </>
      )}
    </Box>
  )
}

function tokenWords({ token, remainingMs }: NonNullable<ClientView['hold']>, narrow: boolean): string {
  if (narrow && remainingMs === 0) return token === undefined ? 'over' : `${token}, over`
  return `${token === undefined ? 'has L' : `token ${token}`}${remainingMs === 0 ? ', over' : ''}`
}

function stateText(view: ClientView): string {
  const { busy, doing, queued, hold, outcome } = view
  if (view.state === 'down') return 'its process is gone'
  if (queued !== undefined) return `waits for L, place ${queued}`
  if (busy) return view.armed ? `${doing} (trap set)` : doing
  if (hold !== undefined) return 'holds L'
  if (view.auto && outcome === 'done') return 'rests'
  return OUTCOMES[outcome] ?? outcome
}

const OUTCOMES: Readonly<Record<string, string>> = {
  done: 'is done',
  refused: '✗ its write was refused',
  lost: 'has noticed that its hold is lost',
  'not-acquired': 'did not get the lock',
  unknown: 'got no answer',
  unfinished: 'idle',
}

function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}

const KINDS: Readonly<Record<string, string>> = {
  U: 'checks nothing',
  G: 'compares tokens',
  'G*': 'compares tokens',
}

export function Resource(props: CommonProps & { readonly view: ResourceView }): JSX.Element {
  const { view, spot, narrow } = props
  const { name, kind, value, mark, last, violations } = view
  const guarded = kind !== 'U'
  const bad =
    violations > 0 ? 'violated' : last?.accepted === false ? 'refusing' : last?.after === undefined ? '' : 'late'
  const label = `resource ${name}, ${KINDS[kind] ?? kind}, value ${value}${mark === undefined ? '' : `, mark ${mark}`}, ${lastText(view)}`
  return (
    <Box {...props} view={view} what={`resource ${bad}`} tone="" label={label}>
      <text class="name" x="12" y="24">
        {name}
      </text>
      <text class="small" x="34" y="24">
        {narrow ? (guarded ? 'guarded' : 'unguarded') : `${guarded ? 'guarded:' : 'unguarded:'} ${KINDS[kind] ?? kind}`}
      </text>
      <text class="value" x="12" y="56">
        {value}
      </text>
      {guarded && (
        <text class="token" x={spot.w - 12} y="54">
          {mark === undefined ? 'no mark yet' : `mark ${mark}`}
        </text>
      )}
      <text class={`small last ${bad}`} x="12" y="79">
        {narrow ? shorten(lastText(view), 28) : lastText(view)}
      </text>
    </Box>
  )
}

function lastText({ last, mark, violations, kind }: ResourceView): string {
  if (kind === 'U' && violations > 0 && last !== undefined) {
    return `✗ ${violations} update${violations > 1 ? 's' : ''} lost; last write by ${last.by}`
  }
  if (last === undefined) return 'no write yet'
  if (last.after !== undefined) return `! late write of ${last.by}: token ${last.token}, after ${last.after}`
  if (last.accepted) return `✓ write of ${last.by}${last.token === undefined ? '' : `, token ${last.token}`}`
  return last.token === undefined
    ? `✗ refused ${last.by}: no token`
    : `✗ refused ${last.by}: token ${last.token} < ${mark}`
}
