import type { Rule } from '../format.js'

/** A broken rule. */
export interface Finding {
  readonly rule: Rule
  readonly text: string
  readonly atUs: number
  /** Clients and resources that are involved. */
  readonly who: readonly string[]
}
