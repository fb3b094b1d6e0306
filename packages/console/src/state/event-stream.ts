import { effect, signal } from '@preact/signals'
import { credentials, problemFrom } from '../api/request.js'
import { backOffMs } from '../model/back-off.js'
import { appended, type EventData, type Seen } from '../model/events.js'
import { type Sent, SseParser } from '../model/sse.js'
import { prefixOf } from '../model/table-rows.js'
import { base } from './cluster.js'
import { locksLoop } from './locks.js'
import { place, search } from './route.js'
import { apiKey, keyRefused, locked } from './settings.js'

/** Events that this page remembers. */
export const EVENTS_MAX = 2_000

/** The service says something at least every 15 s. */
const SILENCE_MS = 40_000
/** A page that nobody looks at gives its connection back; browsers have few of them per service. */
const HIDDEN_MS = 60_000
const FLUSH_MS = 250

export const events = signal<readonly Seen[]>([])
/** Since when this page listens, Date.now(). */
export const listeningSince = signal(Date.now())
/** Whether the stream is open now. */
export const listening = signal(false)

let last = ''
let count = 0
let failures = 0
/** This key may not watch the whole service: only what is looked at. */
let narrow = false
let stream: AbortController | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let waiting: Seen[] = []

function prefix(): string {
  if (!narrow) return ''
  return place.value.page === 'locks' && place.value.name !== '' ? place.value.name : prefixOf(search.value)
}

/** Opens the stream, anew when there is one. */
export function listen(): void {
  stream?.abort()
  clearTimeout(timer)
  if (locked.value !== undefined || document.hidden || (narrow && prefix() === '')) return
  stream = new AbortController()
  void follow(stream)
}

async function follow(own: AbortController): Promise<void> {
  const key = apiKey.value
  let quiet: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(quiet)
    quiet = setTimeout(() => own.abort(), SILENCE_MS)
  }
  try {
    heard()
    const from = last === '' ? '' : `&from=${encodeURIComponent(last)}`
    const url = `${base.value}/v1/watch?prefix=${encodeURIComponent(prefix())}${from}`
    const response = await fetch(url, { headers: credentials(key), signal: own.signal, cache: 'no-store' })
    if (!response.ok) return onRefused(response.status, (await response.json()) as unknown, key)
    listening.value = true
    const parser = new SseParser()
    const reader = (response.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      heard()
      failures = 0
      take(parser.push(value))
    }
  } catch {
    // Opened again below. That there is no connection is told by the question for the state.
  } finally {
    clearTimeout(quiet)
    if (stream === own) {
      listening.value = false
      stream = undefined
      again()
    }
  }
}

function onRefused(status: number, answer: unknown, key: string): void {
  const problem = problemFrom(status, answer)
  if (status === 401) keyRefused(key, problem)
  else if (status === 403) narrow = true
  // A cursor that this member does not understand any more.
  else if (status === 400) last = ''
}

function again(): void {
  failures++
  timer = setTimeout(listen, backOffMs(failures))
}

function take(sent: readonly Sent[]): void {
  if (sent.length === 0) return
  const at = Date.now()
  for (const { kind, id, data } of sent) {
    last = id
    waiting.push({ number: ++count, kind, cursor: id, at, data: JSON.parse(data) as EventData })
  }
  if (waiting.length === sent.length) setTimeout(flush, FLUSH_MS)
  locksLoop.wake()
}

function flush(): void {
  events.value = appended(events.value, waiting, EVENTS_MAX)
  waiting = []
}

/** A new key, or another member, means a new stream; it goes on behind the last event. */
export function followFeed(): void {
  effect(() => {
    void [base.value, apiKey.value, locked.value]
    narrow = false
    listen()
  })
  effect(() => {
    void [place.value, search.value]
    if (narrow) listen()
  })
  let hiding: ReturnType<typeof setTimeout> | undefined
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding)
    if (document.hidden) hiding = setTimeout(() => stream?.abort(), HIDDEN_MS)
    else if (stream === undefined) listen()
  })
}
