import { isUnavailable, rolledBack } from './errors.js'
import { unavailable, unknownOutcome } from '../../common/errors.js'
import type { PgClient, PgPool, PgResult } from './client.js'

/**
 * Runs one transaction on a connection of its own. `check` runs right before BEGIN and right before COMMIT. `proof` is a
 * statement that is sent with the COMMIT, and fails if the open transaction is not the one that was begun.
 * If the connection is lost before the COMMIT is sent, nothing was written; afterwards the outcome is unknown.
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
  // A lost connection is also reported as an event, which ends the process if it has no listener.
  const ignore = () => {}
  client.on?.('error', ignore)
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
    // The body may have lost another connection. Report ours as lost only if the rollback failed on it too.
    if (!clean && isUnavailable(error)) throw unavailable('the connection to the database was lost', error)
    throw error
  } finally {
    client.off?.('error', ignore)
    client.release(!clean)
  }
}

/** Returns whether the connection can be reused. */
async function rollback(client: PgClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK')
    return true
  } catch {
    return false
  }
}
