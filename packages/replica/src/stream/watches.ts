import {
  type Cursor,
  type Event,
  type EventsMessage,
  type Index,
  type MayRead,
  redactEvent,
  matchesPrefix,
} from '@leasehold/core'
import type { Member } from '../member.js'

/** One watch of a stream: a prefix, and the cursor up to which its client has all events. */
export interface Watch {
  readonly correlation: number
  readonly prefix: string
  readonly from: Cursor
}

/** Returns the events of one entry for one watch; undefined when there are none. */
export function eventsFor(watch: Watch, index: Index, events: readonly Event[], first = 1): EventsMessage | undefined {
  const { from, prefix, correlation } = watch
  if (index < from.index) return undefined
  const items: { ordinal: number; event: Event }[] = []
  events.forEach((event, i) => {
    const ordinal = first + i
    if (index === from.index && ordinal <= from.ordinal) return
    if (matchesPrefix(prefix, event)) items.push({ ordinal, event })
  })
  return items.length > 0 ? { kind: 'events', correlation, index, items } : undefined
}

/** Returns the events between the watch's cursor and now; undefined when some are no longer in memory. */
export function pastEvents<State>(member: Member<State>, watch: Watch): EventsMessage[] | undefined {
  const past = member.history(watch.from)
  if (!past) return undefined
  const messages: EventsMessage[] = []
  let items: { ordinal: number; event: Event }[] = []
  let index: Index | undefined
  const close = () => {
    if (index !== undefined && items.length > 0) {
      messages.push({ kind: 'events', correlation: watch.correlation, index, items })
    }
    items = []
  }
  for (const { cursor, event } of past) {
    if (cursor.index !== index) close()
    index = cursor.index
    if (matchesPrefix(watch.prefix, event)) items.push({ ordinal: cursor.ordinal, event })
  }
  close()
  return messages
}

/** Returns the events without the names that the client may not read. */
export function narrowed(message: EventsMessage, mayRead: MayRead | undefined): EventsMessage {
  if (mayRead === undefined) return message
  const items = message.items.map(({ ordinal, event }) => ({ ordinal, event: redactEvent(event, mayRead) }))
  return { ...message, items }
}
