import { commonPrefix } from '@leasehold/core'
import { computed, signal } from '@preact/signals'
import type { JSX } from 'preact'
import { length } from '../model/durations.js'
import type { SessionRow } from '../model/table-rows.js'
import { refused } from '../state/health.js'
import { snapshot } from '../state/locks.js'
import { search } from '../state/route.js'
import { Search } from '../ui/search.js'
import { confirmEndSession } from '../ui/confirmations.js'
import { Lease } from '../ui/times.js'
import { Client, Empty, LockLink, Token } from '../ui/labels.js'

const DRAWN = 200
/** Lock names that are shown per row. */
const NAMES_MAX = 3

const drawn = signal(DRAWN)

const rows = computed(() => {
  const text = search.value.trim().toLowerCase()
  return snapshot.value?.sessions.filter(
    ({ client, session }) => text === '' || client.toLowerCase().includes(text) || session.includes(text),
  )
})

/** Lock names by session. */
const lockNames = computed(() => {
  const names = new Map<string, string[]>()
  for (const { name, holds } of snapshot.value?.locks ?? []) {
    for (const session of new Set(holds.map((hold) => hold.session))) {
      if (session !== null) names.set(session, [...(names.get(session) ?? []), name])
    }
  }
  return names
})

/** Lists the open sessions. */
export function SessionsPage(): JSX.Element {
  const found = rows.value
  return (
    <>
      <div class="head">
        <h1>Sessions</h1>
        <Search label="Search sessions" hint="client name or id" />
      </div>
      {found === undefined && refused.value === undefined && <p class="soft pad">Querying the service…</p>}
      {found?.length === 0 && (
        <Empty title={search.value === '' ? 'No session is open' : `No session matches “${search.value}”`}>
          <p>A client opens one with its first acquire, and renews it while it runs.</p>
        </Empty>
      )}
      {found !== undefined && found.length > 0 && <Table found={found} />}
    </>
  )
}

function Table({ found }: { found: readonly SessionRow[] }): JSX.Element {
  const shown = found.slice(0, drawn.value)
  const shared = commonPrefix(shown.map(({ session }) => session).map(BigInt)).length
  return (
    <>
      <table class="sessions" aria-label="Sessions">
        <thead>
          <tr>
            <th scope="col">Client</th>
            <th scope="col">Session</th>
            <th scope="col">Holds</th>
            <th scope="col" class="right">
              Waits for
            </th>
            <th scope="col" class="right">
              TTL
            </th>
            <th scope="col">Time left</th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row key={row.session} row={row} shared={shared} />
          ))}
        </tbody>
      </table>
      {found.length > shown.length && (
        <p class="foot">
          <button type="button" onClick={() => (drawn.value += DRAWN)}>
            Show more of {found.length}
          </button>
        </p>
      )}
    </>
  )
}

function Row({ row, shared }: { row: SessionRow; shared: number }): JSX.Element {
  const names = lockNames.value.get(row.session) ?? []
  return (
    <tr>
      <th scope="row">
        {row.client === '' ? <span class="soft">unnamed</span> : <Client client={row.client} session={null} />}
      </th>
      <td data-label="session">
        <Token value={row.session} shared={shared} />
      </td>
      <td data-label="holds" class="cell-names">
        {row.holds === 0 ? <span class="soft">none</span> : <span class="number">{row.holds}</span>}
        {names.slice(0, NAMES_MAX).map((name) => (
          <LockLink key={name} name={name} />
        ))}
        {names.length > NAMES_MAX && <span class="more">+{names.length - NAMES_MAX}</span>}
      </td>
      <td data-label="waits for" class="right number">
        {row.waiters === 0 ? <span class="soft">0</span> : row.waiters}
      </td>
      <td data-label="TTL" class="right number">
        {length(row.ttlMs)}
      </td>
      <td data-label="left">
        <Lease until={row.until} ttlMs={row.ttlMs} />
      </td>
      <td class="right">
        <button
          type="button"
          class="danger-quiet small"
          data-row=""
          aria-label={`End session ${row.client || row.session}`}
          onClick={() => confirmEndSession(row)}
        >
          End…
        </button>
      </td>
    </tr>
  )
}
