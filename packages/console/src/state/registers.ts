import { effect, signal } from '@preact/signals'
import { sendRequest, RequestRefused } from '../api/request.js'
import type { Problem, RegisterResponse, RegistersResponse } from '../api/types.js'
import { prefixOf } from '../model/table-rows.js'
import { base } from './cluster.js'
import { events } from './event-stream.js'
import { Poller } from './polling.js'
import { place, search } from './route.js'
import { apiKey, locked } from './settings.js'

const POLL_MS = 10_000
const SPACING_MS = 300
const LIST_MAX = 500

export const registers = signal<RegistersResponse | undefined>(undefined)
/** The register that the page shows; 'none' if it does not exist. */
export const register = signal<RegisterResponse | 'none' | undefined>(undefined)
export const registersRefused = signal<Problem | undefined>(undefined)

async function poll(): Promise<number> {
  const { page, name } = place.value
  if (page !== 'registers' || locked.value !== undefined) return POLL_MS
  const target = { base: base.value, key: apiKey.value }
  try {
    if (name === '') {
      const prefix = prefixOf(search.value)
      const prefixParameter = prefix === '' ? '' : `&prefix=${encodeURIComponent(prefix)}`
      registers.value = await sendRequest(target, `/v1/registers/list?stale=true&limit=${LIST_MAX}${prefixParameter}`)
    } else {
      const response = await sendRequest<RegisterResponse>(
        target,
        `/v1/registers?stale=true&key=${encodeURIComponent(name)}`,
      )
      if (place.value.name === name) register.value = response
    }
    registersRefused.value = undefined
  } catch (error) {
    if (error instanceof RequestRefused && error.problem.status === 404) register.value = 'none'
    else if (error instanceof RequestRefused) registersRefused.value = error.problem
    // The banner reports a lost connection.
    else return SPACING_MS * 10
  }
  return document.hidden ? POLL_MS * 6 : POLL_MS
}

export const registersPoller = new Poller(poll, SPACING_MS)

export function startRegisters(): void {
  effect(() => {
    const { name } = place.value
    void [search.value, base.value, apiKey.value, locked.value]
    const shown = register.peek()
    if (typeof shown !== 'object' || shown.key !== name) register.value = undefined
    registersPoller.wake()
  })
  let seen = 0
  effect(() => {
    const newEvents = events.value.filter((event) => event.number > seen)
    seen = events.value.at(-1)?.number ?? seen
    if (newEvents.some(({ kind }) => kind === 'put' || kind === 'deleted' || kind === 'gap')) registersPoller.wake()
  })
}
