import { UnknownOutcomeError } from '@leasehold/core'
import { isUnavailable, rolledBack } from './errors.js'
import { unavailable } from '../errors.js'

/** What a guard uses of `pg`'s `Client`, `PoolClient` or `Pool`. */
export interface PgQueries {
  query(text: string, values?: unknown[]): Promise<PgResult>
}

export interface PgResult {
  readonly rows: unknown[]
  readonly rowCount: number | null
  readonly command?: string
}

export interface PgClient extends PgQueries {
  release(error?: Error | boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/** What a guard uses of `pg`'s `Pool`. */
export interface PgPool {
  connect(): Promise<PgClient>
}

/**
 * One transaction on a connection of its own. `check` runs right before BEGIN and right before COMMIT; `proof` is a statement
 * that goes with the COMMIT, and fails when the transaction is not the one that was begun.
 * A connection that is lost before the COMMIT is sent means that nothing was written; afterwards nobody knows.
 */
export async function transaction<T>(
  pool: PgPool,
  begin: string,
  check: () => void,
  body: (tx: PgClient, answers: unknown) => Promise<T>,
  proof?: string,
): Promise<T> {
  let client: PgClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw isUnavailable(error) ? unavailable('the database cannot be reached', error) : error
  }
  // A lost connection is also reported as an event, which would end the process if nobody listened.
  const heard = () => {}
  client.on?.('error', heard)
  let clean = true
  let stage: 'idle' | 'open' | 'committing' = 'idle'
  try {
    check()
    stage = 'open'
    const answers = await client.query(begin)
    const value = await body(client, answers)
    check()
    stage = 'committing'
    const answer = await client.query(proof === undefined ? 'COMMIT' : `${proof}; COMMIT`)
    stage = 'idle'
    const { command } = Array.isArray(answer) ? (answer.at(-1) as PgResult) : answer
    if (command === 'ROLLBACK') throw rolledBack()
    return value
  } catch (error) {
    if (stage === 'committing' && isUnavailable(error)) {
      clean = false
      throw unknownOutcome(error)
    }
    if (stage !== 'idle') clean = await rollback(client)
    // A lost connection of the body's may be one to somewhere else: only if ours is lost, too, that was the reason.
    if (!clean && isUnavailable(error)) throw unavailable('the connection to the database was lost', error)
    throw error
  } finally {
    client.off?.('error', heard)
    client.release(!clean)
  }
}

/** Answers whether the connection can be used again. */
async function rollback(client: PgClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK')
    return true
  } catch {
    return false
  }
}

export function unknownOutcome(cause: unknown): UnknownOutcomeError {
  return new UnknownOutcomeError('the write was sent and its answer is lost: it may or may not have taken effect', {
    cause,
    hint: 'give the unit of work up, or repeat it under a new hold',
  })
}
