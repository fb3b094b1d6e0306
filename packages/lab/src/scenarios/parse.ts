import { InvalidError } from '@leasehold/core'
import { EXPLORED } from './fuzz-scenario.js'
import type { Scenario } from './format.js'
import { SYSTEM_KINDS } from './systems/index.js'

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const isTime: Check = (value) => isNumber(value) && (value as number) >= 0 && (value as number) <= SECONDS_MAX
const isNames: Check = (value) => isText(value) || (Array.isArray(value) && value.length > 0 && value.every(isText))

/** Longer scenarios would not fit a picture, and take long. */
const SECONDS_MAX = 100_000
const CLIENTS_MAX = 20
const STEPS_MAX = 1_000
const FAULTS_MAX = 1_000

/** Fields that a step or fault must have, by its `do`. */
const STEPS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  wait: { until: isTime },
  acquire: {},
  read: {},
  work: { for: isTime },
  write: {},
  effect: {},
  release: {},
  client: { action: isText },
}
const FAULTS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  pause: { for: isTime },
  kill: {},
  powerOff: {},
  start: {},
  suspend: { for: isTime },
  stepClock: { clock: (value) => ['wall', 'monotonic', 'boot'].includes(value as string), by: isNumber },
  drift: { ppm: isNumber },
  cut: { from: isNames, to: isNames },
  isolate: {},
  hold: { from: isText, to: isText, for: isTime },
  clog: { from: isText, to: isText, for: isTime },
  forget: { from: isText, to: isText },
  link: { from: isNames, to: isNames },
  system: { action: isText },
}
const KINDS = ['U', 'G', 'G*', 'V', 'X']
const TOP = ['id', 'title', 'reference', 'text', 'system', 'resources', 'clients', 'faults', 'until', 'expect']

/** Reads a scenario from JSON text. @throws InvalidError that names the place */
export function parseScenario(text: string): Scenario {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new InvalidError('a scenario is one JSON object', { cause, hint: 'see docs/lab.md for the format' })
  }
  checkScenario(value)
  return value
}

/** @throws InvalidError that names the place */
export function checkScenario(value: unknown): asserts value is Scenario {
  const scenario = objectAt('the scenario', value)
  for (const key of Object.keys(scenario)) if (!TOP.includes(key)) wrong(key, `is unknown; there are ${TOP.join(', ')}`)
  if (!isText(scenario.id) || !/^[A-Za-z0-9.-]{1,40}$/.test(scenario.id as string)) {
    wrong('id', 'is 1 to 40 letters, digits, dashes and dots')
  }
  if (!isText(scenario.title)) wrong('title', 'is a text')
  if (!isText(scenario.reference)) wrong('reference', 'is a text: where the case comes from')
  const system = objectAt('system', scenario.system)
  if (system.kind !== EXPLORED && !SYSTEM_KINDS.includes(system.kind as string)) {
    wrong('system.kind', `is one of ${SYSTEM_KINDS.join(', ')}`)
  }
  for (const [name, spec] of Object.entries(objectAt('resources', scenario.resources ?? {}))) {
    const { kind } = objectAt(`resources.${name}`, spec)
    if (!KINDS.includes(kind as string)) wrong(`resources.${name}.kind`, `is one of ${KINDS.join(', ')}`)
  }
  const clients = Object.entries(objectAt('clients', scenario.clients))
  // A plan of the explorer brings its clients along.
  const least = system.kind === EXPLORED ? 0 : 1
  if (clients.length < least || clients.length > CLIENTS_MAX) wrong('clients', `has 1 to ${CLIENTS_MAX} entries`)
  for (const [name, steps] of clients) eachOf(`clients.${name}`, steps, STEPS, STEPS_MAX)
  eachOf('faults', scenario.faults ?? [], FAULTS, FAULTS_MAX)
  for (const [i, fault] of ((scenario.faults ?? []) as { at?: unknown }[]).entries()) {
    if (!isTime(fault.at) && !isText(fault.at))
      wrong(`faults[${i}].at`, 'is a second, or a point such as "C1 in write"')
  }
  if (!isTime(scenario.until)) wrong('until', `is a number of seconds, at most ${SECONDS_MAX}`)
  if (!Array.isArray(objectAt('expect', scenario.expect).violations)) {
    wrong('expect.violations', 'is a list of rules, empty if nothing may be broken')
  }
}

function eachOf(place: string, list: unknown, known: typeof STEPS, most: number): void {
  if (!Array.isArray(list) || list.length > most) return wrong(place, `is a list of at most ${most} entries`)
  for (const [i, entry] of list.entries()) {
    const part = objectAt(`${place}[${i}]`, entry)
    const fields = known[part.do as string]
    if (fields === undefined) return wrong(`${place}[${i}].do`, `is one of ${Object.keys(known).join(', ')}`)
    for (const [field, check] of Object.entries(fields)) {
      if (!check(part[field])) wrong(`${place}[${i}].${field}`, `is missing or wrong: ${JSON.stringify(part[field])}`)
    }
  }
}

function objectAt(place: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  return wrong(place, 'is an object')
}

function wrong(place: string, why: string): never {
  throw new InvalidError(`${place} ${why}`, { hint: 'see docs/lab.md for the format' })
}
