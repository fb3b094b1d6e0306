import type { JSX } from 'preact'
import { timeOfDay } from '../model/durations.js'
import { type MemberRow, rates, roleText } from '../model/members.js'
import { baseOf, clusterDenied, leader, leaders, members, ownName } from '../state/cluster.js'
import { now } from '../state/health.js'
import { picture } from '../state/locks.js'
import { Chart } from '../ui/chart.js'
import { Since } from '../ui/times.js'
import { Empty, Section, Tag } from '../ui/labels.js'

/** Places that the axis of time has at least: a new page has a chart, not a dot. */
const AXIS_LEAST = 40

/** Every member as it tells of itself. */
export function ClusterPage(): JSX.Element {
  const rows = members.value
  const denied = clusterDenied.value
  return (
    <>
      <div class="head">
        <h1>Cluster</h1>
      </div>
      {denied !== undefined && (
        <Empty title="This key may not see the cluster">
          <p>{denied.detail}.</p>
        </Empty>
      )}
      {denied === undefined && rows.length === 0 && <p class="soft pad">Asking the members…</p>}
      {denied === undefined && rows.length > 0 && (
        <>
          <Summary rows={rows} />
          <div class="members">
            {rows.map((row) => (
              <Member key={row.name} row={row} />
            ))}
          </div>
          <Reach rows={rows} />
          <Leaders />
        </>
      )}
    </>
  )
}

function Summary({ rows }: { rows: readonly MemberRow[] }): JSX.Element {
  const voters = rows.filter((row) => row.kind === 'voter')
  const quorum = Math.floor(voters.length / 2) + 1
  const answering = voters.filter((row) => row.answers).length
  const led = leader.value
  const enough = answering >= quorum
  return (
    <dl class="summary">
      <div>
        <dt>leader</dt>
        <dd data-testid="leader">{led === undefined ? <span class="bad">none known</span> : <b>{led.member}</b>}</dd>
      </div>
      <div>
        <dt>term</dt>
        <dd class="number">{led?.term ?? '–'}</dd>
      </div>
      <div>
        <dt>voters that answer</dt>
        <dd class="number">
          <span class={enough ? '' : 'bad'}>{answering}</span> of {voters.length}
          <span class="soft"> · quorum {quorum}</span>
        </dd>
      </div>
      <div>
        <dt>epoch</dt>
        <dd class="number">{picture.value?.epoch ?? led?.epoch ?? '–'}</dd>
      </div>
      <div class="wide">
        <dt>cluster</dt>
        <dd>
          <code>{rows.find((row) => row.said !== undefined)?.said?.cluster ?? '–'}</code>
        </dd>
      </div>
    </dl>
  )
}

function Member({ row }: { row: MemberRow }): JSX.Element {
  const { name, url, said, samples, answers } = row
  const role = roleText(row)
  const last = samples.at(-1)
  const isOwn = baseOf(name, url) === ''
  const count = (value: number | undefined) => (value === undefined ? '–' : String(value))
  return (
    <article class="card member" data-role={role} data-testid={`member-${name}`} aria-label={`Member ${name}, ${role}`}>
      <header>
        <h2>{isOwn ? name : <a href={url}>{name}</a>}</h2>
        <Tag kind={role}>{role}</Tag>
        {row.kind === 'learner' && role !== 'learner' && <Tag>learner</Tag>}
        {isOwn && <span class="soft">this page’s member</span>}
      </header>
      {!answers && (
        <p class="bad">
          {row.heard === undefined ? (
            'It never answered this page.'
          ) : (
            <>
              No answer for <Since moment={row.heard} ongoing />.
            </>
          )}
        </p>
      )}
      {said?.failure !== undefined && <p class="bad">It has stopped: {said.failure}</p>}
      {said?.disk === 'full' && answers && <p class="bad">Its disk is full.</p>}
      <dl class="facts">
        <div>
          <dt>term</dt>
          <dd class="number">{count(said?.term)}</dd>
        </div>
        <div>
          <dt>committed</dt>
          <dd class="number">{count(said?.commitIndex)}</dd>
        </div>
        <div>
          <dt>applied</dt>
          <dd class="number">{count(said?.appliedIndex)}</dd>
        </div>
        <div>
          <dt>answer</dt>
          <dd class="number">{answers && last !== undefined ? `${last.rttMs.toFixed(0)} ms` : '–'}</dd>
        </div>
      </dl>
      <div class="charts">
        <Chart
          label="lag, entries"
          values={samples.map((sample) => sample.lag)}
          length={Math.max(AXIS_LEAST, samples.length)}
          least={20}
          format={(value) => String(value)}
        />
        <Chart
          label="applied per s"
          values={rates(samples)}
          length={Math.max(AXIS_LEAST, samples.length)}
          least={5}
          format={rate}
        />
      </div>
      <p class="soft url">{url}</p>
    </article>
  )
}

function rate(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0)
}

/** Members let pages of each other in by the addresses that they go by; a page under another name is a stranger to them. */
function Reach({ rows }: { rows: readonly MemberRow[] }): JSX.Element | null {
  const own = rows.find((row) => row.name === ownName.value)
  const mute = rows.filter((row) => !row.answers && row.heard === undefined)
  if (mute.length === 0 || own === undefined || own.url === location.origin) return null
  return (
    <p class="banner" data-kind="refused">
      <span>
        Members answer pages of each other only under their own addresses. Open <a href={own.url}>{own.url}</a> to see
        all of them here.
      </span>
    </p>
  )
}

function Leaders(): JSX.Element {
  return (
    <Section title="Leaders" note="as this page saw them">
      <ol class="grants">
        {leaders.value.map(({ term, name, at }, i) => {
          const isFirst = i === leaders.value.length - 1
          const isNow = i === 0 && leader.value?.term === term
          return (
            <li key={term}>
              <span class="number soft">{timeOfDay(at)}</span>
              <span>
                <b>{name}</b> {!isFirst ? 'took over' : isNow ? 'leads' : 'led'} in term{' '}
                <span class="number">{term}</span>
              </span>
              {isNow && (
                <span class="soft">
                  for <Since moment={now.value - (Date.now() - at)} ongoing />
                </span>
              )}
            </li>
          )
        })}
      </ol>
    </Section>
  )
}
