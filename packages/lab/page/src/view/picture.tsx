import type { JSX } from 'preact'
import type { ResourceView, ViewModel } from '../view-model/view-model.js'
import type { Simulation } from '../view-model/simulation.js'
import { Client, Member, Resource } from './boxes.js'
import { type Layout, layoutOf, linksOf, namesOf } from './layout.js'
import { between, Dots, edge, Links, toneOf } from './links.js'

interface PictureProps {
  readonly simulation: Simulation
  readonly view: ViewModel
  readonly pictureMs: number
  readonly narrow: boolean
  readonly selected: string | undefined
  readonly onSelect: (name: string) => void
  readonly onLink: (a: string, b: string) => void
}

/** Simulated seconds for which the last refused or damaging write stays in the picture. */
const MARKED_SECONDS = 6

/** The world, as it stands. */
export function Picture(props: PictureProps): JSX.Element {
  const { simulation, view, pictureMs, narrow, selected, onSelect, onLink } = props
  const names = namesOf(view)
  const served = simulation.play.system.cluster !== undefined
  const layout = layoutOf(names, narrow, served)
  const pairs = linksOf(names, served)
  const newest = Math.max(1, ...view.members.map(({ last }) => last))
  const common = (name: string) => ({ spot: spotOf(layout, name), narrow, selected: selected === name, onSelect })
  return (
    <svg
      class="picture"
      viewBox={`0 0 ${layout.width} ${layout.height}`}
      role="group"
      aria-label="members, clients, resources"
    >
      <defs>
        <pattern id="stopped" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="hatch" width="4" height="8" />
        </pattern>
        <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path class="tip" d="M0 0L8 4L0 8z" />
        </marker>
      </defs>
      <Links simulation={simulation} layout={layout} pairs={pairs} onLink={onLink} />
      {view.resources.map((resource) => (
        <LastWrite key={resource.name} view={resource} layout={layout} at={view.at} simulation={simulation} />
      ))}
      <Dots simulation={simulation} layout={layout} pictureMs={pictureMs} />
      {view.members.map((member) => (
        <Member key={member.name} view={member} newest={newest} {...common(member.name)} />
      ))}
      {view.clients.map((client) => (
        <Client key={client.name} view={client} {...common(client.name)} />
      ))}
      {view.resources.map((resource) => (
        <Resource key={resource.name} view={resource} {...common(resource.name)} />
      ))}
    </svg>
  )
}

/** The write that came last, if it was refused or has destroyed an update: an arrow with its token. */
function LastWrite(props: {
  readonly view: ResourceView
  readonly layout: Layout
  readonly at: number
  readonly simulation: Simulation
}): JSX.Element | null {
  const { view, layout, at, simulation } = props
  const { last } = view
  if (last === undefined || at - simulation.play.at(last.atUs) > MARKED_SECONDS) return null
  const from = layout.spots.get(last.by)
  const to = layout.spots.get(view.name)
  if (from === undefined || to === undefined) return null
  const damaging = simulation
    .viewModel()
    .findings.some(({ atUs, who }) => atUs === last.atUs && who.includes(view.name))
  if (last.accepted && !damaging && last.after === undefined) return null
  const flies = simulation.flights.dots.some(
    ({ from: a, to: b, label }) => a === last.by && b === view.name && label?.startsWith('write') === true,
  )
  if (flies) return null
  const kind = !last.accepted ? 'refused' : damaging ? 'damaging' : 'late'
  const start = edge(from, to)
  const end = edge(to, from)
  const [x, y] = between(start, end, 0.55)
  const token = last.token === undefined ? 'no token' : `token ${last.token}`
  const words = {
    refused: `✗ ${token}: refused`,
    damaging: `✗ ${token}: an update is lost`,
    late: `! ${token}: taken all the same`,
  }[kind]
  const width = words.length * 6.6 + 16
  return (
    <g class={`last-write ${kind} ${toneOf({ from: last.by, to: view.name })}`}>
      <line x1={start.x} y1={start.y} x2={end.x} y2={end.y} marker-end="url(#tip)" />
      <rect x={x - width / 2} y={y - 11} width={width} height="20" rx="10" />
      <text x={x} y={y + 3.5}>
        {words}
      </text>
    </g>
  )
}

function spotOf(layout: Layout, name: string) {
  const spot = layout.spots.get(name)
  if (spot === undefined) throw new Error(`${name} has no place in the picture`)
  return spot
}
