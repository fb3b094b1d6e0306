import { UnknownOutcomeError } from '@leasehold/core'
import { isRolledBack, isUnavailable } from './errors.js'
import { unavailable } from '../errors.js'
import { endedInside } from '../open.js'

/** What a guard uses of a connection or pool of `mysql2/promise`. */
export interface MysqlQueries {
  query(text: string, values?: unknown[]): Promise<[unknown, ...unknown[]]>
}

export interface MysqlConnection extends MysqlQueries {
  release(): void
  destroy(): void
}

/** What a guard uses of a pool of `mysql2/promise`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>
}

/** A statement that begins a transaction, and so commits the one that is open. Comments may stand before it. */
const BEGINS = /^(?:\s|\/\*(?!!)[^]*?\*\/|(?:--\s|#)[^\n]*\n)*(?:start\s+transaction|begin(?!\s+not\b))\b/i
/** Methods of the driver's connection that begin or end a transaction, or the session with it. */
const ENDING_METHODS: ReadonlySet<string | symbol> = new Set([
  ...['beginTransaction', 'commit', 'rollback', 'changeUser', 'reset'],
])

/** The bit of the server's status that says that a transaction is open. */
const IN_TRANSACTION = 1

/** Whether a transaction is open after a statement; undefined if its answer does not tell. */
export function isInside(answer: unknown): boolean | undefined {
  const status = (answer as { serverStatus?: unknown } | null)?.serverStatus
  return typeof status === 'number' ? (status & IN_TRANSACTION) !== 0 : undefined
}

/**
 * One transaction on a connection of its own. `check` runs right before it begins and right before COMMIT. A connection that
 * is lost before the COMMIT is sent means that nothing was written; afterwards nobody knows.
 */
export async function transaction<T>(
  pool: MysqlPool,
  begin: readonly string[],
  check: () => void,
  body: (tx: MysqlConnection) => Promise<T>,
): Promise<T> {
  let connection: MysqlConnection
  try {
    connection = await pool.getConnection()
  } catch (error) {
    throw isUnavailable(error) ? unavailable('the database cannot be reached', error) : error
  }
  let clean = true
  let committing = false
  try {
    check()
    for (const text of begin) await connection.query(text)
    const { tx, assertOpen } = watched(connection)
    const value = await body(tx)
    assertOpen()
    check()
    committing = true
    await connection.query('COMMIT')
    return value
  } catch (error) {
    if (committing && isUnavailable(error)) {
      clean = false
      throw unknownOutcome(error)
    }
    clean = await rollback(connection)
    if (!clean && isUnavailable(error)) throw unavailable('the connection to the database was lost', error)
    throw error
  } finally {
    if (clean) connection.release()
    else connection.destroy()
  }
}

/**
 * The connection, until its transaction has ended by itself: MySQL ends it after a deadlock, and before each DDL statement,
 * and would carry out every later statement at once, without a guard.
 */
function watched(connection: MysqlConnection): { tx: MysqlConnection; assertOpen(): void } {
  let ended: unknown
  const assertOpen = () => {
    if (ended !== undefined) throw ended
  }
  const call = async (method: 'query' | 'execute', args: unknown[]) => {
    assertOpen()
    // It would end this transaction and begin another one, which looks the same from here.
    if (BEGINS.test(textOf(args[0]))) throw (ended = endedInside())
    try {
      const answer = (await Reflect.apply(Reflect.get(connection, method), connection, args)) as [unknown]
      if (isInside(answer[0]) === false) ended = endedInside()
      assertOpen()
      return answer
    } catch (error) {
      if (isRolledBack(error)) ended = error
      throw error
    }
  }
  const tx = new Proxy(connection, {
    get(target, property) {
      if (property === 'query' || property === 'execute') return (...args: unknown[]) => call(property, args)
      if (ENDING_METHODS.has(property)) {
        return async () => {
          throw (ended ??= endedInside())
        }
      }
      const value: unknown = Reflect.get(target, property, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { tx, assertOpen }
}

/** The driver takes a text, or an object with one. */
function textOf(statement: unknown): string {
  return String((statement as { sql?: unknown } | null)?.sql ?? statement)
}

/** Answers whether the connection can be used again. */
async function rollback(connection: MysqlConnection): Promise<boolean> {
  try {
    await connection.query('ROLLBACK')
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
