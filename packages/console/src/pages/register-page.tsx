import type { JSX } from 'preact'
import { timeOfDay } from '../model/durations.js'
import { eventText } from '../model/events.js'
import type { RegisterResponse } from '../api/types.js'
import { events, listeningSince } from '../state/event-stream.js'
import { register, registersRefused } from '../state/registers.js'
import { hrefOf } from '../state/route.js'
import { Empty, LockLink, Section, Token } from '../ui/labels.js'

const WRITES_SHOWN = 200

/** Shows one register: its value, and its writes since this page listens. */
export function RegisterPage({ name }: { name: string }): JSX.Element {
  const known = register.value
  const writes = events.value.filter((event) => event.data.key === name).toReversed()
  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href={hrefOf('registers')}>Registers</a>
      </nav>
      <div class="head">
        <h1 class="name">{name}</h1>
      </div>
      {registersRefused.value !== undefined && (
        <p class="banner" role="alert" data-kind="refused">
          {registersRefused.value.detail}.
        </p>
      )}
      <Section title="Value">
        {known === undefined && <p class="soft pad">Querying the service…</p>}
        {known === 'none' && <Empty title="It does not exist" />}
        {typeof known === 'object' && <Value known={known} />}
      </Section>
      <Section title="Writes" note={`since ${timeOfDay(listeningSince.value)}`}>
        {writes.length === 0 ? (
          <p class="soft pad">No writes yet.</p>
        ) : (
          <ol class="grants">
            {writes.slice(0, WRITES_SHOWN).map((event) => (
              <li key={event.number}>
                <span class="number soft">{timeOfDay(event.at)}</span>
                <span>{eventText(event)}</span>
              </li>
            ))}
          </ol>
        )}
      </Section>
    </>
  )
}

function Value({ known }: { known: RegisterResponse }): JSX.Element {
  const { value, encoding, version, lock } = known
  return (
    <div class="card">
      <dl class="facts">
        <div>
          <dt>version</dt>
          <dd>
            <Token value={version} />
          </dd>
        </div>
        <div>
          <dt>kind</dt>
          <dd>{encoding === 'json' ? 'JSON' : encoding === 'text' ? 'text' : 'bytes, shown as base64'}</dd>
        </div>
        <div>
          <dt>fenced by</dt>
          <dd>{lock === undefined ? 'no lock' : <LockLink name={lock} />}</dd>
        </div>
      </dl>
      <pre class="value">{encoding === 'json' ? JSON.stringify(value, undefined, 2) : String(value)}</pre>
    </div>
  )
}
