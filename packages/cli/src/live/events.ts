import type { WatchEvent } from 'leasehold'
import { outColours } from '../colours.js'
import type { Cell } from '../table.js'

export const EVENT_HEADINGS = ['TIME', 'EVENT', 'NAME', 'ACTOR', 'WHAT']

/** One event, in columns. */
export interface EventRow {
  readonly at: Date
  readonly event: string
  readonly name: string
  readonly actor: string
  readonly what: string
}

/** Formats an event as a row. */
export function eventRow(event: WatchEvent, at: Date): EventRow {
  switch (event.kind) {
    case 'held': {
      const what = event.locks.map((lock) => `token ${lock.token}`).join(', ')
      return { at, event: 'held', name: namesOf(event.locks), actor: event.client || String(event.session), what }
    }
    case 'freed': {
      const what = [event.reason, event.text].filter((part) => part !== '').join(', ')
      return { at, event: 'freed', name: namesOf(event.locks), actor: event.actor, what }
    }
    case 'queued':
      return { at, event: 'queued', name: event.names.join(', '), actor: `session ${event.session}`, what: '' }
    case 'unqueued':
      return {
        at,
        event: 'unqueued',
        name: event.names.join(', '),
        actor: `session ${event.session}`,
        what: event.reason,
      }
    case 'sessionOpened':
      return { at, event: 'session', name: '', actor: event.client || '(no name)', what: `${event.session} opened` }
    case 'sessionEnded':
      return { at, event: 'session', name: '', actor: '', what: `${event.session} ended: ${event.reason}` }
    case 'put':
      return { at, event: 'put', name: event.key, actor: '', what: `version ${event.version}` }
    case 'deleted':
      return { at, event: 'deleted', name: event.key, actor: '', what: `version ${event.version}` }
  }
}

export function eventCells({ at, event, name, actor, what }: EventRow): Cell[] {
  return [clock(at), { text: event, paint: paintOf(event) }, name, actor, what]
}

/** Formats the local time, with milliseconds. */
export function clock(at: Date): string {
  const two = (value: number) => String(value).padStart(2, '0')
  const ms = String(at.getMilliseconds()).padStart(3, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`
}

export function paintOf(event: string): (text: string) => string {
  switch (event) {
    case 'held':
      return outColours.green
    case 'freed':
    case 'unqueued':
      return outColours.yellow
    case 'gap':
      return outColours.red
    case 'session':
      return outColours.dim
    default:
      return (text) => text
  }
}

function namesOf(locks: readonly { readonly name: string }[]): string {
  return locks.map((lock) => lock.name).join(', ')
}
