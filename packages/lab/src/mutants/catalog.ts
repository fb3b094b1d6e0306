import { CLIENT_MUTANTS } from './list/client.js'
import { CORE_MUTANTS } from './list/core.js'
import { GUARD_MUTANTS } from './list/guards.js'
import { RAFT_MUTANTS } from './list/raft.js'
import { REPLICA_MUTANTS } from './list/replica.js'
import type { Mutant } from './mutant.js'

/** All mutants, in the order in which they are listed. */
export const MUTANTS: readonly Mutant[] = [
  ...RAFT_MUTANTS,
  ...REPLICA_MUTANTS,
  ...CORE_MUTANTS,
  ...CLIENT_MUTANTS,
  ...GUARD_MUTANTS,
]
