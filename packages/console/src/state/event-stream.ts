import { effect, signal } from '@preact/signals'
import { credentials, problemFrom } from '../api/request.js'
import { backOffMs } from '../model/back-off.js'
import { appendBounded, type EventData, type SeenEvent } from '../model/events.js'
import { type SseEvent, SseParser } from '../model/sse.js'
import { prefixOf } from '../model/table-rows.js'
import { base } from './cluster.js'
import { locksPoller } from './locks.js'
import { place, search } from './route.js'
import { apiKey, onKeyRejected, locked } from './settings.js'

/** Events that this page keeps. */
export const EVENTS_MAX = 2_000

/** Longer than the heartbeat interval of the service, which is 15 s. */
const SILENCE_MS = 40_000
/** A page that is hidden for this long closes its connection: browsers allow only a few per origin. */
const HIDDEN_MS = 60_000
const FLUSH_MS = 250

export const events = signal<readonly SeenEvent[]>([])
/** Date.now() when this page started to listen. */
export const listeningSince = signal(Date.now())
/** Whether the stream is open. */
export const listening = signal(false)

let last = ''
let count = 0
let failures = 0
/** The key may not watch the whole service, so only what the page shows is watched. */
let narrow = false
let stream: AbortController | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let unflushed: SeenEvent[] = []

function prefix(): string {
  if (!narrow) return ''
  return place.value.page === 'locks' && place.value.name !== '' ? place.value.name : prefixOf(search.value)
}

/** Opens the stream, or reopens it. */
export function listen(): void {
  stream?.abort()
  clearTimeout(timer)
  if (locked.value !== undefined || document.hidden || (narrow && prefix() === '')) return
  stream = new AbortController()
  void follow(stream)
}

async function follow(own: AbortController): Promise<void> {
  const key = apiKey.value
  let timeout: ReturnType<typeof setTimeout> | undefined
  const restartTimeout = () => {
    clearTimeout(timeout)
    timeout = setTimeout(() => own.abort(), SILENCE_MS)
  }
  try {
    restartTimeout()
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
      restartTimeout()
      failures = 0
      receive(parser.push(value))
    }
  } catch {
    // Reopened below. The poll of the state reports a lost connection.
  } finally {
    clearTimeout(timeout)
    if (stream === own) {
      listening.value = false
      stream = undefined
      reopenLater()
    }
  }
}

function onRefused(status: number, answer: unknown, key: string): void {
  const problem = problemFrom(status, answer)
  if (status === 401) onKeyRejected(key, problem)
  else if (status === 403) narrow = true
  // This member does not accept the cursor.
  else if (status === 400) last = ''
}

function reopenLater(): void {
  failures++
  timer = setTimeout(listen, backOffMs(failures))
}

function receive(sent: readonly SseEvent[]): void {
  if (sent.length === 0) return
  const at = Date.now()
  for (const { kind, id, data } of sent) {
    last = id
    unflushed.push({ number: ++count, kind, cursor: id, at, data: JSON.parse(data) as EventData })
  }
  if (unflushed.length === sent.length) setTimeout(flush, FLUSH_MS)
  locksPoller.wake()
}

function flush(): void {
  events.value = appendBounded(events.value, unflushed, EVENTS_MAX)
  unflushed = []
}

/** Opens the stream, and reopens it for another key or member; it resumes after the last event. */
export function startEventStream(): void {
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
