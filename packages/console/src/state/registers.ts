import { effect, signal } from '@preact/signals'
import { ask, Refusal } from '../api/request.js'
import type { Problem, RegisterAnswer, RegistersAnswer } from '../api/types.js'
import { prefixOf } from '../model/table-rows.js'
import { base } from './cluster.js'
import { events } from './event-stream.js'
import { Loop } from './polling.js'
import { place, search } from './route.js'
import { apiKey, locked } from './settings.js'

const POLL_MS = 10_000
const SPACING_MS = 300
const LIST_MAX = 500

export const registers = signal<RegistersAnswer | undefined>(undefined)
/** The register that is looked at; 'none' when it does not exist. */
export const register = signal<RegisterAnswer | 'none' | undefined>(undefined)
export const registersRefused = signal<Problem | undefined>(undefined)

async function turn(): Promise<number> {
  const { page, name } = place.value
  if (page !== 'registers' || locked.value !== undefined) return POLL_MS
  const asking = { base: base.value, key: apiKey.value }
  try {
    if (name === '') {
      const prefix = prefixOf(search.value)
      const narrowed = prefix === '' ? '' : `&prefix=${encodeURIComponent(prefix)}`
      registers.value = await ask(asking, `/v1/registers/list?stale=true&limit=${LIST_MAX}${narrowed}`)
    } else {
      const answer = await ask<RegisterAnswer>(asking, `/v1/registers?stale=true&key=${encodeURIComponent(name)}`)
      if (place.value.name === name) register.value = answer
    }
    registersRefused.value = undefined
  } catch (error) {
    if (error instanceof Refusal && error.problem.status === 404) register.value = 'none'
    else if (error instanceof Refusal) registersRefused.value = error.problem
    // Silence is told by the banner.
    else return SPACING_MS * 10
  }
  return document.hidden ? POLL_MS * 6 : POLL_MS
}

export const registersLoop = new Loop(turn, SPACING_MS)

export function followRegisters(): void {
  effect(() => {
    const { name } = place.value
    void [search.value, base.value, apiKey.value, locked.value]
    const shown = register.peek()
    if (typeof shown !== 'object' || shown.key !== name) register.value = undefined
    registersLoop.wake()
  })
  let seen = 0
  effect(() => {
    const news = events.value.filter((event) => event.number > seen)
    seen = events.value.at(-1)?.number ?? seen
    if (news.some(({ kind }) => kind === 'put' || kind === 'deleted' || kind === 'gap')) registersLoop.wake()
  })
}
