import { computed, signal } from '@preact/signals'
import type { JSX } from 'preact'
import { timeOfDay } from '../model/durations.js'
import { eventText, type SeenEvent, subjects } from '../model/events.js'
import { EVENTS_MAX, events, listening, listeningSince } from '../state/event-stream.js'
import { hrefOf, search } from '../state/route.js'
import { Search } from '../ui/search.js'
import { Empty, LockLink, Tag } from '../ui/labels.js'

const DRAWN = 300

const FILTERS = {
  all: () => true,
  grants: ({ kind }: SeenEvent) => kind === 'held' || kind === 'freed',
  queues: ({ kind }: SeenEvent) => kind === 'queued' || kind === 'unqueued',
  sessions: ({ kind }: SeenEvent) => kind.startsWith('session'),
  registers: ({ kind }: SeenEvent) => kind === 'put' || kind === 'deleted',
} as const

type Filter = keyof typeof FILTERS

const filter = signal<Filter>('all')
/** Number of the last shown event while the list is paused; undefined: all events are shown. */
const pausedAt = signal<number | undefined>(undefined)

const found = computed(() => {
  const text = search.value.trim().toLowerCase()
  const until = pausedAt.value ?? Number.POSITIVE_INFINITY
  const wanted = FILTERS[filter.value]
  return events.value
    .filter((event) => event.number <= until && wanted(event))
    .filter((event) => text === '' || `${subjects(event).join(' ')} ${eventText(event)}`.toLowerCase().includes(text))
    .toReversed()
})

/** Shows events as they arrive. */
export function EventsPage(): JSX.Element {
  const paused = pausedAt.value
  const newer = paused === undefined ? 0 : events.value.filter((event) => event.number > paused).length
  const pause = () => (pausedAt.value = paused === undefined ? (events.value.at(-1)?.number ?? 0) : undefined)
  return (
    <>
      <div class="head">
        <h1>Events</h1>
        <Search label="Search events" hint="lock, register, client or reason" />
        <button type="button" aria-pressed={paused !== undefined} onClick={pause}>
          {paused === undefined ? 'Pause' : `Resume (${newer} new)`}
        </button>
      </div>
      <div class="filters" role="group" aria-label="Kinds of events">
        {(Object.keys(FILTERS) as Filter[]).map((one) => (
          <button key={one} type="button" aria-pressed={filter.value === one} onClick={() => (filter.value = one)}>
            {one}
          </button>
        ))}
        <span class="soft">
          since {timeOfDay(listeningSince.value)}
          {listening.value ? '' : ', not listening now'}, at most {EVENTS_MAX}
        </span>
      </div>
      {found.value.length === 0 ? (
        <Empty title={events.value.length === 0 ? 'No events since this page was opened' : 'No event matches'} />
      ) : (
        <ol class="events" aria-label="Events, newest first">
          {found.value.slice(0, DRAWN).map((event) => (
            <Line key={event.number} event={event} />
          ))}
        </ol>
      )}
    </>
  )
}

function Line({ event }: { event: SeenEvent }): JSX.Element {
  const names = subjects(event)
  const { key } = event.data
  return (
    <li data-kind={event.kind}>
      <span class="number soft" title={event.cursor}>
        {timeOfDay(event.at)}
      </span>
      <Tag kind={event.kind === 'freed' ? event.data.reason : event.kind}>{event.kind}</Tag>
      <span class="cell-names">
        {key !== undefined && (
          <a class="name" href={hrefOf('registers', key)}>
            {key}
          </a>
        )}
        {key === undefined && names.map((name) => <LockLink key={name} name={name} />)}
      </span>
      <span class="why">{eventText(event)}</span>
    </li>
  )
}
