import type { JSX } from 'preact'
import { timeOfDay } from '../model/durations.js'
import { type MemberRow, rates, roleText, type Sample } from '../model/members.js'
import { baseOf, clusterDenied, leader, leaders, members, ownName } from '../state/cluster.js'
import { now } from '../state/health.js'
import { snapshot } from '../state/locks.js'
import { Chart } from '../ui/chart.js'
import { Since } from '../ui/times.js'
import { Empty, Section, Tag } from '../ui/labels.js'

/** The minimal length of the time axis, so that a new page shows a chart instead of a dot. */
const AXIS_MIN = 40

/** Shows the status of every member. */
export function ClusterPage(): JSX.Element {
  const rows = members.value
  const denied = clusterDenied.value
  return (
    <>
      <div class="head">
        <h1>Cluster</h1>
      </div>
      {denied !== undefined && (
        <Empty title="This key may not read the cluster">
          <p>{denied.detail}.</p>
        </Empty>
      )}
      {denied === undefined && rows.length === 0 && <p class="soft pad">Querying the members…</p>}
      {denied === undefined && rows.length > 0 && (
        <>
          <Summary rows={rows} />
          <div class="members">
            {rows.map((row) => (
              <Member key={row.name} row={row} />
            ))}
          </div>
          <UnreachableHint rows={rows} />
          <Leaders />
        </>
      )}
    </>
  )
}

function Summary({ rows }: { rows: readonly MemberRow[] }): JSX.Element {
  const voters = rows.filter((row) => row.kind === 'voter')
  const quorum = Math.floor(voters.length / 2) + 1
  const responding = voters.filter((row) => row.isResponding).length
  const led = leader.value
  const enough = responding >= quorum
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
        <dt>voters responding</dt>
        <dd class="number">
          <span class={enough ? '' : 'bad'}>{responding}</span> of {voters.length}
          <span class="soft"> · quorum {quorum}</span>
        </dd>
      </div>
      <div>
        <dt>epoch</dt>
        <dd class="number">{snapshot.value?.epoch ?? led?.epoch ?? '–'}</dd>
      </div>
      <div class="wide">
        <dt>cluster</dt>
        <dd>
          <code>{rows.find((row) => row.status !== undefined)?.status?.cluster ?? '–'}</code>
        </dd>
      </div>
    </dl>
  )
}

function Member({ row }: { row: MemberRow }): JSX.Element {
  const { name, url, status, samples, isResponding } = row
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
        {isOwn && <span class="soft">serves this page</span>}
      </header>
      {!isResponding && (
        <p class="bad">
          {row.lastSeen === undefined ? (
            'It has never answered this page.'
          ) : (
            <>
              No answer for <Since moment={row.lastSeen} ongoing />.
            </>
          )}
        </p>
      )}
      {status?.failure !== undefined && <p class="bad">It has stopped: {status.failure}</p>}
      {status?.disk === 'full' && isResponding && <p class="bad">Its disk is full.</p>}
      <dl class="facts">
        <div>
          <dt>term</dt>
          <dd class="number">{count(status?.term)}</dd>
        </div>
        <div>
          <dt>committed</dt>
          <dd class="number">{count(status?.commitIndex)}</dd>
        </div>
        <div>
          <dt>applied</dt>
          <dd class="number">{count(status?.appliedIndex)}</dd>
        </div>
        <div>
          <dt>latency</dt>
          <dd class="number">{isResponding && last !== undefined ? `${last.rttMs.toFixed(0)} ms` : '–'}</dd>
        </div>
      </dl>
      <Charts samples={samples} />
      <p class="soft url">{url}</p>
    </article>
  )
}

function Charts({ samples }: { samples: readonly Sample[] }): JSX.Element {
  const length = Math.max(AXIS_MIN, samples.length)
  return (
    <div class="charts">
      <Chart
        label="lag, entries"
        values={samples.map((sample) => sample.lag)}
        length={length}
        least={20}
        format={(value) => String(value)}
      />
      <Chart label="applied per s" values={rates(samples)} length={length} least={5} format={rate} />
    </div>
  )
}

function rate(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0)
}

/** A hint for a page that was opened under another address than that of its member, whose origin the others reject. */
function UnreachableHint({ rows }: { rows: readonly MemberRow[] }): JSX.Element | null {
  const own = rows.find((row) => row.name === ownName.value)
  const silent = rows.filter((row) => !row.isResponding && row.lastSeen === undefined)
  if (silent.length === 0 || own === undefined || own.url === location.origin) return null
  return (
    <p class="banner" data-kind="refused">
      <span>
        Members accept pages of each other only under their own addresses. Open <a href={own.url}>{own.url}</a> to see
        all of them here.
      </span>
    </p>
  )
}

function Leaders(): JSX.Element {
  return (
    <Section title="Leaders" note="observed by this page">
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
