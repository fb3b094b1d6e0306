import { commonPrefix } from '@leasehold/core'
import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { JSX } from 'preact'
import { kindOf, type LockRow, matches, prefixOf } from '../model/table-rows.js'
import { refused } from '../state/health.js'
import { PAGE_MAX, snapshot } from '../state/locks.js'
import { go, search } from '../state/route.js'
import { Search } from '../ui/search.js'
import { Lease, Since } from '../ui/times.js'
import { Client, Empty, LockLink, Tag, Token } from '../ui/labels.js'

/** Rows that are rendered at first, and added by each click on "Show more". */
const DRAWN = 200

const drawn = signal(DRAWN)

const rows = computed(() => snapshot.value?.locks.filter((row) => matches(row, search.value)))

/** Shows every lock that is held, waited for or delayed. */
export function LocksPage(): JSX.Element {
  useEffect(() => {
    drawn.value = DRAWN
  }, [search.value])
  const found = rows.value
  return (
    <>
      <div class="head">
        <h1>Locks</h1>
        <Sums />
        <Search label="Search locks" hint="name, holder, token, or path/" />
      </div>
      {found === undefined ? <Waiting /> : found.length === 0 ? <None /> : <Table found={found} />}
    </>
  )
}

/** The totals of the current query. */
function Sums(): JSX.Element | null {
  const known = snapshot.value
  if (known === undefined) return null
  const { holds, waiters, sessions, partial } = known
  const many = (count: number) => `${count}${partial && count >= PAGE_MAX ? '+' : ''}`
  return (
    <p class="soft number sums">
      {many(holds)} held · {many(waiters)} waiting · {many(sessions.length)}{' '}
      {sessions.length === 1 ? 'session' : 'sessions'}
    </p>
  )
}

function Waiting(): JSX.Element | null {
  if (refused.value !== undefined) return null
  return <p class="soft pad">Querying the service…</p>
}

function None(): JSX.Element {
  if (search.value !== '') {
    return (
      <Empty title={`No lock matches “${search.value}”`}>
        <p>Only locks that are held, waited for or delayed are listed: free locks are not stored.</p>
        <button type="button" onClick={() => (search.value = '')}>
          Clear the search
        </button>
      </Empty>
    )
  }
  return (
    <Empty title="Nothing is held, and there are no waiters">
      <p>A lock appears here as soon as a client acquires it. Try it:</p>
      <pre>npx leasehold run hello -- sleep 60</pre>
    </Empty>
  )
}

function Table({ found }: { found: readonly LockRow[] }): JSX.Element {
  const shown = found.slice(0, drawn.value)
  const partial = snapshot.value?.partial === true
  const shared = commonPrefix(shown.flatMap(({ holds: [first] }) => first?.lock.token ?? []).map(BigInt)).length
  return (
    <>
      <table class="locks" aria-label="Locks">
        <thead>
          <tr>
            <th scope="col">Lock</th>
            <th scope="col">Holder</th>
            <th scope="col">Token</th>
            <th scope="col" class="right">
              Held for
            </th>
            <th scope="col">Time left</th>
            <th scope="col" class="right">
              Queue
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row key={row.name} row={row} shared={shared} />
          ))}
        </tbody>
      </table>
      <p class="foot">
        {found.length > shown.length && (
          <button type="button" onClick={() => (drawn.value += DRAWN)}>
            Show {Math.min(DRAWN, found.length - shown.length)} more of {found.length}
          </button>
        )}
        {partial && (
          <span>
            Only the first {PAGE_MAX} holds and waiters are shown
            {prefixOf(search.value) === ''
              ? ': type a path with / to list those below it.'
              : ' of those below this path.'}
          </span>
        )}
      </p>
    </>
  )
}

function Row({ row, shared }: { row: LockRow; shared: number }): JSX.Element {
  const { name, holds, queue, delays } = row
  const [first] = holds
  const kind = kindOf(row)
  return (
    <tr onClick={(event) => openRow(event, name)}>
      <th scope="row" class="cell-name">
        <LockLink name={name} row />
        {kind !== 'exclusive' && <Tag kind={kind}>{kind}</Tag>}
      </th>
      <td class="cell-holder" data-label="holder">
        {first === undefined ? (
          <span class="soft">none</span>
        ) : (
          <Client client={first.client} session={first.session} />
        )}
        {holds.length > 1 && <span class="more">+{holds.length - 1}</span>}
      </td>
      <td class="cell-token" data-label="token">
        {first === undefined ? <span class="soft">–</span> : <Token value={first.lock.token} shared={shared} />}
      </td>
      <td class="cell-age right" data-label="held for">
        {first === undefined ? <span class="soft">–</span> : <Since moment={first.since} />}
      </td>
      <td class="cell-lease" data-label="left">
        {first !== undefined && <Lease until={first.until} ttlMs={first.ttlMs} />}
        {first === undefined && delays[0] !== undefined && <Lease until={delays[0].until} ttlMs={undefined} />}
      </td>
      <td class="cell-queue right" data-label="queue" data-empty={queue.length === 0}>
        {queue.length === 0 ? <span class="soft">0</span> : <b class="number">{queue.length}</b>}
      </td>
    </tr>
  )
}

/** Opens the lock on a click anywhere in its row, except on a link or while text is selected. */
function openRow(event: MouseEvent, name: string): void {
  if (event.target instanceof HTMLAnchorElement || getSelection()?.isCollapsed === false) return
  go('locks', name)
}
