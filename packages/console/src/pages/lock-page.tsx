import { commonPrefix } from '@leasehold/core'
import { useRef } from 'preact/hooks'
import type { JSX } from 'preact'
import { length, span, timeOfDay, took } from '../model/durations.js'
import { type ObservedGrant, grantsOf, type EarlierHold } from '../model/events.js'
import { type HoldRow, kindOf, type LockRow, modeText } from '../model/table-rows.js'
import { events, listening, listeningSince } from '../state/event-stream.js'
import { now } from '../state/health.js'
import { snapshot } from '../state/locks.js'
import { hrefOf } from '../state/route.js'
import { confirmStealAll, confirmSteal } from '../ui/confirmations.js'
import { Lease, Since, Until } from '../ui/times.js'
import { Client, Empty, LockLink, Section, Tag, Token } from '../ui/labels.js'

const GRANTS_SHOWN = 200

/** Shows one lock: its holders, its queue, and the grants since this page listens. */
export function LockPage({ name }: { name: string }): JSX.Element {
  const known = snapshot.value
  const row = known?.locks.find((one) => one.name === name) ?? { name, holds: [], queue: [], delays: [] }
  const kind = kindOf(row)
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefOf('locks')}>Locks</a>
      </nav>
      <div class="head">
        <h1 class="name">{name}</h1>
        <Tag kind={kind}>{kind}</Tag>
        {row.holds.length > 0 && (
          <button type="button" class="danger-quiet" data-press="steal" onClick={() => confirmStealAll(row)}>
            Steal…
          </button>
        )}
      </div>
      <Holds row={row} />
      <Delays row={row} />
      <Queue row={row} />
      <History row={row} />
    </>
  )
}

function Holds({ row }: { row: LockRow }): JSX.Element {
  const { name, holds, queue } = row
  const shared = commonPrefix(holds.map(({ lock }) => lock.token).map(BigInt)).length
  return (
    <Section title={holds.length > 1 ? 'Holders' : 'Holder'} note={holds.length > 1 ? holds.length : undefined}>
      {holds.length === 0 && (
        <Empty title={queue.length > 0 ? 'No holder yet' : 'It is free'}>
          {queue.length === 0 && <p>It has no holder and no waiters. The next grant appears here.</p>}
        </Empty>
      )}
      {holds.map((hold) => (
        <div class="card hold" key={hold.hold}>
          <div class="hold-owner">
            <Client client={hold.client} session={hold.session} />
            {hold.persistent && <Tag>persistent</Tag>}
            {holds.length > 1 && (
              <button type="button" class="danger-quiet small" onClick={() => confirmSteal(hold)}>
                Steal…
              </button>
            )}
          </div>
          <HoldFacts hold={hold} name={name} shared={shared} />
        </div>
      ))}
    </Section>
  )
}

/** `shared`: the number of leading digits that all tokens of the lock have in common. */
function HoldFacts({ hold, name, shared }: { hold: HoldRow; name: string; shared: number }): JSX.Element {
  return (
    <dl class="facts">
      <Fact what="token">
        <Token value={hold.lock.token} shared={shared} />
      </Fact>
      <Fact what="mode">{modeText(hold.lock.mode, hold.lock.slot)}</Fact>
      <Fact what="held for">
        <Since moment={hold.since} />
      </Fact>
      <Fact what={hold.ttlMs === undefined ? 'time left' : `time left of ${length(hold.ttlMs)}`}>
        <Lease until={hold.until} ttlMs={hold.ttlMs} />
      </Fact>
      {hold.hold !== hold.lock.token && (
        <Fact what="hold">
          <Token value={hold.hold} />
        </Fact>
      )}
      {hold.session !== null && (
        <Fact what="session">
          <Token value={hold.session} />
        </Fact>
      )}
      {hold.names.length > 1 && (
        <Fact what="together with">
          {hold.names
            .filter((other) => other !== name)
            .map((other) => (
              <LockLink key={other} name={other} />
            ))}
        </Fact>
      )}
      {hold.data !== '' && (
        <Fact what="data">
          <code class="data">{hold.data}</code>
        </Fact>
      )}
    </dl>
  )
}

function Fact({ what, children }: { what: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{what}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Delays({ row }: { row: LockRow }): JSX.Element | null {
  if (row.delays.length === 0) return null
  return (
    <Section title="Lock delay" note="blocked, so that the last holder can finish its work">
      {row.delays.map((delay) => (
        <p class="card" key={`${delay.slot}`}>
          {modeText(delay.mode, delay.slot)}: blocked for <Until moment={delay.until} />
        </p>
      ))}
    </Section>
  )
}

function Queue({ row }: { row: LockRow }): JSX.Element {
  const { queue } = row
  return (
    <Section title="Queue" note={queue.length === 0 ? undefined : `${queue.length}, first come, first served`}>
      {queue.length === 0 ? (
        <p class="soft pad">No waiters.</p>
      ) : (
        <table class="queue" aria-label="Queue">
          <thead>
            <tr>
              <th scope="col" class="right">
                #
              </th>
              <th scope="col">Waiter</th>
              <th scope="col">Wants</th>
              <th scope="col" class="right">
                Waiting for
              </th>
              <th scope="col" class="right">
                Times out in
              </th>
            </tr>
          </thead>
          <tbody>
            {queue.map((waiter, i) => (
              <tr key={waiter.key}>
                <td class="right number cell-place">{i + 1}</td>
                <th scope="row">
                  <Client client={waiter.client} session={waiter.session} />
                </th>
                <td data-label="wants">
                  {modeText(waiter.mode)}
                  {waiter.names.length > 1 && <span class="more">and {waiter.names.length - 1} more locks</span>}
                </td>
                <td class="right" data-label="waiting for">
                  <Since moment={waiter.since} />
                </td>
                <td class="right" data-label="times out in">
                  <Until moment={waiter.until} none="never" />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  )
}

/** The holds that existed when the page was opened: their grant times are derived from their age. */
function useEarlierHolds({ holds }: LockRow): readonly EarlierHold[] {
  const first = useRef<readonly EarlierHold[] | undefined>(undefined)
  if (first.current === undefined && holds.length > 0) {
    first.current = holds
      .map(({ hold, lock, client, since }) => ({ hold, token: lock.token, client, from: clockOf(since) }))
      .sort((a, b) => a.from - b.from)
  }
  return first.current ?? []
}

function History({ row }: { row: LockRow }): JSX.Element {
  const before = useEarlierHolds(row)
  const grants = grantsOf(row.name, events.value, before).slice(0, GRANTS_SHOWN)
  const shared = commonPrefix(grants.map(({ token }) => token).map(BigInt)).length
  const since = `since ${timeOfDay(listeningSince.value)}${listening.value ? '' : ', not listening now'}`
  return (
    <Section title="Grants" note={since}>
      {grants.length === 0 ? (
        <p class="soft pad">No grants yet. The history starts when this page is opened.</p>
      ) : (
        <ol class="grants">
          {grants.map((grant) => (
            <Grant key={grant.hold} grant={grant} shared={shared} />
          ))}
        </ol>
      )}
    </Section>
  )
}

/** Converts a moment of the monotonic clock to one of Date.now(). */
function clockOf(moment: number): number {
  return Date.now() - (performance.now() - moment)
}

function Grant({ grant, shared }: { grant: ObservedGrant; shared: number }): JSX.Element {
  const { token, client, from, to, end, by } = grant
  const began = from === undefined ? 'before' : timeOfDay(from)
  const lasted = from === undefined ? '' : to === undefined ? span(clockOf(now.value) - from) : took(to - from)
  return (
    <li data-end={end ?? 'held'}>
      <span class="number soft">{began}</span>
      <Token value={token} shared={shared} />
      <span class="client">{client || <span class="soft">an unnamed client</span>}</span>
      <span class="number">{lasted}</span>
      <span>
        <Tag kind={end ?? 'held'}>{end ?? 'held'}</Tag> {by !== '' && <span class="why">{by}</span>}
      </span>
    </li>
  )
}
