import { isRolledBack, isUnavailable } from './errors.js'
import { unavailable, unknownOutcome } from '../../common/errors.js'
import type { MysqlConnection, MysqlPool } from './client.js'
import { endedInside } from '../open.js'

/** A statement that begins a transaction, and thereby commits the open one. Comments may precede it. */
const BEGINS = /^(?:\s|\/\*(?!!)[^]*?\*\/|(?:--\s|#)[^\n]*\n)*(?:start\s+transaction|begin(?!\s+not\b))\b/i
/** Methods of the driver's connection that begin or end a transaction or the session. */
const ENDING_METHODS: ReadonlySet<string | symbol> = new Set([
  ...['beginTransaction', 'commit', 'rollback', 'changeUser', 'reset'],
])

/** The bit of the server's status that reports an open transaction. */
const IN_TRANSACTION = 1

/** Whether a transaction is open after a statement; undefined if its answer does not report it. */
export function isInside(answer: unknown): boolean | undefined {
  const status = (answer as { serverStatus?: unknown } | null)?.serverStatus
  return typeof status === 'number' ? (status & IN_TRANSACTION) !== 0 : undefined
}

/**
 * Runs one transaction on a connection of its own. `check` runs right before it begins and right before COMMIT. If the
 * connection is lost before the COMMIT is sent, nothing was written; afterwards the outcome is unknown.
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
 * Wraps a connection so that it rejects statements once its transaction has ended. MySQL ends a transaction at a deadlock and
 * before each DDL statement, and would then execute every later statement at once, without a guard.
 */
function watched(connection: MysqlConnection): { tx: MysqlConnection; assertOpen(): void } {
  let ended: unknown
  const assertOpen = () => {
    if (ended !== undefined) throw ended
  }
  const call = async (method: 'query' | 'execute', args: unknown[]) => {
    assertOpen()
    // It would commit this transaction and begin another one, which the server's status does not reveal.
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

/** The driver accepts a string, or an object that contains it. */
function textOf(statement: unknown): string {
  return String((statement as { sql?: unknown } | null)?.sql ?? statement)
}

/** Returns whether the connection can be reused. */
async function rollback(connection: MysqlConnection): Promise<boolean> {
  try {
    await connection.query('ROLLBACK')
    return true
  } catch {
    return false
  }
}
