import type { ScenarioFault } from './scenario-fault.js'

/**
 * A scenario is data: a system, resources, clients with their programs, faults at times or points, and what is expected.
 * Times are seconds of the world. Everything here can be written as JSON.
 *
 * @example
 * {
 *   "id": "my-1", "title": "A pause in front of the write", "reference": "…",
 *   "system": { "kind": "leasehold" },
 *   "resources": { "R": { "kind": "G*" } },
 *   "clients": {
 *     "C1": [{ "do": "acquire" }, { "do": "read" }, { "do": "work", "for": 1 }, { "do": "write" }, { "do": "release" }],
 *     "C2": [{ "do": "wait", "until": 11 }, { "do": "acquire" }, { "do": "read" }, { "do": "write" }, { "do": "release" }]
 *   },
 *   "faults": [{ "at": "C1 in write", "do": "pause", "for": 15 }],
 *   "until": 30,
 *   "expect": { "violations": [], "units": { "C1": "refused", "C2": "done" }, "values": { "R": 1 } }
 * }
 */
export interface Scenario {
  /** Letters, digits, dashes and dots. */
  readonly id: string
  readonly title: string
  /** Where the case comes from: an article, an issue, a manual. */
  readonly reference: string
  /** What there is to see, for people. */
  readonly text?: string
  readonly system: SystemSpec
  readonly resources?: Readonly<Record<string, ResourceSpec>>
  /** The program of each client. */
  readonly clients: Readonly<Record<string, readonly Step[]>>
  readonly faults?: readonly ScenarioFault[]
  /** When the run ends, in seconds. */
  readonly until: number
  readonly expect: Expectation
}

/** The lock system, by `kind`, with options of its own; see `systems/` and `baselines/`. */
export interface SystemSpec {
  readonly kind: string
  readonly [option: string]: unknown
}

/**
 * - `U`: a register that checks nothing.
 * - `G`: accepts a write iff its token ≥ the mark, and stores the greater one with it; reads are not checked.
 * - `G*`: in addition, opening it for a read needs a token and raises the mark.
 * - `V`: asks the lock service before each write whether the token is the present one, then writes.
 * - `X`: has effects and cannot check anything.
 */
export interface ResourceSpec {
  readonly kind: 'U' | 'G' | 'G*' | 'V' | 'X'
  /** The number in it at the beginning; default 0. */
  readonly initial?: number
  /** Of `V`: seconds between the answer of the service and the write. */
  readonly stall?: number
  /** Of `V`: compares and keeps a mark as well. */
  readonly mark?: boolean
  /** A broken one: acknowledges before value and mark are durable. */
  readonly acknowledgesBeforeSync?: boolean
}

/** One step of a client's program. A step that fails ends the program. */
export type Step =
  /** Waits until this second. */
  | { readonly do: 'wait'; readonly until: number }
  /** Takes the lock (default `L`). Options are those of the system's client. */
  | { readonly do: 'acquire'; readonly lock?: string; readonly [option: string]: unknown }
  /** Reads the resource (default: the only one). At `G*` this opens it. */
  | { readonly do: 'read'; readonly resource?: string }
  /** Computes for some seconds. */
  | { readonly do: 'work'; readonly for: number }
  /** Writes the number read + 1. Looks first whether the hold is valid here, unless `check` is false. */
  | {
      readonly do: 'write'
      readonly resource?: string
      /** To several at once, instead of one. */
      readonly resources?: readonly string[]
      readonly check?: boolean
    }
  /** An effect at a resource of kind `X`; the client does not wait for it. */
  | { readonly do: 'effect'; readonly resource?: string; readonly check?: boolean }
  | { readonly do: 'release' }
  /** Something that only clients of this kind of system can do; see there. `background`: the program continues without waiting for it. */
  | {
      readonly do: 'client'
      readonly action: string
      readonly background?: boolean
      readonly [option: string]: unknown
    }

/** How a client's program came out. */
export type UnitOutcome =
  /** It came to its end: what it wrote was acknowledged (or sent, at `X`). */
  | 'done'
  /** The resource refused its token. */
  | 'refused'
  /** Its own check, or its client, reported that the hold has ended: nothing was sent. */
  | 'lost'
  | 'not-acquired'
  /** No answer came. */
  | 'unknown'
  /** The process was gone, or still at it, at the end. */
  | 'unfinished'

/** Rules that checkers decide over; `docs/lab.md` explains each. */
export type Rule = 'overlap' | 'lost-update' | 'token-order' | 'mark-order' | 'late-effect' | 'exception' | 'invariant'

export interface Observation {
  /** Rules that were broken, each once, sorted. */
  readonly violations: readonly Rule[]
  readonly units: Readonly<Record<string, UnitOutcome>>
  /** The number in each resource, at the end. For `X` the number of effects. */
  readonly values: Readonly<Record<string, number>>
  /** Seconds at which each client got a lock. */
  readonly grants: Readonly<Record<string, readonly number[]>>
  /** Milliseconds in which two clients called the same lock theirs. Not a violation where tokens protect. */
  readonly beliefOverlapMs: number
  /** Whether the system itself calls its holds approximate. */
  readonly approximate: boolean
  readonly [more: string]: unknown
}

/** Parts of the observation that must be as given; numbers may be `{ "atLeast": …, "atMost": … }`, texts `{ "contains": … }`. */
export type Expectation = { readonly violations: readonly Rule[] } & Readonly<Record<string, unknown>>
