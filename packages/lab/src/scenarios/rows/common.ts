import type { Step } from '../format.js'

/** Kleppmann, "How to do distributed locking" (2016). */
export const ARTICLE = 'https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html'
/** Sanfilippo's answer (2016). */
export const ANSWER = 'http://antirez.com/news/101'
/** The algorithm as published, step by step. */
export const REDLOCK = 'https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/'

export type AcquireStep = Step & { readonly do: 'acquire' }

/** acquire → read → compute → write read + 1 → release. */
export function unit(
  options: {
    readonly from?: number
    readonly work?: number
    readonly acquire?: Omit<AcquireStep, 'do'>
    readonly check?: boolean
  } = {},
): Step[] {
  const { from, work, acquire, check } = options
  return [
    ...(from === undefined ? [] : [{ do: 'wait' as const, until: from }]),
    { do: 'acquire', ...acquire },
    { do: 'read' },
    ...(work === undefined ? [] : [{ do: 'work' as const, for: work }]),
    { do: 'write', ...(check === undefined ? {} : { check }) },
    { do: 'release' },
  ]
}
