import { CLIENT_MUTANTS } from './list/client.js'
import { CLIENT_RULES } from './list/client-rules.js'
import { CORE_MUTANTS } from './list/core.js'
import { GUARD_MUTANTS } from './list/guards.js'
import { RAFT_MUTANTS } from './list/raft.js'
import { REPLICA_MUTANTS } from './list/replica.js'
import { STORAGE_MUTANTS } from './list/storage.js'
import { OPEN_IDS } from './list/open.js'
import type { Mutant } from './mutant.js'

const ALL: readonly Mutant[] = [
  ...RAFT_MUTANTS,
  ...REPLICA_MUTANTS,
  ...STORAGE_MUTANTS,
  ...CORE_MUTANTS,
  ...CLIENT_MUTANTS,
  ...GUARD_MUTANTS,
]

/** Those that the lab finds, in the order in which they are listed. */
export const MUTANTS: readonly Mutant[] = ALL.filter(({ id }) => !OPEN_IDS.includes(id))

/** Those that it has not found so far: holes, or bugs that something else makes up for. */
export const OPEN_MUTANTS: readonly Mutant[] = ALL.filter(({ id }) => OPEN_IDS.includes(id))

/** Rules that the tests of a package guard. They have no row in docs/internals/mutants.md: the test is named beside the rule. */
export const RULE_MUTANTS: readonly Mutant[] = CLIENT_RULES
