import { commonPrefix } from '@leasehold/core'
import { computed } from '@preact/signals'
import type { JSX } from 'preact'
import type { RegisterInfo } from '../api/types.js'
import { registers, registersRefused } from '../state/registers.js'
import { hrefOf, search } from '../state/route.js'
import { Search } from '../ui/search.js'
import { Empty, LockLink, Token } from '../ui/labels.js'

const rows = computed(() => {
  const text = search.value.trim().toLowerCase()
  return registers.value?.registers.filter(({ key }) =>
    text.includes('/') ? `${key.toLowerCase()}/`.startsWith(text) : key.toLowerCase().includes(text),
  )
})

/** Lists the registers. */
export function RegistersPage(): JSX.Element {
  const found = rows.value
  return (
    <>
      <div class="head">
        <h1>Registers</h1>
        <Search label="Search registers" hint="key, or path/" />
      </div>
      {registersRefused.value !== undefined && (
        <p class="banner" role="alert" data-kind="refused">
          {registersRefused.value.detail}. Type a path that this key may read, such as <code>config/</code>.
        </p>
      )}
      {found === undefined && registersRefused.value === undefined && <p class="soft pad">Querying the service…</p>}
      {found?.length === 0 && registersRefused.value === undefined && (
        <Empty title={search.value === '' ? 'No register has a value' : `No register matches “${search.value}”`}>
          <p>A register is a small value with a version, for flags, pointers and checkpoints:</p>
          <pre>npx leasehold put config/flags '&#123;"dark":true&#125;'</pre>
        </Empty>
      )}
      {found !== undefined && found.length > 0 && <Table found={found} />}
      {registers.value !== undefined && registers.value.next !== null && (
        <p class="foot">There are more: type a path with / to list those below it.</p>
      )}
    </>
  )
}

function Table({ found }: { found: readonly RegisterInfo[] }): JSX.Element {
  const shared = commonPrefix(found.map(({ version }) => version).map(BigInt)).length
  return (
    <table class="registers" aria-label="Registers">
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col">Version</th>
          <th scope="col">Fenced by</th>
          <th scope="col" class="right">
            Bytes
          </th>
        </tr>
      </thead>
      <tbody>
        {found.map(({ key, version, lock, bytes }) => (
          <tr key={key}>
            <th scope="row">
              <a class="name" href={hrefOf('registers', key)} data-row="">
                {key}
              </a>
            </th>
            <td data-label="version">
              <Token value={version} shared={shared} />
            </td>
            <td data-label="fenced by">
              {lock === undefined ? <span class="soft">no lock</span> : <LockLink name={lock} />}
            </td>
            <td data-label="bytes" class="right number">
              {bytes}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
